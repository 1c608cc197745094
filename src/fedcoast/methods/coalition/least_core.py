"""Least core: the payments that make the largest objection of any coalition as small as possible.

    credit   x of  min e  subject to  Σ_i x_i = v_t(N),  Σ_{i∈S} x_i + e ≥ v_t(S)  for ∅ ≠ S ≠ N,  v_t(∅) taken off;
             among the solutions, the smallest ‖x‖₂
    score    Σ_t x_i^t;  a round's credits add up to its gain

Paper: Yan, Procaccia, "If You Like Shapley Then You'll Love the Core", AAAI 2021.
Needs: a utility and SciPy (`pip install 'fedcoast[methods]'`); no full participation.
Cost: 2^N evaluations and a linear programme a round, or N + 2 + `samples` evaluations.
Deviations: played on each round's game. Solutions are not unique; the egalitarian one is taken, so the solver does not
matter. A sample always has each client alone in it: without, the payments may have no bound.
"""

from dataclasses import dataclass
from typing import Any

from fedcoast.errors import require
from fedcoast.methods.coalition.config import SampledCoalitionsConfig
from fedcoast.methods.coalition.game import GameAssessor, RoundGame
from fedcoast.methods.coalition.games import Values, everyone, random_coalitions
from fedcoast.methods.coalition.least_core_program import least_core
from fedcoast.methods.coalition.utility import Evaluator, Utility


@dataclass(frozen=True, kw_only=True)
class LeastCoreConfig(SampledCoalitionsConfig):
    """All coalitions, or `samples` random ones for each round."""


class LeastCore(GameAssessor[LeastCoreConfig]):
    """From all coalitions, or from random ones. Options are those of `LeastCoreConfig`; `utility` and `force` as in
    `fedcoast.methods.coalition.game`.
    """

    method = "least-core"

    def __init__(
        self,
        utility: Utility | Evaluator,
        config: LeastCoreConfig | None = None,
        *,
        force: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(utility, config, force=force, **options)
        require("scipy.optimize", extra="methods")  # now, not in the first round

    def _values(self, game: RoundGame) -> Values:
        samples = self.config.samples
        if samples is None or samples >= 2**game.players:
            coalitions = list(range(2**game.players))
        else:
            alone = [1 << player for player in range(game.players)]
            more = random_coalitions(game.players, samples, game.generator(self.config.seed))
            coalitions = [0, everyone(game.players), *alone, *more]
        return least_core(dict(zip(coalitions, game(coalitions), strict=True)), game.players)[0]
