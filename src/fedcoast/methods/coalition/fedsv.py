"""FedSV: a client's Shapley value among those that were heard in a round, zero in rounds it was not, summed up.

    credit   φ_i^t = Shapley value of client i in the game v_t of the cohort I_t; none for i ∉ I_t
    score    s_i = Σ_t φ_i^t

Paper: Wang, Rausch, Zhang, Jia, Song, "A Principled Approach to Data Valuation for Federated Learning", 2020
(arXiv 2009.06192); sampling by permutations is theirs too.
Needs: a utility; made for partial participation.
Cost: 2^m evaluations a round of m clients, or at most m · `permutations`.
Deviations: no group testing. Two clients with the same data score apart if they were drawn in different rounds, and
early rounds dominate: that is FedSV (see `comfedsv`). With everybody present and no sampling it is `shapley`.
"""

from typing import Any

from fedcoast.methods.coalition.coalition_models import Denominator
from fedcoast.methods.coalition.game import GameAssessor, RoundGame, Weights
from fedcoast.methods.coalition.games import Values, shapley
from fedcoast.methods.coalition.sampling import random_orders, tmc
from fedcoast.methods.coalition.utility import Evaluator, Utility
from fedcoast.methods.option_checks import check_count, check_seed
from fedcoast.rounds.round import Policy


class FedSV(GameAssessor):
    """Exact, or by `permutations` random orders of joining for each round, drawn from `seed` and the round's number.

    utility, weights, denominator, force as in `fedcoast.methods.coalition.game`.
    """

    method = "fedsv"

    def __init__(
        self,
        utility: Utility | Evaluator,
        permutations: int | None = None,
        seed: int = 0,
        weights: Weights = "round",
        denominator: Denominator = "renormalise",
        force: bool = False,
        bad_uploads: Policy = "quarantine",
    ) -> None:
        super().__init__(utility, weights, denominator, force, bad_uploads)
        if permutations is not None:
            check_count("permutations", permutations, 1, "the orders of joining drawn for a round")
        check_seed(seed)
        self.permutations, self.seed = permutations, seed
        self.exhaustive = permutations is None

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "permutations": self.permutations, "seed": self.seed}

    def _values(self, game: RoundGame) -> Values:
        if self.permutations is None:
            return shapley(game.table())
        return tmc(game, game.players, random_orders(game.players, self.permutations, self._chance(self.seed, game)))
