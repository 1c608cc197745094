"""Individual: what the global model would be worth, had it followed this client alone.

    credit   φ_i^t = v_t({i}) − v_t(∅)
    score    φ_i = Σ_t φ_i^t

Paper: none; a sanity baseline. A method that does not beat it is not worth its cost.
Needs: a utility; no full participation.
Cost: N + 1 evaluations a round.
Deviations: `baseline="none"` is v_t({i}) itself, as the VLDB'24 benchmark has it: the same order, but no zero for
doing nothing.
"""

from typing import Any

from fedcoast.methods.coalition.coalition_models import Denominator
from fedcoast.methods.coalition.game import GameAssessor, RoundGame, Weights
from fedcoast.methods.coalition.games import Baseline, Values, individual
from fedcoast.methods.coalition.utility import Evaluator, Utility
from fedcoast.methods.option_checks import check_word
from fedcoast.rounds.round import Policy


class Individual(GameAssessor):
    """`baseline="idle"` takes off what the model was worth before the round, "none" nothing.

    utility, weights, denominator, force as in `fedcoast.methods.coalition.game`.
    """

    method = "individual"
    exhaustive = False

    def __init__(
        self,
        utility: Utility | Evaluator,
        baseline: Baseline = "idle",
        weights: Weights = "round",
        denominator: Denominator = "renormalise",
        force: bool = False,
        bad_uploads: Policy = "quarantine",
    ) -> None:
        super().__init__(utility, weights, denominator, force, bad_uploads)
        check_word("baseline", baseline, ("idle", "none"))
        self.baseline: Baseline = baseline

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "baseline": self.baseline}

    def _values(self, game: RoundGame) -> Values:
        return individual(game, game.players, self.baseline)
