"""The answer: what each client contributed, in total and round by round."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from fedcoast.errors import BadFile, Client
from fedcoast.methods.notebook import as_frame, as_html
from fedcoast.methods.option_checks import is_number
from fedcoast.methods.text import as_text, csv_name, csv_row, printable
from fedcoast.rounds.clients import client_from_json, client_to_json, in_order
from fedcoast.stats.participation_adjustment import connected, evened
from fedcoast.stats.ranking import paper_ranks, spearman
from fedcoast.storage.old_settings import translated

if TYPE_CHECKING:
    from rich.table import Table

FORMAT = "fedcoast-assessment"
VERSION = 1
_UNCHANGED = "unchanged:"  # before the credit of a client that returned the model it was sent
_COLUMNS = ["client", "type", "rank", "score", "mean", "seen", "quarantined", "method", "settings"]


@dataclass(frozen=True)
class Assessment:
    """Scores, and everything they were summed from.

    `scores` maps each client to its total, `credits` each valued round to the credit of everyone who took part
    in it, `seen` each client to the number of rounds its score counts. `pending` are the rounds whose
    credit is not final, because their future is not known yet. `quarantined` says whose upload was left out,
    in which round and why,
    `unchanged` who returned the model it was sent. A client that is only in pending or quarantined rounds has score
    0, seen in 0.
    """

    method: str
    scores: Mapping[Client, float]
    credits: Mapping[int, Mapping[Client, float]] = field(default_factory=dict)
    pending: tuple[int, ...] = ()
    seen: Mapping[Client, int] = field(default_factory=dict)
    quarantined: Mapping[int, Mapping[Client, str]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    unchanged: Mapping[int, tuple[Client, ...]] = field(default_factory=dict)

    @property
    def clients(self) -> tuple[Client, ...]:
        return in_order(self.scores)

    @property
    def counted(self) -> tuple[int, ...]:
        """The valued rounds that the scores count: a setting may leave out a warm-up, or all but the last ones."""
        numbers, chosen = tuple(self.credits), self.settings.get("score_rounds")
        return numbers[slice(*chosen)] if _is_range(chosen) else numbers

    @property
    def zero_is_idle(self) -> bool:
        """Whether a client that does nothing scores 0: CoAst in all readings but those that leave the baseline on."""
        compares_updates = self.settings.get("signal") in ("ballot", "update")
        return self.method == "coast" and (compares_updates or self.settings.get("baseline") == "idle")

    @property
    def mean(self) -> dict[Client, float]:
        """The score per round seen. Rounds differ: of clients that were in other rounds, compare what is `evened`."""
        return {
            client: self.scores[client] / self.seen[client] if self.seen[client] else float("nan")
            for client in self.clients
        }

    @property
    def missed(self) -> bool:
        """Whether anybody has no credit in a round that counts."""
        return any(len(self.credits[number]) < len(self.scores) for number in self.counted)

    @property
    def additive(self) -> bool:
        """Whether the scores are the sums of the counted credits; those of some methods are moving averages."""
        scores = np.array(list(self.scores.values()), dtype=np.float64)
        table = self.credits_of(tuple(self.scores))
        sums = np.nansum(table, axis=0)
        largest = float(np.nanmax(np.abs(table), initial=0))
        return bool(np.allclose(sums, scores, rtol=1e-9, atol=1e-9 * largest))

    @property
    def uneven(self) -> bool:
        """Whether clients should be compared by what is evened: somebody missed a round, and scores are sums."""
        return self.missed and self.additive

    @property
    def evened(self) -> dict[Client, float]:
        """The credit per round as if everybody had been in every counted round (see `formulas.evening`).

        The mean where everybody was; NaN for clients without a credit. It is of the credits, also where a method's
        scores are no sums of them. Where `strangers` are among the clients, it compares those that met alone.
        """
        return dict(zip(self.clients, evened(self.credits_of(self.clients)).tolist(), strict=True))

    @property
    def strangers(self) -> bool:
        """Whether no chain of common rounds connects some of the clients: what is evened cannot compare those."""
        if not self.missed:
            return False
        present = ~np.isnan(self.credits_of(self.clients))
        return len(set(connected(present)[present.any(axis=0)].tolist())) > 1

    def credits_of(self, clients: Sequence[Client]) -> NDArray[np.float64]:
        """The credits that count, a row a round and a column for each of the clients; NaN where one has none."""
        places, numbers = {client: place for place, client in enumerate(clients)}, self.counted
        table = np.full((len(numbers), len(places)), np.nan)
        for row, number in enumerate(numbers):
            given = {places[client]: credit for client, credit in self.credits[number].items() if client in places}
            table[row, list(given)] = list(given.values())
        return table

    @property
    def ranks(self) -> dict[Client, int]:
        """1 for the best; tied clients share the worst rank of their tie, as the paper defines it."""
        return dict(zip(self.clients, paper_ranks([self.scores[c] for c in self.clients]), strict=True))

    @property
    def ranking(self) -> tuple[Client, ...]:
        """The clients from the best down."""
        return tuple(sorted(self.clients, key=self.ranks.__getitem__))

    def spearman(self, truth: Mapping[Client, float]) -> float:
        """How well the scores rank the clients as the truth does: 1 alike, −1 reversed, NaN if one is constant."""
        return spearman([truth[c] for c in self.clients], [self.scores[c] for c in self.clients])

    def dropped(self, client: Client) -> int:
        """In how many rounds the client's upload was quarantined."""
        return sum(client in names for names in self.quarantined.values())

    def to_json(self) -> str:
        clients, mean, ranks = self.clients, self.mean, self.ranks
        returned = {str(number): [client in of for client in clients] for number, of in self.unchanged.items()}
        return json.dumps(
            {
                "format": FORMAT,
                "version": VERSION,
                "method": self.method,
                "settings": self.settings,
                "clients": [client_to_json(client) for client in clients],
                "scores": [self.scores[client] for client in clients],
                "seen": [self.seen[client] for client in clients],
                "mean": [mean[client] if self.seen[client] else None for client in clients],
                "ranks": [ranks[client] for client in clients],
                "pending": self.pending,
                "credits": {str(number): [of.get(client) for client in clients] for number, of in self.credits.items()},
                "quarantined": {
                    str(number): [of.get(client) for client in clients] for number, of in self.quarantined.items()
                },
                **({"unchanged": returned} if returned else {}),
            },
            indent=1,
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str) -> "Assessment":
        try:
            data = json.loads(text)
            if data["format"] != FORMAT or data["version"] != VERSION:
                raise BadFile(f"a {FORMAT} of version {VERSION} is wanted; got {data['format']} {data['version']}")
            clients = [client_from_json(client) for client in data["clients"]]
            answer = cls(
                method=data["method"],
                settings=translated(data["method"], data["settings"]),
                scores=dict(zip(clients, data["scores"], strict=True)),
                seen=dict(zip(clients, data["seen"], strict=True)),
                pending=tuple(data["pending"]),
                credits={int(n): _present(clients, row) for n, row in data["credits"].items()},
                quarantined={int(n): _present(clients, row) for n, row in data["quarantined"].items()},
                unchanged={
                    int(n): tuple(client for client, returned in zip(clients, row, strict=True) if returned)
                    for n, row in data.get("unchanged", {}).items()
                },
            )
            return _checked(answer)
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            if isinstance(error, BadFile):
                raise
            raise BadFile(f"this is not an assessment in JSON ({type(error).__name__}: {error})") from error

    def to_csv(self) -> str:
        """One row a client, best first; a column for each round holds its credit, or why it was quarantined."""
        numbers = sorted({*self.credits, *self.pending, *self.quarantined})
        heads = [f"round {n}" + (" pending" if n in self.pending else "") for n in numbers]
        rows = [csv_row(_COLUMNS + heads)]
        settings, mean, ranks = json.dumps(self.settings), self.mean, self.ranks
        for client in self.ranking:
            fixed = [
                csv_name(client),
                type(client).__name__,
                ranks[client],
                repr(self.scores[client]),
                mean[client] if self.seen[client] else "",
                self.seen[client],
                self.dropped(client),
                self.method,
                settings,
            ]
            rows.append(csv_row(fixed + [self._cell(number, client) for number in numbers]))
        return "".join(rows)

    def _cell(self, number: int, client: Client) -> str:
        if client in self.quarantined.get(number, {}):
            return f"quarantined: {self.quarantined[number][client]}"
        credit = self.credits.get(number, {}).get(client)
        if client in self.unchanged.get(number, ()):
            return _UNCHANGED if credit is None else f"{_UNCHANGED} {credit!r}"
        return "" if credit is None else repr(credit)

    @classmethod
    def from_csv(cls, text: str) -> "Assessment":
        """Read back what `to_csv` wrote. An assessment without clients has no rows, so it cannot come back."""
        try:
            rows = list(csv.reader(io.StringIO(text, newline="")))
        except csv.Error as error:
            raise BadFile(f"this is not an assessment in CSV ({error})") from error
        if len(rows) < 2 or rows[0][: len(_COLUMNS)] != _COLUMNS:
            raise BadFile(f"an assessment in CSV starts with the columns {', '.join(_COLUMNS)} and has a row a client")
        heads = [head.split() for head in rows[0][len(_COLUMNS) :]]
        try:
            scores, seen = {}, {}
            given: dict[int, dict[Client, float]] = {int(head[1]): {} for head in heads if head[-1] != "pending"}
            reasons: dict[int, dict[Client, str]] = {}
            returned: dict[int, tuple[Client, ...]] = {}
            for row in rows[1:]:
                client: Client = int(row[0].removeprefix("'")) if row[1] == "int" else row[0].removeprefix("'")
                scores[client], seen[client] = _number(row[3]), int(row[5])
                for head, cell in zip(heads, row[len(_COLUMNS) :], strict=True):
                    if cell.startswith(_UNCHANGED):
                        returned[int(head[1])] = (*returned.get(int(head[1]), ()), client)
                        cell = cell.removeprefix(_UNCHANGED).strip()
                    if cell.startswith("quarantined: "):
                        reasons.setdefault(int(head[1]), {})[client] = cell.removeprefix("quarantined: ")
                    elif cell:
                        given.setdefault(int(head[1]), {})[client] = _number(cell)
            answer = cls(
                method=rows[1][7],
                settings=translated(rows[1][7], json.loads(rows[1][8])),
                scores=scores,
                seen=seen,
                pending=tuple(int(head[1]) for head in heads if head[-1] == "pending"),
                credits=given,
                quarantined=reasons,
                unchanged={number: in_order(of) for number, of in sorted(returned.items())},
            )
            return _checked(answer)
        except (ValueError, IndexError, AttributeError) as error:
            raise BadFile(f"this is not an assessment in CSV ({error})") from error

    def table(self, truth: Mapping[Client, float] | None = None) -> "Table":
        """The ranking for a terminal; with a planted truth, its ranks beside."""
        from rich.table import Table
        from rich.text import Text

        table = Table("rank", "client", "score", "rounds", "per round")
        for column in table.columns[2:]:
            column.justify = "right"
        table.columns[0].justify = "right"
        evens = self.uneven
        level = self.evened if evens else {}
        if evens:
            table.add_column("evened", justify="right")
        any_dropped = any(self.quarantined.values())
        if any_dropped:
            table.add_column("quarantined", justify="right")
        if truth is not None:
            table.add_column("planted rank", justify="right")
            planted = dict(zip(truth, paper_ranks(list(truth.values())), strict=True))
        mean, ranks = self.mean, self.ranks
        for client in self.ranking:
            per_round = f"{mean[client]:,.2f}" if self.seen[client] else "–"
            numbers = [f"{self.scores[client]:,}", str(self.seen[client]), per_round]
            numbers += [f"{level[client]:,.2f}" if self.seen[client] else "–"] if evens else []
            numbers += [str(self.dropped(client) or "")] if any_dropped else []
            numbers += [] if truth is None else [str(planted[client])]
            table.add_row(str(ranks[client]), Text(printable(client)), *numbers)
        said = ["somebody missed a round: compare what is evened"] if evens else []
        if evens and self.strangers:
            said.append("some never met, not even through others: it compares not those")
        said += [f"not final yet: round {', '.join(map(str, self.pending))}"] if self.pending else []
        table.caption = "\n".join(said) or None
        return table

    def __rich__(self) -> "Table":
        return self.table()

    def to_frame(self) -> Any:
        """A pandas DataFrame, a row for each client; needs pandas, which `fedcoast[plots]` brings."""
        return as_frame(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    def __str__(self) -> str:
        return as_text(self)


def _checked(answer: Assessment) -> Assessment:
    """The same answer, once everything in it is of the type it should be: a file may hold anything."""
    for row in (answer.scores, answer.seen, *answer.credits.values()):
        for client, value in row.items():
            if not is_number(value):
                raise ValueError(f"client {client!r} has {value!r} where a number is wanted")
    if not all(isinstance(reason, str) for of in answer.quarantined.values() for reason in of.values()):
        raise ValueError("the reasons of a quarantine are text")
    if not isinstance(answer.method, str) or not isinstance(answer.settings, dict):
        raise ValueError("it does not say which method it is of, with which settings")
    if not all(type(number) is int for number in answer.pending):
        raise ValueError("pending rounds are numbers")
    for name, (wanted, fits) in _READ_SETTINGS.items():
        if answer.method == "coast" and name in answer.settings and not fits(answer.settings[name]):
            raise ValueError(f"the setting {name} must be {wanted}; it is {answer.settings[name]!r}")
    return answer


def _is_range(value: object) -> TypeGuard[list[int | None]]:
    return isinstance(value, list) and len(value) == 2 and all(end is None or type(end) is int for end in value)


# Settings of CoAst that readers of its answers count with; all others are only shown.
_READ_SETTINGS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "horizon": ("a whole number", lambda value: type(value) is int),
    "past_weight": ("a number", is_number),
    "score_rounds": ("the first and the last that count, each a whole number or null", _is_range),
}


def _present(clients: list[Client], row: Iterable[Any]) -> dict[Client, Any]:
    return {client: cell for client, cell in zip(clients, row, strict=True) if cell is not None}


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float(text)
