"""Beta Shapley: what a client adds to a coalition, with more (or less) weight for small coalitions than Shapley.

    credit   φ_i^t = Σ_{S∌i} p(|S|)·[v_t(S∪i) − v_t(S)],  p(k) = B(k+β, N−k−1+α) / B(α, β)
    score    φ_i = Σ_t φ_i^t

Paper: Kwon, Zou, "Beta Shapley: a Unified and Noise-reduced Data Valuation Framework for Machine Learning", AISTATS
2022.
Needs: a utility; no full participation.
Cost: 2^N evaluations a round.
Deviations: played on each round's game. The default (16, 1), which counts almost only small coalitions, is the first
of the paper's usual choices; (1, 1) is Shapley's value. Only that one's credits add up to the round's gain.
"""

from dataclasses import dataclass

from fedcoast.errors import BadSetting
from fedcoast.methods.coalition.config import CoalitionConfig
from fedcoast.methods.coalition.game import GameAssessor, RoundGame
from fedcoast.methods.coalition.games import Values, beta_shapley
from fedcoast.methods.option_checks import is_number
from fedcoast.methods.options import option


@dataclass(frozen=True, kw_only=True)
class BetaShapleyConfig(CoalitionConfig):
    """`alpha` over `beta` favours small coalitions."""

    alpha: float = option(16.0, "First parameter of the beta law, positive.")
    beta: float = option(1.0, "Second parameter of the beta law, positive.")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("alpha", "beta"):
            value = getattr(self, name)
            if not is_number(value) or value <= 0:
                raise BadSetting(f"{name} must be a positive number, a parameter of the beta law; got {value!r}")


class BetaShapley(GameAssessor[BetaShapleyConfig]):
    """Options are those of `BetaShapleyConfig`; `utility` and `force` as in `fedcoast.methods.coalition.game`."""

    method = "beta-shapley"

    def _values(self, game: RoundGame) -> Values:
        return beta_shapley(game.table(), self.config.alpha, self.config.beta)
