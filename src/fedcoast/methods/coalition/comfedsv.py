"""ComFedSV: Shapley values of what every coalition would have gained in every round, whether it took part or not.

    matrix   𝒰_{t,S} = U(θ_S^t) − U(Θ^{t−1}), known where all of S took part in round t
    complete 𝒰̂ = W·H of low rank, nearest to the known entries
    credit   φ_i^t = the Shapley value of client i in the game 𝒰̂_t, also in rounds it missed
    score    φ_i = Σ_t φ_i^t

Paper: Fan, Fang, Zhou, Pei, Friedlander, Liu, Zhang, "Improving Fairness for Data Valuation in Horizontal Federated
Learning", ICDE 2022 (arXiv 2109.09046).
Needs: a utility, and everyone together in at least one round; made for partial participation.
Cost: 2^m evaluations a round of m clients, and a matrix of rounds × 2^N numbers completed for each answer.
Deviations: the authors' rank, ridge and solver are not known to us: rank min(3, rounds), ridge a thousandth of the
mean |𝒰|, 500 sweeps of alternating least squares from positive factors. No permutation columns for many clients.
Every round's credits may move with each round that follows, so none is ever final.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcoast.errors import BadRound, BadSetting, Client
from fedcoast.kernels.completion import complete
from fedcoast.methods.coalition.config import CoalitionConfig
from fedcoast.methods.coalition.game import GameAssessor, RoundGame
from fedcoast.methods.coalition.games import Values, members, shapley
from fedcoast.methods.ledger import Credits
from fedcoast.methods.option_checks import check_count, is_number
from fedcoast.methods.options import option
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.clients import client_from_json, client_to_json, in_order
from fedcoast.rounds.round_view import RoundView

Row = tuple[tuple[Client, ...], Values]  # the clients present, and what their coalitions gained
Rows = dict[int, Row]


@dataclass(frozen=True, kw_only=True)
class ComFedSVConfig(CoalitionConfig):
    """How unknown utilities are completed."""

    rank: int | None = option(None, "Rank of the completed matrix; none is 3, or the number of rounds if that is less.")
    ridge: float | None = option(None, "How much large factors cost; none is a thousandth of the mean known |𝒰|.")
    sweeps: int = option(500, "Sweeps of the completion, at most.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank is not None:
            check_count("rank", self.rank, 1, "of the completed matrix")
        if self.ridge is not None and (not is_number(self.ridge) or self.ridge <= 0):
            raise BadSetting(f"ridge must be a positive number, or None; got {self.ridge!r}")
        check_count("sweeps", self.sweeps, 1, "of the completion")


class ComFedSV(GameAssessor[ComFedSVConfig]):
    """Completed utilities. Options are those of `ComFedSVConfig`; `utility` and `force` as in
    `fedcoast.methods.coalition.game`.
    """

    method = "comfedsv"
    remembers_everything = True
    credits_absent = True

    def _initial_state(self) -> Rows:
        return {}

    def _step(self, view: RoundView, state: Rows) -> tuple[Credits, Rows]:
        self._check_players(len({*_clients(state), *view.clients}), f"with round {view.number} there are")
        game = self._game(view)
        gains = self._values(game)
        self.evaluations += len(game.worths)
        return {}, {**state, view.number: (game.clients, gains)}

    def _values(self, game: RoundGame) -> Values:
        """The round's row of the matrix, over the coalitions of the clients present."""
        worths = game.table()
        return np.asarray(worths - worths[0])

    def _credits(self) -> Credits:
        rows: Rows = self._state
        clients = _clients(rows)
        if not clients:
            return {}
        matrix = _matrix(rows, clients)
        ridge = self.config.ridge or 1e-3 * float(np.nanmean(np.abs(matrix)))
        completed = complete(matrix, self.config.rank or min(3, len(matrix)), ridge, self.config.sweeps)
        games = np.column_stack([np.zeros(len(completed)), completed])  # nobody gains nothing, by definition
        return {
            number: dict(zip(clients, shapley(game).tolist(), strict=True))
            for number, game in zip(rows, games, strict=True)
        }

    def _pending(self) -> tuple[int, ...]:
        return tuple(self._state)

    def _dump_state(self, state: Rows) -> tuple[dict[str, Any], dict[str, Array]]:
        rows = [[number, [client_to_json(client) for client in present]] for number, (present, _) in state.items()]
        return {"rows": rows}, {f"gains.{place}": gains for place, (_, gains) in enumerate(state.values())}

    def _load_state(self, facts: dict[str, Any], arrays: dict[str, Array]) -> Rows:
        return {
            int(number): (tuple(client_from_json(client) for client in present), arrays[f"gains.{place}"])
            for place, (number, present) in enumerate(facts["rows"])
        }


def _clients(rows: Rows) -> tuple[Client, ...]:
    return in_order({client for present, _ in rows.values() for client in present})


def _matrix(rows: Rows, clients: tuple[Client, ...]) -> Values:
    """A row for each round, a column for each coalition but ∅; NaN where a member was absent."""
    index = {client: place for place, client in enumerate(clients)}
    matrix = np.full((len(rows), 2 ** len(clients) - 1), np.nan)
    for place, (present, gains) in enumerate(rows.values()):
        for coalition in range(1, len(gains)):
            column = sum(1 << index[present[player]] for player in members(coalition))
            matrix[place, column - 1] = gains[coalition]
    unobserved = np.isnan(matrix).all(axis=0)
    if unobserved.any():
        group = [clients[player] for player in members(int(unobserved.argmax()) + 1)]
        raise BadRound(
            f"ComFedSV needs a round in which all clients take part; {group} never took part together."
            " Observe such a round, or use fedsv"
        )
    return matrix
