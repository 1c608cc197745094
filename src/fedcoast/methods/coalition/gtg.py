"""GTG-Shapley: Shapley values from guided orders of joining, cut short between rounds, within them and when settled.

    between  everybody gets 0 in a round with |v(N) − v(∅)| ≤ `between`
    guided   a sweep of N orders: each client comes first once, the others follow at random
    within   once |v(N) − v(prefix)| < `within`, whoever is left in the order adds 0
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

from typing import Any, Literal

from fedcoast.errors import BadSetting
from fedcoast.methods.coalition.coalition_models import Denominator
from fedcoast.methods.coalition.game import GameAssessor, RoundGame, Weights
from fedcoast.methods.coalition.games import Values, everyone
from fedcoast.methods.coalition.sampling import gtg, positive_part
from fedcoast.methods.coalition.utility import Evaluator, Utility
from fedcoast.methods.option_checks import check_count, check_seed, check_word, is_number
from fedcoast.rounds.round import Policy

Normalise = Literal["none", "positive-part"]


class GTGShapley(GameAssessor):
    """Guided, truncated sampling.

    between       the least a round must gain or lose to be played, in the utility's own units
    within        how near v(N) the rest of an order is taken to add nothing
    change        how far the last running means may differ, relatively, to have settled; 0 walks all orders
    permutations  the most orders a round; None chooses by the number of clients
    normalise     "none", or "positive-part" as the co-author's code reports
    seed          where the orders come from, together with the round's number
    utility, weights, denominator, force as in `fedcoast.methods.coalition.game`.
    """

    method = "gtg-shapley"
    exhaustive = False

    def __init__(
        self,
        utility: Utility | Evaluator,
        between: float = 0.001,
        within: float = 0.001,
        change: float = 0.05,
        permutations: int | None = None,
        normalise: Normalise = "none",
        seed: int = 0,
        weights: Weights = "round",
        denominator: Denominator = "renormalise",
        force: bool = False,
        bad_uploads: Policy = "quarantine",
    ) -> None:
        super().__init__(utility, weights, denominator, force, bad_uploads)
        for option, value in (("between", between), ("within", within), ("change", change)):
            if not is_number(value) or value < 0:
                raise BadSetting(f"{option} must be a number of at least 0; got {value!r}")
        if permutations is not None:
            check_count("permutations", permutations, 1, "the most orders of joining walked for a round")
        check_word("normalise", normalise, ("none", "positive-part"))
        check_seed(seed)
        self.between, self.within, self.change = between, within, change
        self.permutations, self.normalise, self.seed = permutations, normalise, seed

    @property
    def settings(self) -> dict[str, Any]:
        return {
            **super().settings,
            "between": self.between,
            "within": self.within,
            "change": self.change,
            "permutations": self.permutations,
            "normalise": self.normalise,
            "seed": self.seed,
        }

    def _values(self, game: RoundGame) -> Values:
        values = gtg(
            game,
            game.players,
            self._chance(self.seed, game),
            between=self.between,
            within=self.within,
            change=self.change,
            most=self.permutations,
        )
        if self.normalise == "none":
            return values
        full, empty = game([everyone(game.players), 0])
        return positive_part(values, full - empty)
