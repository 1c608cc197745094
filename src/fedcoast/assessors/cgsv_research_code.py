"""CGSV as the public CoAst research code computes it, for whoever reproduces that paper's table: a plain cosine sum.

    score    Σ_{t≥2} cos(Θ^t − Θ^{t−1}, θ_i^t − Θ^{t−1})

Paper: the "CGSV" column of Wu et al., "CoAst", ACM MM 2024, table 1; code: github.com/2016312357/CoAst,
src/baseline_CGSV.py.
Needs: the clients' uploads and the global models; no validation data.
Cost: O(rounds · clients · parameters).
Deviations: from CGSV in everything but the cosine: no normalised updates, no moving average, no clamp; and the first
round shown is skipped, because the code has no global model from before it. To compare methods, use `CGSV`.
"""

from typing import Any

from fedcoast.assessors.assessor import Assessor, Uploads
from fedcoast.assessors.ledger import Credits
from fedcoast.assessors.updates import pick
from fedcoast.formulas.similarity import chunks, cosine
from fedcoast.rounds.layout import Layout
from fedcoast.rounds.round import Round


class CGSVResearchCode(Assessor):
    """The sum of cosines with the global movement, from the second round on."""

    method = "cgsv-research-code"

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    def _take(self, round: Round, layout: Layout, uploads: Uploads) -> Credits:
        start = pick(round.read_start(layout), layout.voting)
        end = pick(round.read_end(layout), layout.voting)
        credits = {
            client: cosine(chunks(end, start), chunks(pick(model, layout.voting), start)) for client, model in uploads
        }
        return {} if self.last_round is None else {round.number: credits}
