"""CGSV as the public CoAst research code computes it, for reproducing that paper's table: a plain cosine sum.

    score    Σ_{t≥2} cos(Θ^t − Θ^{t−1}, θ_i^t − Θ^{t−1})

Paper: the "CGSV" column of Wu et al., "CoAst", ACM MM 2024, table 1; code: github.com/2016312357/CoAst,
src/baseline_CGSV.py.
Needs: the clients' uploads and the global models; no validation data.
Cost: O(rounds · clients · parameters).
Deviations: from CGSV in everything but the cosine: no normalised updates, no moving average, no clamp; and the first
round shown is skipped, because the code has no global model from before it. To compare methods, use `CGSV`.
"""

from fedcoast.kernels.directions import chunks, cosine
from fedcoast.methods.configured import AssessorConfig, ConfiguredAssessor
from fedcoast.methods.ledger import Credits
from fedcoast.methods.updates import pick
from fedcoast.rounds.round_view import RoundView


class CGSVResearchCode(ConfiguredAssessor[AssessorConfig]):
    """The sum of cosines with the global movement, from the second round on."""

    method = "cgsv-research-code"

    def _step(self, view: RoundView, state: None) -> tuple[Credits, None]:
        layers = view.schema.trainable
        start = pick(view.start, layers)
        end = pick(view.end, layers)
        credits = {
            client: cosine(chunks(end, start), chunks(pick(model, layers), start)) for client, model in view.uploads()
        }
        return ({} if self.last_round is None else {view.number: credits}), state
