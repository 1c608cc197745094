"""Constant: the same score for every client, so that every comparison with it must be undefined.

    credit   0

Paper: none; a sanity baseline. A correlation with it is NaN; a tool that reports a number there is broken.
Needs: nothing.
Cost: none, beyond checking that the uploads can be used.
Deviations: none.
"""

from fedcoast.methods.configured import AssessorConfig, ConfiguredAssessor
from fedcoast.methods.ledger import Credits
from fedcoast.rounds.round_view import RoundView


class Constant(ConfiguredAssessor[AssessorConfig]):
    """Zero for every client."""

    method = "constant"
    takes_ballots = True

    def _step(self, view: RoundView, state: None) -> tuple[Credits, None]:
        return {view.number: {client: 0.0 for client, _ in view.uploads()}}, state
