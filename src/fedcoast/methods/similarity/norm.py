"""Update norm: the distance of a client's upload from the model it received, summed over the rounds.

    credit   ‖Δ_i^t‖₂,  Δ_i^t = θ_i^t − Θ^{t−1}

Paper: none; a sanity baseline. Large updates are not good updates: a method that does not beat it says little.
Needs: the clients' uploads; no validation data, no full participation.
Cost: O(rounds · clients · parameters).
Deviations: none. A zero update is worth 0.
"""

from fedcoast.kernels.directions import chunks, norm
from fedcoast.methods.base import Uploads
from fedcoast.methods.configured import ConfiguredAssessor, LayersConfig
from fedcoast.methods.layer_selection import choose
from fedcoast.methods.ledger import Credits
from fedcoast.methods.updates import pick
from fedcoast.rounds.round import Round
from fedcoast.rounds.schema import ModelSchema


class Norm(ConfiguredAssessor[LayersConfig]):
    """The sum of the lengths of a client's updates."""

    method = "norm"

    def _take(self, fl_round: Round, schema: ModelSchema, uploads: Uploads) -> Credits:
        chosen = choose(self.config.layers, schema)
        start = pick(fl_round.read_start(schema), chosen)
        return {fl_round.number: {client: norm(chunks(pick(model, chosen), start)) for client, model in uploads}}
