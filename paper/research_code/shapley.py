"""SV as the public CoAst research code computes it, for reproducing the paper's table; it is not the Shapley value.

    credit   φ_i^t = mean over S ⊂ N∖i with 1 ≤ |S| ≤ N−2 of [v_t(S∪i) − v_t(S)]
    score    φ_i = Σ_{t≥2} φ_i^t

Paper: none; the repository 2016312357/CoAst, as of April 2025.
Needs: a utility; that code has minus the test loss. At least three clients in a round, or all get 0.
Cost: 2^N − 2 evaluations a round.
Deviations: from the Shapley value, the code's own: it joins a client never to nobody and never to all others, weighs no
coalition by its size, and skips the first round. From the code: the model is evaluated as the utility does it (the code
leaves it in training mode, which changes nothing in networks without batch norm or dropout). Coalitions are unweighted.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fedcoast.methods.coalition.config import CoalitionConfig
from fedcoast.methods.coalition.game import GameAssessor, RoundGame
from fedcoast.methods.coalition.games import Values, everyone, players_of, semivalue
from fedcoast.methods.ledger import Credits
from fedcoast.methods.options import option
from fedcoast.rounds.round_view import RoundView


@dataclass(frozen=True, kw_only=True)
class ShapleyResearchCodeConfig(CoalitionConfig):
    """Nothing to choose: clients count the same, and coalitions are renormalised."""

    weights: Literal["uniform"] = option("uniform", "Clients count the same.")
    denominator: Literal["renormalise"] = option("renormalise", "What a coalition's sum is divided by.")


class ShapleyResearchCode(GameAssessor[ShapleyResearchCodeConfig]):
    """`utility` and `force` as in `fedcoast.methods.coalition.game`."""

    method = "shapley-research-code"

    def _step(self, view: RoundView, state: None) -> tuple[Credits, None]:
        if self.last_round is None:
            self._check_players(len(view.clients), f"round {view.number} has")
            for _ in view.uploads():  # bad uploads are quarantined all the same
                pass
            return {}, state
        return super()._step(view, state)

    def _values(self, game: RoundGame) -> Values:
        players = game.players
        if players < 3:
            return np.zeros(players)
        table = np.zeros(2**players)
        coalitions = range(1, everyone(players))
        table[1:-1] = game(coalitions)
        return mean_of_inner_marginals(table)


def mean_of_inner_marginals(table: ArrayLike) -> Values:
    """What that code calls Shapley: the plain mean of the marginals to the coalitions of one to n−2 others.

    It leaves out joining nobody and joining all others, and weighs no size. Zero for fewer than three.

    >>> mean_of_inner_marginals([0.1, 0.5, 0.45, 0.7, 0.3, 0.62, 0.55, 0.8]).round(12).tolist()
    [0.285, 0.225, 0.11]
    """
    players = players_of(table)
    count = 2 ** max(players - 1, 1) - 2
    return semivalue(table, [1 / count if 1 <= size <= players - 2 else 0.0 for size in range(players)])
