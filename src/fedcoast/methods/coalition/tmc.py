"""TMC-Shapley: Shapley values from random orders of joining, each walked only while there is something left to gain.

    order    v(∅) → v(π_1) → v(π_1, π_2) → …; once |v(N) − v(prefix)| < tolerance, whoever is left adds 0
    credit   φ_i^t = mean over the orders of what client i added when it joined
    score    φ_i = Σ_t φ_i^t

Paper: Ghorbani, Zou, "Data Shapley: Equitable Valuation of Data for Machine Learning", ICML 2019.
Needs: a utility; no full participation.
Cost: at most N · `permutations` evaluations a round, and never more than 2^N: a coalition is asked about once.
Deviations: played on each round's game (the paper retrains). A fixed number of orders instead of the paper's rule
to stop; `permutations=None` is max(30, N·⌊ln N⌉), the VLDB'24 benchmark's number with GTG's minimum. Where there
are no more orders than that, each is walked once, and with `tolerance=0` the value is exact.
"""

import math
from typing import Any

from fedcoast.errors import BadSetting
from fedcoast.methods.coalition.coalition_models import Denominator
from fedcoast.methods.coalition.game import GameAssessor, RoundGame, Weights
from fedcoast.methods.coalition.games import Values
from fedcoast.methods.coalition.sampling import random_orders, tmc
from fedcoast.methods.coalition.utility import Evaluator, Utility
from fedcoast.methods.option_checks import check_count, check_seed, is_number
from fedcoast.rounds.round import Policy

FEWEST = 30


class TMCShapley(GameAssessor):
    """Random orders, truncated.

    permutations  orders a round; None chooses by the number of clients
    tolerance     how near v(N) the rest of an order is taken to add nothing, in the utility's own units
    seed          where the orders come from, together with the round's number
    utility, weights, denominator, force as in `fedcoast.methods.coalition.game`.
    """

    method = "tmc-shapley"
    exhaustive = False

    def __init__(
        self,
        utility: Utility | Evaluator,
        permutations: int | None = None,
        tolerance: float = 1e-6,
        seed: int = 0,
        weights: Weights = "round",
        denominator: Denominator = "renormalise",
        force: bool = False,
        bad_uploads: Policy = "quarantine",
    ) -> None:
        super().__init__(utility, weights, denominator, force, bad_uploads)
        if permutations is not None:
            check_count("permutations", permutations, 1, "the orders of joining drawn for a round")
        if not is_number(tolerance) or tolerance < 0:
            raise BadSetting(f"tolerance must be a number of at least 0, in the utility's units; got {tolerance!r}")
        check_seed(seed)
        self.permutations, self.tolerance, self.seed = permutations, tolerance, seed

    @property
    def settings(self) -> dict[str, Any]:
        own = {"permutations": self.permutations, "tolerance": self.tolerance, "seed": self.seed}
        return {**super().settings, **own}

    def _values(self, game: RoundGame) -> Values:
        count = self.permutations or max(FEWEST, game.players * round(math.log(game.players)))
        orders = random_orders(game.players, count, self._chance(self.seed, game))
        return tmc(game, game.players, orders, self.tolerance)
