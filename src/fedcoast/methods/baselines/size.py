"""Data size: the aggregation weight of a client's upload, usually its number of samples.

    credit   n_i^t, the weight of client i in round t
    score    Σ_t n_i^t; the mean per round is n_i itself

Paper: none; the usual rule of federations that measure nothing else.
Needs: rounds that say the weights of the aggregation.
Cost: none, beyond checking that the uploads can be used.
Deviations: none. It trusts the sample counts that clients report.
"""

from fedcoast.errors import BadRound
from fedcoast.methods.configured import AssessorConfig, ConfiguredAssessor
from fedcoast.methods.ledger import Credits
from fedcoast.rounds.round_view import RoundView


class Size(ConfiguredAssessor[AssessorConfig]):
    """The sum of a client's aggregation weights."""

    method = "size"
    takes_ballots = True

    def _step(self, view: RoundView, state: None) -> tuple[Credits, None]:
        if view.weights is None:
            raise BadRound(
                f"round {view.number} has no aggregation weights; the method size needs Round(weights=…),"
                " the number of samples of each client"
            )
        return {view.number: {client: view.weights[client] for client, _ in view.uploads()}}, state
