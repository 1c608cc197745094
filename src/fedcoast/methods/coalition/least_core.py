"""Least core: the payments with which no coalition of clients would much rather have been heard alone.

    credit   x of  min e  subject to  Σ_i x_i = v_t(N),  Σ_{i∈S} x_i + e ≥ v_t(S)  for ∅ ≠ S ≠ N,  v_t(∅) taken off;
             among the solutions, the smallest ‖x‖₂
    score    Σ_t x_i^t;  a round's credits add up to its gain

Paper: Yan, Procaccia, "If You Like Shapley Then You'll Love the Core", AAAI 2021.
Needs: a utility and SciPy (`pip install 'fedcoast[methods]'`); no full participation.
Cost: 2^N evaluations and a linear programme a round, or N + 2 + `samples` evaluations.
Deviations: played on each round's game. Solutions are not unique; the egalitarian one is taken, so the solver does not
matter. A sample always has each client alone in it: without, the payments may have no bound.
"""

from typing import Any

from fedcoast.errors import require
from fedcoast.methods.coalition.coalition_models import Denominator
from fedcoast.methods.coalition.game import GameAssessor, RoundGame, Weights
from fedcoast.methods.coalition.games import Values, everyone, random_coalitions
from fedcoast.methods.coalition.least_core_program import least_core
from fedcoast.methods.coalition.utility import Evaluator, Utility
from fedcoast.methods.option_checks import check_count, check_seed
from fedcoast.rounds.round import Policy


class LeastCore(GameAssessor):
    """From all coalitions, or from `samples` random ones a round, drawn from `seed` and the round's number.

    utility, weights, denominator, force as in `fedcoast.methods.coalition.game`.
    """

    method = "least-core"

    def __init__(
        self,
        utility: Utility | Evaluator,
        samples: int | None = None,
        seed: int = 0,
        weights: Weights = "round",
        denominator: Denominator = "renormalise",
        force: bool = False,
        bad_uploads: Policy = "quarantine",
    ) -> None:
        super().__init__(utility, weights, denominator, force, bad_uploads)
        if samples is not None:
            check_count("samples", samples, 1, "the coalitions drawn for a round")
        check_seed(seed)
        require("scipy.optimize", extra="methods")  # now, not in the first round
        self.samples, self.seed = samples, seed
        self.exhaustive = samples is None

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "samples": self.samples, "seed": self.seed}

    def _values(self, game: RoundGame) -> Values:
        if self.samples is None or self.samples >= 2**game.players:
            wanted = list(range(2**game.players))
        else:
            alone = [1 << player for player in range(game.players)]
            more = random_coalitions(game.players, self.samples, self._chance(self.seed, game))
            wanted = [0, everyone(game.players), *alone, *more]
        return least_core(dict(zip(wanted, game(wanted), strict=True)), game.players)[0]
