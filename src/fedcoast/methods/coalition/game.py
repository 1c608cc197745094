"""A round as a cooperative game: the players are the clients that answered, a coalition is worth what its model is.

    θ_S = Θ^{t−1} + Σ_{i∈S} w_i·(θ_i^t − Θ^{t−1}) / D,    v_t(S) = U(θ_S),    θ_∅ = Θ^{t−1}

Each method only defines, in its own file, how these worths become credits.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from fedcoast.errors import BadSetting, Client
from fedcoast.methods.coalition.coalition_models import Denominator, divisor, merge, scaled
from fedcoast.methods.coalition.config import CoalitionConfig
from fedcoast.methods.coalition.games import Values, members, tabulate
from fedcoast.methods.coalition.utility import Evaluator, Utility
from fedcoast.methods.configured import ConfiguredAssessor
from fedcoast.methods.ledger import Credits
from fedcoast.methods.updates import shares
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.round import Round
from fedcoast.rounds.round_view import RoundView

Config = TypeVar("Config", bound=CoalitionConfig)

MOST_PLAYERS = 15


class RoundGame:
    """One round as a game: called with coalitions, it returns their worths. `worths` has all needed so far."""

    def __init__(
        self,
        fl_round: Round,
        start: Mapping[str, Array],
        local: Mapping[Client, Mapping[str, Array]],
        weights: Sequence[float],
        denominator: Denominator,
        evaluator: Evaluator,
    ) -> None:
        self.number, self.clients = fl_round.number, tuple(local)
        self.worths: dict[int, float] = {}
        self._round, self._start, self._local = fl_round, start, list(local.values())
        self._weights, self._denominator, self._evaluator = weights, denominator, evaluator

    @property
    def players(self) -> int:
        return len(self.clients)

    def __call__(self, coalitions: Sequence[int]) -> list[float]:
        missing = sorted({coalition for coalition in coalitions if coalition not in self.worths})
        worths = self._evaluator.worths(
            self._round,
            [self._key(coalition) for coalition in missing],
            lambda places: merge(
                self._start, self._local, self._weights, [missing[place] for place in places], self._denominator
            ),
            lambda place: f"the coalition {list(self.members(missing[place]))} of round {self.number}",
        )
        self.worths.update(zip(missing, worths, strict=True))
        return [self.worths[coalition] for coalition in coalitions]

    def members(self, coalition: int) -> tuple[Client, ...]:
        return tuple(self.clients[player] for player in members(coalition))

    def table(self) -> Values:
        """The worths of all coalitions."""
        return tabulate(self, self.players)

    def generator(self, seed: int) -> np.random.Generator:
        """Random numbers of this round alone: neither a resume nor what other rounds drew changes them."""
        return np.random.default_rng([seed, self.number])

    def _key(self, coalition: int) -> tuple[Any, ...]:
        """What determines a coalition's model within a round: its members and their weights."""
        who = tuple((self.clients[player], self._weights[player]) for player in members(coalition))
        return who, divisor(self._weights, coalition, self._denominator)


class UtilityAssessor(ConfiguredAssessor[Config]):
    """Base of the methods that value coalitions by a utility.

    utility  model -> float, larger is better (minus the validation loss, say), or an `Evaluator` to share
    config   the method's options; they can also be given as keywords
    force    value all 2^N coalitions also of more than 15 clients

    `evaluations` is how many coalitions this method needed; a shared evaluator may have asked for fewer.
    """

    exhaustive = True  # whether it asks about all 2^N coalitions, unless its configuration samples them

    def __init__(
        self, utility: Utility | Evaluator, config: Config | None = None, *, force: bool = False, **options: Any
    ) -> None:
        super().__init__(config, **options)
        self.evaluator = Evaluator.of(utility)
        self.force = force
        self.evaluations = 0

    @property
    def settings(self) -> dict[str, Any]:
        return {"utility": self.evaluator.name, **super().settings}

    def _weights(self, view: RoundView, clients: Sequence[Client]) -> list[float]:
        weight_of = shares(view, clients) if self.config.weights == "round" else dict.fromkeys(clients, 1.0)
        return scaled([weight_of[client] for client in clients])

    def _check_players(self, count: int, who: str) -> None:
        asks_all = self.exhaustive and not self.config.sampled
        if asks_all and count > MOST_PLAYERS and not self.force:
            raise BadSetting(
                f"{who} {count} clients, and {self.method} evaluates all 2^{count} = {2**count:,} of their"
                f" coalitions; above {MOST_PLAYERS} it does so only with force=True. Sampling needs fewer: tmc-shapley,"
                " gtg-shapley"
            )


class GameAssessor(UtilityAssessor[Config]):
    """Plays each round as a game of its own; `_values` says what the players are worth."""

    def _step(self, view: RoundView, state: Any) -> tuple[Credits, Any]:
        game = self._game(view)
        try:
            values = self._values(game) if game.players else np.zeros(0)
        finally:
            self.evaluations += len(game.worths)
        return {view.number: {c: float(value) for c, value in zip(game.clients, values, strict=True)}}, state

    def _game(self, view: RoundView) -> RoundGame:
        self._check_players(len(view.clients), f"round {view.number} has")
        local = dict(view.uploads())
        weights = self._weights(view, tuple(local))
        return RoundGame(view.fl_round, view.start, local, weights, self.config.denominator, self.evaluator)

    @abstractmethod
    def _values(self, game: RoundGame) -> Values:
        """What each player of the game is worth, in their order; there is at least one."""
