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
from fedcoast.methods.base import Uploads
from fedcoast.methods.coalition.config import CoalitionConfig
from fedcoast.methods.coalition.game import GameAssessor, RoundGame
from fedcoast.methods.coalition.games import Values, members, shapley
from fedcoast.methods.coalition.utility import Evaluator, Utility
from fedcoast.methods.ledger import Credits
from fedcoast.methods.option_checks import check_count, is_number
from fedcoast.methods.options import option
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.clients import client_from_json, client_to_json, in_order
from fedcoast.rounds.round import Round
from fedcoast.rounds.schema import ModelSchema

Row = tuple[tuple[Client, ...], Values]  # the clients present, and what their coalitions gained


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

    def __init__(
        self, utility: Utility | Evaluator, config: ComFedSVConfig | None = None, *, force: bool = False, **options: Any
    ) -> None:
        super().__init__(utility, config, force=force, **options)
        self._rows: dict[int, Row] = {}

    def _take(self, fl_round: Round, schema: ModelSchema, uploads: Uploads) -> Credits:
        self._check_players(len({*self._clients(), *fl_round.clients}), f"with round {fl_round.number} there are")
        game = self._game(fl_round, schema, uploads)
        gains = self._values(game)
        self.evaluations += len(game.worths)
        self._rows = {**self._rows, fl_round.number: (game.clients, gains)}
        return {}

    def _values(self, game: RoundGame) -> Values:
        """The round's row of the matrix, over the coalitions of the clients present."""
        worths = game.table()
        return np.asarray(worths - worths[0])

    def _clients(self) -> tuple[Client, ...]:
        return in_order({client for present, _ in self._rows.values() for client in present})

    def _credits(self) -> Credits:
        clients = self._clients()
        if not clients:
            return {}
        matrix = self._matrix(clients)
        ridge = self.config.ridge or 1e-3 * float(np.nanmean(np.abs(matrix)))
        completed = complete(matrix, self.config.rank or min(3, len(matrix)), ridge, self.config.sweeps)
        games = np.column_stack([np.zeros(len(completed)), completed])  # nobody gains nothing, by definition
        return {
            number: dict(zip(clients, shapley(game).tolist(), strict=True))
            for number, game in zip(self._rows, games, strict=True)
        }

    def _matrix(self, clients: tuple[Client, ...]) -> Values:
        """A row for each round, a column for each coalition but ∅; NaN where a member was absent."""
        seats = {client: seat for seat, client in enumerate(clients)}
        matrix = np.full((len(self._rows), 2 ** len(clients) - 1), np.nan)
        for place, (present, gains) in enumerate(self._rows.values()):
            for coalition in range(1, len(gains)):
                column = sum(1 << seats[present[player]] for player in members(coalition))
                matrix[place, column - 1] = gains[coalition]
        unheard = np.isnan(matrix).all(axis=0)
        if unheard.any():
            group = [clients[seat] for seat in members(int(unheard.argmax()) + 1)]
            raise BadRound(
                f"ComFedSV needs a round in which all clients take part; {group} never took part together."
                " Observe such a round, or use fedsv"
            )
        return matrix

    def _pending(self) -> tuple[int, ...]:
        return tuple(self._rows)

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        rows = [[number, [client_to_json(client) for client in present]] for number, (present, _) in self._rows.items()]
        return {"rows": rows}, {f"gains.{place}": gains for place, (_, gains) in enumerate(self._rows.values())}

    def _restore(self, facts: dict[str, Any], arrays: dict[str, Array]) -> None:
        self._rows = {
            int(number): (tuple(client_from_json(client) for client in present), arrays[f"gains.{place}"])
            for place, (number, present) in enumerate(facts["rows"])
        }
