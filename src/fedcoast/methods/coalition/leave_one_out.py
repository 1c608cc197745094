"""Leave-one-out: how much worse the round's model would be without the client.

    credit   φ_i^t = v_t(N) − v_t(N∖i)
    score    φ_i = Σ_t φ_i^t

Paper: a baseline of the whole field (Cook's distance, 1977); for federations as in Wang, Dang, Zhou, IEEE Big Data
2019.
Needs: a utility; no full participation.
Cost: N + 1 evaluations a round.
Deviations: none. Credits do not add up to the round's gain, and of two clients that bring the same, each is worth
nothing.
"""

from fedcoast.methods.coalition.config import CoalitionConfig
from fedcoast.methods.coalition.game import GameAssessor, RoundGame
from fedcoast.methods.coalition.games import Values, leave_one_out


class LeaveOneOut(GameAssessor[CoalitionConfig]):
    """Options are those of `CoalitionConfig`; `utility` as in `fedcoast.methods.coalition.game`."""

    method = "leave-one-out"
    exhaustive = False

    def _values(self, game: RoundGame) -> Values:
        return leave_one_out(game, game.players)
