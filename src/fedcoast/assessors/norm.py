"""Update norm: how far a client's upload is from the model it was sent, summed over the rounds.

    credit   ‖Δ_i^t‖₂,  Δ_i^t = θ_i^t − Θ^{t−1}

Paper: none; a sanity baseline. Large updates are not good updates: what does not beat it says little.
Needs: the clients' uploads; no validation data, no full participation.
Cost: O(rounds · clients · parameters).
Deviations: none to have. A zero update is worth 0.
"""

from typing import Any

from fedcoast.assessors.assessor import Assessor, Uploads
from fedcoast.assessors.layers import Layers, choose, describe
from fedcoast.assessors.ledger import Credits
from fedcoast.assessors.updates import pick
from fedcoast.formulas.similarity import chunks, norm
from fedcoast.rounds.layout import Layout
from fedcoast.rounds.round import Policy, Round


class Norm(Assessor):
    """The sum of the lengths of a client's updates; `layers` chooses the tensors that count."""

    method = "norm"

    def __init__(self, layers: Layers = "all", bad_uploads: Policy = "quarantine") -> None:
        super().__init__(bad_uploads)
        describe(layers)
        self.layers = layers

    @property
    def settings(self) -> dict[str, Any]:
        return {"layers": describe(self.layers)}

    def _take(self, round: Round, layout: Layout, uploads: Uploads) -> Credits:
        chosen = choose(self.layers, layout)
        start = pick(round.read_start(layout), chosen)
        return {round.number: {client: norm(chunks(pick(model, chosen), start)) for client, model in uploads}}
