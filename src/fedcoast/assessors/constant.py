"""Constant: nobody contributed anything, so every comparison with it must come out undefined.

    credit   0

Paper: none; a sanity baseline. A correlation with it is NaN; a tool that reports a number there is broken.
Needs: nothing.
Cost: none, beyond checking that the uploads can be used.
Deviations: none to have.
"""

from typing import Any

from fedcoast.assessors.assessor import Assessor, Uploads
from fedcoast.assessors.ledger import Credits
from fedcoast.rounds.layout import Layout
from fedcoast.rounds.round import Round


class Constant(Assessor):
    """Zero for everybody."""

    method = "constant"
    takes_ballots = True

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    def _take(self, round: Round, layout: Layout, uploads: Uploads) -> Credits:
        return {round.number: {client: 0.0 for client, _ in uploads}}
