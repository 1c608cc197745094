"""The ledger of an assessor: credits by round and client, and the uploads that were left out."""

from collections.abc import Iterable, Mapping
from typing import Any

from fedcoast.errors import Client
from fedcoast.methods.option_checks import LARGEST, is_number
from fedcoast.rounds.clients import client_from_json, client_to_json, in_order

Credits = dict[int, dict[Client, float]]


class Ledger:
    """Grows by a few numbers each round; it keeps everything that scores are summed from."""

    def __init__(self) -> None:
        self.credits: Credits = {}
        self.quarantined: dict[int, dict[Client, str]] = {}
        self.unchanged: dict[int, list[Client]] = {}  # clients that returned the model they were sent
        self._met: set[Client] = set()

    @property
    def clients(self) -> tuple[Client, ...]:
        """Everyone who ever answered, usably or not."""
        return in_order(self._met)

    def enter(
        self,
        number: int,
        answered: Iterable[Client],
        quarantined: Mapping[Client, str],
        credits: Credits,
        unchanged: Iterable[Client] = (),
    ) -> None:
        """Note one observed round, and the credits it made final."""
        self._met.update(answered, quarantined)
        if quarantined:
            self.quarantined[number] = dict(quarantined)
        if returned := list(unchanged):
            self.unchanged[number] = returned
        self.credits.update(credits)

    def to_json(self) -> dict[str, Any]:
        returned = [[number, [client_to_json(c) for c in of]] for number, of in self.unchanged.items()]
        return {
            **({"unchanged": returned} if returned else {}),
            "credits": _rows(self.credits),
            "quarantined": _rows(self.quarantined),
            "met": [client_to_json(client) for client in self.clients],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Ledger":
        ledger = cls()
        ledger.credits = _table(data["credits"])
        ledger.quarantined = _table(data["quarantined"])
        rows = data.get("unchanged", [])  # absent where nobody did, and from earlier versions
        ledger.unchanged = {number: [client_from_json(client) for client in of] for number, of in rows}
        ledger._met = {client_from_json(client) for client in data["met"]}
        ledger._check()
        return ledger

    def _check(self) -> None:
        """Refuse what no assessor writes: a file may hold anything."""
        for table in (self.credits, self.quarantined, self.unchanged):
            if not all(type(number) is int for number in table):
                raise ValueError("rounds are whole numbers")
            if unknown := {client for of in table.values() for client in of} - self._met:
                raise ValueError(f"client {min(unknown, key=str)!r} never answered")
        for value in (value for of in self.credits.values() for value in of.values()):
            if not is_number(value) or abs(value) > LARGEST:
                raise ValueError(f"a credit is a finite number; got {value!r}")
        if not all(isinstance(reason, str) for of in self.quarantined.values() for reason in of.values()):
            raise ValueError("the reasons of a quarantine are text")


def totals(credits: Credits, clients: Iterable[Client]) -> tuple[dict[Client, float], dict[Client, int]]:
    """Each client's sum of credits, and the number of rounds in it.

    >>> totals({1: {"a": 2}, 2: {"a": 1, "b": 5}}, ["a", "b", "c"])
    ({'a': 3, 'b': 5, 'c': 0}, {'a': 2, 'b': 1, 'c': 0})
    """
    scores: dict[Client, float] = dict.fromkeys(clients, 0)
    rounds_scored = dict.fromkeys(scores, 0)
    for of_round in credits.values():
        for client, credit in of_round.items():
            scores[client] += credit
            rounds_scored[client] += 1
    return scores, rounds_scored


def scaled(credits: Credits, factors: Mapping[Client, float]) -> Credits:
    """The credits of each client multiplied by its factor, where it has one.

    >>> scaled({1: {"a": 2, "b": 5}}, {"a": 0.5})
    {1: {'a': 1.0, 'b': 5}}
    """
    if not factors:
        return credits
    return {
        number: {client: credit * factors[client] if client in factors else credit for client, credit in of.items()}
        for number, of in credits.items()
    }


def _rows(table: Mapping[int, Mapping[Client, Any]]) -> list[Any]:
    return [[number, [[client_to_json(c), value] for c, value in of.items()]] for number, of in table.items()]


def _table(rows: Iterable[Any]) -> dict[int, dict[Client, Any]]:
    return {number: {client_from_json(client): value for client, value in of} for number, of in rows}
