"""One published method, one file. METHODS names them all, with what each needs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from fedcoast.assessors.assessor import Assessor
from fedcoast.assessors.banzhaf import Banzhaf
from fedcoast.assessors.beta_shapley import BetaShapley
from fedcoast.assessors.cgsv import CGSV
from fedcoast.assessors.cgsv_research_code import CGSVResearchCode
from fedcoast.assessors.chance import Chance
from fedcoast.assessors.coast import CoAst
from fedcoast.assessors.comfedsv import ComFedSV
from fedcoast.assessors.constant import Constant
from fedcoast.assessors.cosine import Cosine
from fedcoast.assessors.dig_fl import DIGFL
from fedcoast.assessors.fed_pca import FedPCA
from fedcoast.assessors.fed_pca_research_code import FedPCAResearchCode
from fedcoast.assessors.fedsv import FedSV
from fedcoast.assessors.gtg import GTGShapley
from fedcoast.assessors.individual import Individual
from fedcoast.assessors.least_core import LeastCore
from fedcoast.assessors.leave_one_out import LeaveOneOut
from fedcoast.assessors.multi_round import MultiRound
from fedcoast.assessors.norm import Norm
from fedcoast.assessors.one_round import OneRound
from fedcoast.assessors.shapfed import ShapFed
from fedcoast.assessors.shapley import Shapley
from fedcoast.assessors.shapley_research_code import ShapleyResearchCode
from fedcoast.assessors.size import Size
from fedcoast.assessors.tmc import TMCShapley
from fedcoast.assessors.utility import Evaluator, Utility

Need = Literal["utility", "gradient", "classifier head", "weights", "full participation"]


@dataclass(frozen=True)
class Method:
    """How to make an assessor, what it measures in a few words, and what it cannot do without."""

    make: Callable[..., Assessor]
    measures: str
    needs: tuple[Need, ...] = ()


METHODS: dict[str, Method] = {
    "coast": Method(
        CoAst,
        "agreement of a client's votes with where the global model moves next, less half of that with whence it came",
    ),
    "fed-pca": Method(FedPCA, "how well quantised updates predict those of peers"),
    "fed-pca-exact": Method(partial(FedPCA, penalty="exact"), "Fed-PCA with the exact penalty instead of a drawn one"),
    "fed-pca-research-code": Method(FedPCAResearchCode, "Fed-PCA as the public CoAst research code computes it"),
    "cgsv": Method(CGSV, "moving average of the cosine with the common update"),
    "cgsv-exact": Method(partial(CGSV, game="exact"), "CGSV with the Shapley value of its cosine game"),
    "cgsv-research-code": Method(CGSVResearchCode, "CGSV as the public CoAst research code computes it"),
    "shapfed": Method(ShapFed, "moving average of the class-wise cosine of the head's update", ("classifier head",)),
    "cosine": Method(Cosine, "sum of cosines with the mean update"),
    "norm": Method(Norm, "sum of the lengths of the updates"),
    "size": Method(Size, "the weights of the aggregation, usually the amount of data", ("weights",)),
    "shapley": Method(Shapley, "what a client adds to the coalitions of a round, every size alike", ("utility",)),
    "shapley-research-code": Method(
        ShapleyResearchCode, "SV as the public CoAst research code computes it", ("utility",)
    ),
    "fedsv": Method(FedSV, "Shapley value among those heard in a round", ("utility",)),
    "comfedsv": Method(ComFedSV, "Shapley value of every round, unheard coalitions completed", ("utility",)),
    "tmc-shapley": Method(TMCShapley, "Shapley value from random orders of joining, cut short", ("utility",)),
    "gtg-shapley": Method(GTGShapley, "Shapley value from guided orders of joining, cut short", ("utility",)),
    "multi-round": Method(MultiRound, "Shapley share of what each round gained (MR)", ("utility",)),
    "lambda-multi-round": Method(
        partial(MultiRound, decay=0.95), "the same with later rounds counting for less (λ-MR)", ("utility",)
    ),
    "one-round": Method(OneRound, "Shapley value of the training replayed by coalitions (OR)", ("utility",)),
    "banzhaf": Method(Banzhaf, "what a client adds to the coalitions of a round, all alike", ("utility",)),
    "beta-shapley": Method(
        BetaShapley, "what a client adds to the coalitions of a round, small ones first", ("utility",)
    ),
    "least-core": Method(LeastCore, "payments no coalition of a round would much object to", ("utility",)),
    "leave-one-out": Method(LeaveOneOut, "what the round's model loses without the client", ("utility",)),
    "individual": Method(Individual, "what the round's model would gain from the client alone", ("utility",)),
    "dig-fl": Method(DIGFL, "how far a client's update runs down the validation loss", ("gradient",)),
    "chance": Method(Chance, "nothing: a random number for each client"),
    "constant": Method(Constant, "nothing: the same for each client"),
}

__all__ = [
    "CGSV",
    "DIGFL",
    "METHODS",
    "Assessor",
    "Banzhaf",
    "BetaShapley",
    "CGSVResearchCode",
    "Chance",
    "CoAst",
    "ComFedSV",
    "Constant",
    "Cosine",
    "Evaluator",
    "FedPCA",
    "FedPCAResearchCode",
    "FedSV",
    "GTGShapley",
    "Individual",
    "LeastCore",
    "LeaveOneOut",
    "Method",
    "MultiRound",
    "Need",
    "Norm",
    "OneRound",
    "ShapFed",
    "Shapley",
    "ShapleyResearchCode",
    "Size",
    "TMCShapley",
    "Utility",
]
