"""FedSV: the sum over rounds of a client's Shapley value among the clients that answered; zero in other rounds.

    credit   φ_i^t = Shapley value of client i in the game v_t of the cohort I_t; none for i ∉ I_t
    score    s_i = Σ_t φ_i^t

Paper: Wang, Rausch, Zhang, Jia, Song, "A Principled Approach to Data Valuation for Federated Learning", 2020
(arXiv 2009.06192); sampling by permutations is theirs too.
Needs: a utility; made for partial participation.
Cost: 2^m evaluations a round of m clients, or at most m · `permutations`.
Deviations: no group testing. Two clients with the same data score apart if they were drawn in different rounds, and
early rounds dominate: that is FedSV (see `comfedsv`). With full participation and no sampling it is `shapley`.
"""

from dataclasses import dataclass

from fedcoast.methods.coalition.config import SampledOrdersConfig
from fedcoast.methods.coalition.game import GameAssessor, RoundGame
from fedcoast.methods.coalition.games import Values, shapley
from fedcoast.methods.coalition.sampling import random_orders, tmc


@dataclass(frozen=True, kw_only=True)
class FedSVConfig(SampledOrdersConfig):
    """All coalitions, or `permutations` random orders of joining for each round."""


class FedSV(GameAssessor[FedSVConfig]):
    """Exact, or by random orders of joining. Options are those of `FedSVConfig`; `utility` and `force` as in
    `fedcoast.methods.coalition.game`.
    """

    method = "fedsv"

    def _values(self, game: RoundGame) -> Values:
        count = self.config.permutations
        if count is None:
            return shapley(game.table())
        return tmc(game, game.players, random_orders(game.players, count, game.generator(self.config.seed)))
