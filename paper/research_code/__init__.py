"""What the public CoAst research code computes, faults included: a preset of CoAst, and three registered methods.

To compare methods, use CoAst's own presets, `cgsv`, `fed-pca` and `shapley`.
"""

from fedcoast.methods import Method, register_method
from paper.research_code.cgsv import CGSVResearchCode
from paper.research_code.coast_preset import coast
from paper.research_code.fed_pca import FedPCAResearchCode
from paper.research_code.shapley import ShapleyResearchCode, mean_of_inner_marginals

for _name, _method in {
    "fed-pca-research-code": Method(FedPCAResearchCode, "Fed-PCA as the public CoAst research code computes it"),
    "cgsv-research-code": Method(CGSVResearchCode, "CGSV as the public CoAst research code computes it"),
    "shapley-research-code": Method(
        ShapleyResearchCode, "SV as the public CoAst research code computes it", ("utility",)
    ),
}.items():
    register_method(_name, _method)

__all__ = ["CGSVResearchCode", "FedPCAResearchCode", "ShapleyResearchCode", "coast", "mean_of_inner_marginals"]
