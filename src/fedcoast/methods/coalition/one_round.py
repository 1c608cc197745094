"""OR: one Shapley value for the whole training, from models rebuilt afterwards from the uploads of each coalition.

    replay   θ_S^t = θ_S^{t−1} + Σ_{i∈S∩I_t} w_i·Δ_i^t / Σ_{j∈S∩I_t} w_j,  θ_S^0 = Θ^0
    score    the Shapley value of v(S) = U(θ_S^T) after the last round T

Paper: Song, Tong, Wei, "Profit Allocation for Federated Learning", IEEE Big Data 2019 (OR).
Needs: a utility; no full participation.
Cost: 2^N evaluations in all, made when the answer is requested; one sum of updates for each client, or more (below).
Deviations: exact for any participation and weights, and without a model for each of the 2^N coalitions: the replay
is linear in the updates, so rounds in which the same clients took part with the same relative weights need one sum
for each client. Each other set of participants and weights needs sums of its own. Entries that nobody trains are those
of the members' last round. The replay differs from what S would have trained, since updates were made at the
real Θ; that is OR. The credit of the whole training is that of the last round, and is not final while rounds follow.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedcoast.errors import Client
from fedcoast.methods.coalition.coalition_models import merge, replay
from fedcoast.methods.coalition.config import CoalitionConfig
from fedcoast.methods.coalition.game import UtilityAssessor
from fedcoast.methods.coalition.games import members, shapley, tabulate
from fedcoast.methods.coalition.utility import Evaluator, Utility
from fedcoast.methods.ledger import Credits
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.clients import client_from_json, client_to_json, in_order
from fedcoast.rounds.round_view import RoundView

Arrays = dict[str, Array]
Cohort = tuple[tuple[Client, float], ...]  # the clients of a round with their weights


@dataclass(frozen=True, eq=False)
class _History:
    """Everything that a replay needs. It is never changed: a round makes a new one."""

    origin: Arrays
    sums: Mapping[Cohort, Mapping[Client, Arrays]] = field(default_factory=dict)
    untrained: Mapping[Client, tuple[int, float, Arrays]] = field(default_factory=dict)  # last round, weight, entries

    @property
    def clients(self) -> tuple[Client, ...]:
        return in_order(self.untrained)


class OneRound(UtilityAssessor[CoalitionConfig]):
    """Options are those of `CoalitionConfig`; `utility` and `force` as in `fedcoast.methods.coalition.game`."""

    method = "one-round"
    credits_absent = True  # the one credit there is stands for all rounds
    remembers_everything = True  # at worst: when no two rounds have the same participants and weights

    def __init__(
        self,
        utility: Utility | Evaluator,
        config: CoalitionConfig | None = None,
        *,
        force: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(utility, config, force=force, **options)
        self._valued: tuple[_History | None, dict[Client, float]] = (None, {})

    def _step(self, view: RoundView, state: _History | None) -> tuple[Credits, _History]:
        start = view.start
        history = state or _History({name: array.copy() for name, array in start.items()})
        trained = [entry.name for entry in view.schema.trainable]
        others = [name for name in start if name not in set(trained)]
        moved: dict[Client, Arrays] = {}
        untrained: dict[Client, Arrays] = {}
        for client, model in view.uploads():
            with np.errstate(over="ignore"):
                moved[client] = {name: model[name].astype(np.float64) - start[name] for name in trained}
            untrained[client] = {name: model[name].copy() for name in others}
        self._check_players(len({*history.untrained, *moved}), f"with round {view.number} there are")
        weights = dict(zip(moved, self._weights(view, tuple(moved)), strict=True))
        cohort = tuple(weights.items())
        for client, before in history.sums.get(cohort, {}).items():
            for name, total in before.items():
                moved[client][name] = np.asarray(moved[client][name] + total)
        return {}, _History(
            history.origin,
            {**history.sums, cohort: moved} if moved else history.sums,
            {**history.untrained, **{c: (view.number, weights[c], untrained[c]) for c in moved}},
        )

    def _credits(self) -> Credits:
        history: _History | None = self._state
        if history is None or self.last_round is None:
            return {}
        if self._valued[0] is not history:
            self._valued = (history, self._value(history))
        return {self.last_round: dict(self._valued[1])}

    def _pending(self) -> tuple[int, ...]:
        return () if self.last_round is None else (self.last_round,)

    def _value(self, history: _History) -> dict[Client, float]:
        clients = history.clients
        if not clients:
            return {}
        index = {client: place for place, client in enumerate(clients)}
        cohorts = [
            {index[client]: (weight, sums[client]) for client, weight in cohort}
            for cohort, sums in history.sums.items()
        ]

        def models(coalitions: Sequence[int]) -> Iterator[Arrays]:
            for coalition in coalitions:
                model = replay(history.origin, cohorts, coalition, self.config.denominator)
                yield {**model, **_untrained_entries(history, [clients[player] for player in members(coalition)])}

        table = tabulate(
            lambda coalitions: self.evaluator.worths(
                history,
                coalitions,
                models,
                lambda coalition: f"the replay of {[clients[player] for player in members(coalition)]}",
            ),
            len(clients),
        )
        self.evaluations += len(table)
        return dict(zip(clients, shapley(table).tolist(), strict=True))

    def _dump_state(self, history: _History | None) -> tuple[dict[str, Any], dict[str, Array]]:
        if history is None:
            return {}, {}
        names = list(history.origin)
        arrays = {f"origin.{names.index(name)}": array for name, array in history.origin.items()}
        for place, of in enumerate(history.sums.values()):
            for index, model in enumerate(of.values()):
                arrays.update({f"sum.{place}.{index}.{names.index(name)}": array for name, array in model.items()})
        for index, client in enumerate(history.clients):
            model = history.untrained[client][2]
            arrays.update({f"carried.{index}.{names.index(name)}": array for name, array in model.items()})
        cohorts = [[[client_to_json(client), weight] for client, weight in cohort] for cohort in history.sums]
        untrained = [[client_to_json(c), *history.untrained[c][:2]] for c in history.clients]
        return {"layers": names, "mixes": cohorts, "carried": untrained}, arrays

    def _load_state(self, facts: dict[str, Any], arrays: dict[str, Array]) -> _History | None:
        if not facts:
            return None
        names = facts["layers"]

        def model(prefix: str) -> Arrays:
            places = range(len(names))
            return {names[k]: arrays[f"{prefix}.{k}"] for k in places if f"{prefix}.{k}" in arrays}

        cohorts = [tuple((client_from_json(client), float(weight)) for client, weight in one) for one in facts["mixes"]]
        return _History(
            model("origin"),
            {
                cohort: {client: model(f"sum.{place}.{index}") for index, (client, _) in enumerate(cohort)}
                for place, cohort in enumerate(cohorts)
            },
            {
                client_from_json(client): (int(number), float(weight), model(f"carried.{index}"))
                for index, (client, number, weight) in enumerate(facts["carried"])
            },
        )


def _untrained_entries(history: _History, group: Sequence[Client]) -> Arrays:
    """The entries that nobody trains, from the last round with any of the group, merged over those who were there."""
    last = max((history.untrained[client][0] for client in group), default=None)
    present = [history.untrained[client] for client in group if history.untrained[client][0] == last]
    if not present:
        return {}
    origin = {name: history.origin[name] for name in present[0][2]}
    everyone = (1 << len(present)) - 1
    return next(merge(origin, [model for *_, model in present], [weight for _, weight, _ in present], [everyone]))
