"""TMC-Shapley: Shapley values from random orders of joining, each evaluated only while something is left to gain.

    order    v(∅) → v(π_1) → v(π_1, π_2) → …; once |v(N) − v(prefix)| < tolerance, the remaining clients add 0
    credit   φ_i^t = mean over the orders of what client i added when it joined
    score    φ_i = Σ_t φ_i^t

Paper: Ghorbani, Zou, "Data Shapley: Equitable Valuation of Data for Machine Learning", ICML 2019.
Needs: a utility; no full participation.
Cost: at most N · `permutations` evaluations a round, and never more than 2^N: each coalition is evaluated once.
Deviations: played on each round's game (the paper retrains). A fixed number of orders instead of the paper's rule
to stop; `permutations=None` is max(30, N·⌊ln N⌉), the VLDB'24 benchmark's number with GTG's minimum. Where there
are no more orders than that, each is walked once, and with `tolerance=0` the value is exact.
"""

import math
from dataclasses import dataclass

from fedcoast.errors import BadSetting
from fedcoast.methods.coalition.config import SampledOrdersConfig
from fedcoast.methods.coalition.game import GameAssessor, RoundGame
from fedcoast.methods.coalition.games import Values
from fedcoast.methods.coalition.sampling import random_orders, tmc
from fedcoast.methods.option_checks import is_number
from fedcoast.methods.options import option

FEWEST = 30


@dataclass(frozen=True, kw_only=True)
class TMCConfig(SampledOrdersConfig):
    """Random orders; `permutations=None` chooses their number by that of the clients."""

    tolerance: float = option(
        1e-6, "How near v(N) the rest of an order is assumed to add nothing, in the utility's own units."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_number(self.tolerance) or self.tolerance < 0:
            raise BadSetting(
                f"tolerance must be a number of at least 0, in the utility's units; got {self.tolerance!r}"
            )


class TMCShapley(GameAssessor[TMCConfig]):
    """Random orders, truncated. Options are those of `TMCConfig`; `utility` as in `fedcoast.methods.coalition.game`."""

    method = "tmc-shapley"
    exhaustive = False

    def _values(self, game: RoundGame) -> Values:
        count = self.config.permutations or max(FEWEST, game.players * round(math.log(game.players)))
        orders = random_orders(game.players, count, game.generator(self.config.seed))
        return tmc(game, game.players, orders, self.config.tolerance)
