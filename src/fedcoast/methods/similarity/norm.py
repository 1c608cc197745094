"""Update norm: how far a client's upload is from the model it was sent, summed over the rounds.

    credit   ‖Δ_i^t‖₂,  Δ_i^t = θ_i^t − Θ^{t−1}

Paper: none; a sanity baseline. Large updates are not good updates: what does not beat it says little.
Needs: the clients' uploads; no validation data, no full participation.
Cost: O(rounds · clients · parameters).
Deviations: none to have. A zero update is worth 0.
"""

from typing import Any

from fedcoast.kernels.directions import chunks, norm
from fedcoast.methods.base import Assessor, Uploads
from fedcoast.methods.layer_selection import Layers, choose, describe
from fedcoast.methods.ledger import Credits
from fedcoast.methods.updates import pick
from fedcoast.rounds.round import Policy, Round
from fedcoast.rounds.schema import ModelSchema


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

    def _take(self, round: Round, schema: ModelSchema, uploads: Uploads) -> Credits:
        chosen = choose(self.layers, schema)
        start = pick(round.read_start(schema), chosen)
        return {round.number: {client: norm(chunks(pick(model, chosen), start)) for client, model in uploads}}
