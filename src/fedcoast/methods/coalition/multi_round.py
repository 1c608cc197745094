"""MR and λ-MR: a client's share of what each round gained, later rounds counting for less where λ < 1.

    credit   λ^t · φ_i^t / Σ_j φ_j^t,  φ^t the Shapley values of the round's game, Σ_j φ_j^t its gain
    score    Σ_t of these, t = 1, 2, … as the rounds are shown

Paper: Song, Tong, Wei, "Profit Allocation for Federated Learning", IEEE Big Data 2019 (MR);
Wei, Tong, Zhou, Song, "Efficient and Fair Data Valuation for Horizontal Federated Learning", 2020 (λ-MR, TMR).
Needs: a utility; no full participation.
Cost: 2^N evaluations a round.
Deviations: v(∅) is the worth of the model before the round, so that the denominator is the round's gain; the
VLDB'24 benchmark has 0 there. The gain may be nothing or negative, which blows a round up or turns it round: a
round that gained or lost less than `guard` gives 0 to all, and a loss is divided by its size. `guard=None` is the
formula as printed. The rest of TMR is `cut`: rounds whose λ^t is below it are not played.
"""

from dataclasses import dataclass

import numpy as np

from fedcoast.errors import BadSetting
from fedcoast.methods.coalition.config import CoalitionConfig
from fedcoast.methods.coalition.game import GameAssessor, RoundGame
from fedcoast.methods.coalition.games import Values, shapley
from fedcoast.methods.option_checks import is_number
from fedcoast.methods.options import option


@dataclass(frozen=True, kw_only=True)
class MultiRoundConfig(CoalitionConfig):
    """How rounds count."""

    decay: float = option(1.0, "λ in (0, 1]; 1 is MR, less is λ-MR.", "The VLDB'24 benchmark has 0.95.")
    guard: float | None = option(
        1e-6, "Gain or loss, in the utility's own units, below which a round gives nothing; none for the bare formula."
    )
    cut: float = option(0.0, "Rounds with λ^t below this are not played (TMR); 0 plays all.")

    def __post_init__(self) -> None:
        super().__post_init__()
        decay, guard, cut = self.decay, self.guard, self.cut
        if not is_number(decay) or not 0 < decay <= 1:
            raise BadSetting(f"decay must lie in (0, 1], the λ of λ-MR; got {decay!r}")
        if guard is not None and (not is_number(guard) or guard < 0):
            raise BadSetting(f"guard must be a number of at least 0, or None for the bare formula; got {guard!r}")
        if not is_number(cut) or not 0 <= cut <= 1:
            raise BadSetting(f"cut must lie in [0, 1], the λ^t below which rounds are not played; got {cut!r}")


class MultiRound(GameAssessor[MultiRoundConfig]):
    """Shares of the rounds' gains. Options are those of `MultiRoundConfig`; `utility` and `force` as in
    `fedcoast.methods.coalition.game`.
    """

    method = "multi-round"

    def _values(self, game: RoundGame) -> Values:
        factor = self.config.decay ** (len(self._ledger.credits) + 1)
        if factor < self.config.cut:
            return np.zeros(game.players)
        values = shapley(game.table())
        gain = float(values.sum())
        if gain == 0 or abs(gain) < (self.config.guard or 0.0):
            return np.zeros(game.players)
        return values * (factor / (gain if self.config.guard is None else abs(gain)))
