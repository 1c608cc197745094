"""Update norm: the distance of a client's upload from the model it received, summed over the rounds.

    credit   ‖Δ_i^t‖₂,  Δ_i^t = θ_i^t − Θ^{t−1}

Paper: none; a sanity baseline. Large updates are not good updates: a method that does not beat it says little.
Needs: the clients' uploads; no validation data, no full participation.
Cost: O(rounds · clients · parameters).
Deviations: none. A zero update is worth 0.
"""

from fedcoast.kernels.directions import chunks, norm
from fedcoast.methods.configured import ConfiguredAssessor, LayersConfig
from fedcoast.methods.layer_selection import choose
from fedcoast.methods.ledger import Credits
from fedcoast.methods.updates import pick
from fedcoast.rounds.round_view import RoundView


class Norm(ConfiguredAssessor[LayersConfig]):
    """The sum of the lengths of a client's updates."""

    method = "norm"

    def _step(self, view: RoundView, state: None) -> tuple[Credits, None]:
        chosen = choose(self.config.layers, view.schema)
        start = pick(view.start, chosen)
        credits = {client: norm(chunks(pick(model, chosen), start)) for client, model in view.uploads()}
        return {view.number: credits}, state
