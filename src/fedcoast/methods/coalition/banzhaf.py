"""Banzhaf: what a client adds to a coalition, averaged over all coalitions with the same weight.

    credit   φ_i^t = 2^{−(N−1)} Σ_{S∌i} [v_t(S∪i) − v_t(S)];  sampled: mean of v_t(S) with i − mean of v_t(S) without i
    score    φ_i = Σ_t φ_i^t

Paper: Wang, Jia, "Data Banzhaf: A Robust Data Valuation Framework for Machine Learning", AISTATS 2023 (with
maximum sample reuse).
Needs: a utility; no full participation.
Cost: 2^N evaluations a round, or at most `samples`.
Deviations: played on each round's game. Credits do not add up to the round's gain; of all semivalues their order
bears noise in the utility best.
"""

from dataclasses import dataclass

import numpy as np

from fedcoast.errors import BadSetting
from fedcoast.methods.coalition.config import SampledCoalitionsConfig
from fedcoast.methods.coalition.game import GameAssessor, RoundGame
from fedcoast.methods.coalition.games import Values, banzhaf, banzhaf_reuse, random_coalitions


@dataclass(frozen=True, kw_only=True)
class BanzhafConfig(SampledCoalitionsConfig):
    """All coalitions, or `samples` random ones for each round."""

    fewest_samples = 2


class Banzhaf(GameAssessor[BanzhafConfig]):
    """Exact, or from random coalitions. Options are those of `BanzhafConfig`; `utility` and `force` as in
    `fedcoast.methods.coalition.game`.
    """

    method = "banzhaf"

    def _values(self, game: RoundGame) -> Values:
        samples = self.config.samples
        if samples is None or samples >= 2**game.players:
            return banzhaf(game.table())
        coalitions = random_coalitions(game.players, samples, game.generator(self.config.seed))
        values = banzhaf_reuse(game, game.players, coalitions)
        if np.isnan(values).any():
            client = game.clients[int(np.isnan(values).argmax())]
            raise BadSetting(
                f"round {game.number}: of {samples} coalitions drawn, all or none have client {client!r};"
                f" use more samples, at least about {4 + 2 * game.players.bit_length()}"
            )
        return values
