"""Chance: a random number between 0 and 1 for each client, the floor of every comparison.

    score    u_i ~ U(0, 1), one draw for each client, from the seed and the client's name alone

Paper: none; a sanity baseline.
Needs: nothing.
Cost: none, beyond checking that the uploads can be used.
Deviations: the draw is also the credit of each round the client took part in; the score is not a sum.
"""

from dataclasses import dataclass

import numpy as np

from fedcoast.errors import Client
from fedcoast.methods.configured import AssessorConfig, ConfiguredAssessor
from fedcoast.methods.ledger import Credits
from fedcoast.methods.option_checks import check_seed
from fedcoast.methods.options import option
from fedcoast.rounds.round_view import RoundView


@dataclass(frozen=True, kw_only=True)
class ChanceConfig(AssessorConfig):
    """Which numbers are drawn."""

    seed: int = option(0, "Another seed draws other numbers.")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seed(self.seed)


class Chance(ConfiguredAssessor[ChanceConfig]):
    """One random number for each client."""

    method = "chance"
    takes_ballots = True

    def _step(self, view: RoundView, state: None) -> tuple[Credits, None]:
        return {view.number: {client: self._draw(client) for client, _ in view.uploads()}}, state

    def _scores(self, sums: dict[Client, float]) -> dict[Client, float]:
        # A sum of 0 is a client that was never credited: draws are never 0.
        return {client: self._draw(client) if total else 0.0 for client, total in sums.items()}

    def _draw(self, client: Client) -> float:
        name = str(client).encode("utf-8", "surrogatepass")
        return 1.0 - float(np.random.default_rng([self.config.seed, isinstance(client, str), *name]).random())
