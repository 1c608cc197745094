"""Beta Shapley: what a client adds to a coalition, small coalitions counting for more (or less) than Shapley has it.

    credit   φ_i^t = Σ_{S∌i} p(|S|)·[v_t(S∪i) − v_t(S)],  p(k) = B(k+β, N−k−1+α) / B(α, β)
    score    φ_i = Σ_t φ_i^t

Paper: Kwon, Zou, "Beta Shapley: a Unified and Noise-reduced Data Valuation Framework for Machine Learning", AISTATS
2022.
Needs: a utility; no full participation.
Cost: 2^N evaluations a round.
Deviations: played on each round's game. The default (16, 1), which all but looks at small coalitions, is the first
of the paper's usual choices; (1, 1) is Shapley's value. Only that one's credits add up to the round's gain.
"""

from typing import Any

from fedcoast.errors import BadSetting
from fedcoast.methods.coalition.coalition_models import Denominator
from fedcoast.methods.coalition.game import GameAssessor, RoundGame, Weights
from fedcoast.methods.coalition.games import Values, beta_shapley
from fedcoast.methods.coalition.utility import Evaluator, Utility
from fedcoast.methods.option_checks import is_number
from fedcoast.rounds.round import Policy


class BetaShapley(GameAssessor):
    """`alpha` over `beta` favours small coalitions; both are positive.

    utility, weights, denominator, force as in `fedcoast.methods.coalition.game`.
    """

    method = "beta-shapley"

    def __init__(
        self,
        utility: Utility | Evaluator,
        alpha: float = 16.0,
        beta: float = 1.0,
        weights: Weights = "round",
        denominator: Denominator = "renormalise",
        force: bool = False,
        bad_uploads: Policy = "quarantine",
    ) -> None:
        super().__init__(utility, weights, denominator, force, bad_uploads)
        for option, value in (("alpha", alpha), ("beta", beta)):
            if not is_number(value) or value <= 0:
                raise BadSetting(f"{option} must be a positive number, a parameter of the beta law; got {value!r}")
        self.alpha, self.beta = alpha, beta

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "alpha": self.alpha, "beta": self.beta}

    def _values(self, game: RoundGame) -> Values:
        return beta_shapley(game.table(), self.alpha, self.beta)
