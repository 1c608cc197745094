"""Chance: a number between 0 and 1 that has nothing to do with what a client did, the floor of every comparison.

    score    u_i ~ U(0, 1), one draw for each client, from the seed and the client's name alone

Paper: none; a sanity baseline.
Needs: nothing.
Cost: none, beyond checking that the uploads can be used.
Deviations: the draw is also the credit of each round the client took part in; the score is no sum.
"""

from typing import Any

import numpy as np

from fedcoast.errors import Client
from fedcoast.methods.base import Assessor, Uploads
from fedcoast.methods.ledger import Credits
from fedcoast.methods.option_checks import check_seed
from fedcoast.rounds.round import Policy, Round
from fedcoast.rounds.schema import ModelSchema


class Chance(Assessor):
    """One random number a client; another `seed` draws others."""

    method = "chance"
    takes_ballots = True

    def __init__(self, seed: int = 0, bad_uploads: Policy = "quarantine") -> None:
        super().__init__(bad_uploads)
        check_seed(seed)
        self.seed = seed

    @property
    def settings(self) -> dict[str, Any]:
        return {"seed": self.seed}

    def _take(self, round: Round, schema: ModelSchema, uploads: Uploads) -> Credits:
        return {round.number: {client: self._draw(client) for client, _ in uploads}}

    def _scores(self, sums: dict[Client, float]) -> dict[Client, float]:
        # A sum of 0 is a client that was never credited: draws are never 0.
        return {client: self._draw(client) if total else 0.0 for client, total in sums.items()}

    def _draw(self, client: Client) -> float:
        name = str(client).encode("utf-8", "surrogatepass")
        return 1.0 - float(np.random.default_rng([self.seed, isinstance(client, str), *name]).random())
