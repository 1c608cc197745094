"""Constant: the same score for every client, so that every comparison with it must be undefined.

    credit   0

Paper: none; a sanity baseline. A correlation with it is NaN; a tool that reports a number there is broken.
Needs: nothing.
Cost: none, beyond checking that the uploads can be used.
Deviations: none.
"""

from fedcoast.methods.base import Uploads
from fedcoast.methods.configured import AssessorConfig, ConfiguredAssessor
from fedcoast.methods.ledger import Credits
from fedcoast.rounds.round import Round
from fedcoast.rounds.schema import ModelSchema


class Constant(ConfiguredAssessor[AssessorConfig]):
    """Zero for everybody."""

    method = "constant"
    takes_ballots = True

    def _take(self, fl_round: Round, schema: ModelSchema, uploads: Uploads) -> Credits:
        return {fl_round.number: {client: 0.0 for client, _ in uploads}}
