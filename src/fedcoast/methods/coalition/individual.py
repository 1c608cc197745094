"""Individual: what the global model would be worth if it followed this client alone.

    credit   φ_i^t = v_t({i}) − v_t(∅)
    score    φ_i = Σ_t φ_i^t

Paper: none; a sanity baseline. A method that does not beat it is not worth its cost.
Needs: a utility; no full participation.
Cost: N + 1 evaluations a round.
Deviations: `baseline="none"` is v_t({i}) itself, as in the VLDB'24 benchmark: the same order, but no zero for
doing nothing.
"""

from dataclasses import dataclass

from fedcoast.methods.coalition.config import CoalitionConfig
from fedcoast.methods.coalition.game import GameAssessor, RoundGame
from fedcoast.methods.coalition.games import Baseline, Values, individual
from fedcoast.methods.options import option


@dataclass(frozen=True, kw_only=True)
class IndividualConfig(CoalitionConfig):
    """What a client alone is compared with."""

    baseline: Baseline = option("idle", "Subtract what the model was worth before the round (idle), or nothing (none).")


class Individual(GameAssessor[IndividualConfig]):
    """Options are those of `IndividualConfig`; `utility` as in `fedcoast.methods.coalition.game`."""

    method = "individual"
    exhaustive = False

    def _values(self, game: RoundGame) -> Values:
        return individual(game, game.players, self.config.baseline)
