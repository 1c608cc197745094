"""Banzhaf: what a client adds to a coalition, the mean over all coalitions alike.

    credit   φ_i^t = 2^{−(N−1)} Σ_{S∌i} [v_t(S∪i) − v_t(S)];  sampled: mean of v_t(S) with i − mean of v_t(S) without i
    score    φ_i = Σ_t φ_i^t

Paper: Wang, Jia, "Data Banzhaf: A Robust Data Valuation Framework for Machine Learning", AISTATS 2023 (with
maximum sample reuse).
Needs: a utility; no full participation.
Cost: 2^N evaluations a round, or at most `samples`.
Deviations: played on each round's game. Credits do not add up to the round's gain; of all semivalues their order
bears noise in the utility best.
"""

from typing import Any

import numpy as np

from fedcoast.errors import BadSetting
from fedcoast.methods.coalition.coalition_models import Denominator
from fedcoast.methods.coalition.game import GameAssessor, RoundGame, Weights
from fedcoast.methods.coalition.games import Values, banzhaf, banzhaf_reuse, random_coalitions
from fedcoast.methods.coalition.utility import Evaluator, Utility
from fedcoast.methods.option_checks import check_count, check_seed
from fedcoast.rounds.round import Policy


class Banzhaf(GameAssessor):
    """Exact, or from `samples` random coalitions a round, drawn from `seed` and the round's number.

    utility, weights, denominator, force as in `fedcoast.methods.coalition.game`.
    """

    method = "banzhaf"

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
            check_count("samples", samples, 2, "the coalitions drawn for a round")
        check_seed(seed)
        self.samples, self.seed = samples, seed
        self.exhaustive = samples is None

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "samples": self.samples, "seed": self.seed}

    def _values(self, game: RoundGame) -> Values:
        if self.samples is None or self.samples >= 2**game.players:
            return banzhaf(game.table())
        drawn = random_coalitions(game.players, self.samples, self._chance(self.seed, game))
        values = banzhaf_reuse(game, game.players, drawn)
        if np.isnan(values).any():
            client = game.clients[int(np.isnan(values).argmax())]
            raise BadSetting(
                f"round {game.number}: of {self.samples} coalitions drawn, all or none have client {client!r};"
                f" use more samples, at least about {4 + 2 * game.players.bit_length()}"
            )
        return values
