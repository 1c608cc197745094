"""GTG-Shapley: Shapley values from guided orders of joining, truncated between rounds, within orders and when settled.

    between  every client gets 0 in a round with |v(N) − v(∅)| ≤ `round_tol`
    guided   a sweep of N orders: each client comes first once, the others follow at random
    within   once |v(N) − v(prefix)| < `within_tol`, the clients left in the order add 0
    credit   φ_i^t = mean of what client i added, over sweeps until the means have settled
    score    φ_i = Σ_t φ_i^t

Paper: Liu, Chen, Yu, Liu, Cui, "GTG-Shapley: Efficient and Accurate Participant Contribution Evaluation in Federated
Learning", ACM TIST 2022 (arXiv 2109.02053).
Needs: a utility; no full participation.
Cost: O(N log N) evaluations a round, typically, and never more than 2^N. A client worth next to nothing settles late:
for dozens of clients set `permutations`.
Deviations: the paper prints no thresholds; these and the rule to stop are of its co-author's code (at least max(30,
N) orders, settled when the last ten running means are within 5 %, at most 0.8 · 2^N), without that code's random
±5. It also rescales each round: `normalise="positive-part"`, off by default because credits then no longer add up
to the gain. v(N) is the worth of all uploads merged, which is U(Θ^t) where the server takes the mean.
"""

from dataclasses import dataclass
from typing import Literal

from fedcoast.errors import BadSetting
from fedcoast.methods.coalition.config import SampledOrdersConfig
from fedcoast.methods.coalition.game import GameAssessor, RoundGame
from fedcoast.methods.coalition.games import Values, everyone
from fedcoast.methods.coalition.sampling import gtg, positive_part
from fedcoast.methods.option_checks import is_number
from fedcoast.methods.options import option

Normalise = Literal["none", "positive-part"]


@dataclass(frozen=True, kw_only=True)
class GTGConfig(SampledOrdersConfig):
    """Guided orders; `permutations` is the most for each round, None chooses by the number of clients."""

    round_tol: float = option(
        0.001, "The least a round must gain or lose to be played, in the utility's own units.", "The paper's ε_b."
    )
    within_tol: float = option(0.001, "How near v(N) the rest of an order is assumed to add nothing.")
    convergence_tol: float = option(
        0.05, "How far the last running means may differ, relatively, to have settled; 0 walks all orders."
    )
    normalise: Normalise = option("none", "none, or positive-part as the co-author's code reports.")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("round_tol", "within_tol", "convergence_tol"):
            value = getattr(self, name)
            if not is_number(value) or value < 0:
                raise BadSetting(f"{name} must be a number of at least 0; got {value!r}")


class GTGShapley(GameAssessor[GTGConfig]):
    """Guided, truncated sampling. Options are those of `GTGConfig`; `utility` as in
    `fedcoast.methods.coalition.game`.
    """

    method = "gtg-shapley"
    exhaustive = False

    def _values(self, game: RoundGame) -> Values:
        values = gtg(
            game,
            game.players,
            game.generator(self.config.seed),
            round_tol=self.config.round_tol,
            within_tol=self.config.within_tol,
            convergence_tol=self.config.convergence_tol,
            most=self.config.permutations,
        )
        if self.config.normalise == "none":
            return values
        full, empty = game([everyone(game.players), 0])
        return positive_part(values, full - empty)
