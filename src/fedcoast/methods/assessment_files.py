"""Assessments to and from JSON and CSV."""

import csv
import io
import json
from collections.abc import Iterable
from typing import Any

from fedcoast.errors import BadFile, Client
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.option_checks import LARGEST, is_number
from fedcoast.methods.text import csv_name, csv_row
from fedcoast.rounds.clients import client_from_json, client_to_json, in_order
from fedcoast.storage.old_settings import translated

FORMAT = "fedcoast-assessment"
VERSION = 1
_UNCHANGED = "unchanged:"  # before the credit of a client that returned the model it was sent
_COLUMNS = ["client", "type", "rank", "score", "mean", "seen", "quarantined", "method", "settings"]
_METHOD_FIELDS = ("zero_is_idle", "dependence_span", "counted_rounds")  # what files of earlier versions do not say


def to_json(answer: Assessment) -> str:
    returned = {str(number): [client in of for client in answer.clients] for number, of in answer.unchanged.items()}
    clients, mean, ranks, scored = answer.clients, answer.mean, answer.ranks, answer.rounds_scored
    unordered = sorted(sorted(clients.index(client) for client in pair) for pair in answer.unordered)
    return json.dumps(
        {
            "format": FORMAT,
            "version": VERSION,
            "method": answer.method,
            "settings": answer.settings,
            **{name: getattr(answer, name) for name in _METHOD_FIELDS},
            "clients": [client_to_json(client) for client in clients],
            "scores": [answer.scores[client] for client in clients],
            "seen": [scored[client] for client in clients],
            "mean": [mean[client] if scored[client] else None for client in clients],
            "ranks": [ranks[client] for client in clients],
            "pending": answer.pending,
            "credits": {str(number): [of.get(client) for client in clients] for number, of in answer.credits.items()},
            "quarantined": {
                str(number): [of.get(client) for client in clients] for number, of in answer.quarantined.items()
            },
            **({"unchanged": returned} if returned else {}),
            **({"unordered": unordered} if unordered else {}),
        },
        indent=1,
        allow_nan=False,
    )


def from_json(text: str) -> Assessment:
    try:
        data = json.loads(text)
        if data["format"] != FORMAT or data["version"] != VERSION:
            raise BadFile(f"a {FORMAT} of version {VERSION} is wanted; got {data['format']} {data['version']}")
        clients = [client_from_json(client) for client in data["clients"]]
        credits = {int(n): _present(clients, row) for n, row in data["credits"].items()}
        settings = translated(data["method"], data["settings"])
        given = {name: data[name] for name in _METHOD_FIELDS} if _METHOD_FIELDS[0] in data else None
        answer = Assessment(
            method=data["method"],
            settings=settings,
            scores=dict(zip(clients, data["scores"], strict=True)),
            rounds_scored=dict(zip(clients, data["seen"], strict=True)),
            pending=tuple(data["pending"]),
            credits=credits,
            quarantined={int(n): _present(clients, row) for n, row in data["quarantined"].items()},
            unchanged={
                int(n): tuple(client for client, returned in zip(clients, row, strict=True) if returned)
                for n, row in data.get("unchanged", {}).items()
            },
            unordered=tuple(_pair(clients, places) for places in data.get("unordered", ())),
            **_method_fields(data["method"], settings, credits, given),
        )
        return _checked(answer)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        if isinstance(error, BadFile):
            raise
        raise BadFile(f"this is not an assessment in JSON ({type(error).__name__}: {error})") from error


def _pair(clients: list[Client], places: Any) -> tuple[Client, Client]:
    one, other = places
    if {type(one), type(other)} != {int} or not 0 <= one < other < len(clients):
        raise ValueError(f"unordered clients are pairs of different places in the list of clients; got {places!r}")
    return clients[one], clients[other]


def to_csv(answer: Assessment) -> str:
    numbers = sorted({*answer.credits, *answer.pending, *answer.quarantined})
    heads = [f"round {n}" + (" pending" if n in answer.pending else "") for n in numbers]
    rows = [csv_row(_COLUMNS + heads)]
    settings, mean, ranks = json.dumps(answer.settings), answer.mean, answer.ranks
    for client in answer.ranking:
        fixed = [
            csv_name(client),
            type(client).__name__,
            ranks[client],
            repr(answer.scores[client]),
            mean[client] if answer.rounds_scored[client] else "",
            answer.rounds_scored[client],
            answer.quarantine_count(client),
            answer.method,
            settings,
        ]
        rows.append(csv_row(fixed + [_cell(answer, number, client) for number in numbers]))
    return "".join(rows)


def _cell(answer: Assessment, number: int, client: Client) -> str:
    if client in answer.quarantined.get(number, {}):
        return f"quarantined: {answer.quarantined[number][client]}"
    credit = answer.credits.get(number, {}).get(client)
    if client in answer.unchanged.get(number, ()):
        return _UNCHANGED if credit is None else f"{_UNCHANGED} {credit!r}"
    return "" if credit is None else repr(credit)


def from_csv(text: str) -> Assessment:
    try:
        rows = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise BadFile(f"this is not an assessment in CSV ({error})") from error
    if len(rows) < 2 or rows[0][: len(_COLUMNS)] != _COLUMNS:
        raise BadFile(f"an assessment in CSV starts with the columns {', '.join(_COLUMNS)} and has a row a client")
    heads = [head.split() for head in rows[0][len(_COLUMNS) :]]
    try:
        scores, scored = {}, {}
        credits: dict[int, dict[Client, float]] = {int(head[1]): {} for head in heads if head[-1] != "pending"}
        reasons: dict[int, dict[Client, str]] = {}
        returned: dict[int, tuple[Client, ...]] = {}
        for row in rows[1:]:
            client = client_from_json({"name": row[0].removeprefix("'"), "type": row[1]})
            scores[client], scored[client] = _number(row[3]), int(row[5])
            for head, cell in zip(heads, row[len(_COLUMNS) :], strict=True):
                if cell.startswith(_UNCHANGED):
                    returned[int(head[1])] = (*returned.get(int(head[1]), ()), client)
                    cell = cell.removeprefix(_UNCHANGED).strip()
                if cell.startswith("quarantined: "):
                    reasons.setdefault(int(head[1]), {})[client] = cell.removeprefix("quarantined: ")
                elif cell:
                    credits.setdefault(int(head[1]), {})[client] = _number(cell)
        method, settings = rows[1][7], translated(rows[1][7], json.loads(rows[1][8]))
        answer = Assessment(
            method=method,
            settings=settings,
            scores=scores,
            rounds_scored=scored,
            pending=tuple(int(head[1]) for head in heads if head[-1] == "pending"),
            credits=credits,
            quarantined=reasons,
            unchanged={number: in_order(of) for number, of in sorted(returned.items())},
            **_method_fields(method, settings, credits, None),
        )
        return _checked(answer)
    except (ValueError, IndexError, AttributeError, TypeError) as error:
        raise BadFile(f"this is not an assessment in CSV ({error})") from error


def _method_fields(
    method: str, settings: dict[str, Any], credits: dict[int, Any], given: dict[str, Any] | None
) -> dict[str, Any]:
    """What an answer says of its method, as a file gives it or as the method's configuration has it."""
    from fedcoast.methods.registry import config_of  # it names the methods, and these make assessments

    config = config_of(method, settings)
    if given is not None:
        counted = given["counted_rounds"]
        return {**given, "counted_rounds": None if counted is None else tuple(counted)}
    if config is None:
        return {}
    return {
        "zero_is_idle": config.zero_is_idle,
        "dependence_span": config.dependence_span,
        "counted_rounds": config.counted(tuple(credits)),
    }


def _checked(answer: Assessment) -> Assessment:
    """The same answer, once everything in it has the right type: a file may hold anything."""
    for row in (answer.scores, answer.rounds_scored, *answer.credits.values()):
        for client, value in row.items():
            if not is_number(value):
                raise ValueError(f"client {client!r} has {value!r} where a number is wanted")
            if abs(value) > LARGEST:
                raise ValueError(f"client {client!r} has {value!r}; numbers up to {LARGEST:g} can be counted with")
    if not all(type(count) is int and count >= 0 for count in answer.rounds_scored.values()):
        raise ValueError("rounds are counted in whole numbers of at least 0")
    if not all(isinstance(reason, str) for of in answer.quarantined.values() for reason in of.values()):
        raise ValueError("the reasons of a quarantine are text")
    if not isinstance(answer.method, str) or not isinstance(answer.settings, dict):
        raise ValueError("it does not say which method it is of, with which settings")
    json.dumps(answer.settings, allow_nan=False)  # ValueError where a setting is not a number, which JSON cannot hold
    if not all(type(number) is int for number in answer.pending):
        raise ValueError("pending rounds are numbers")
    if type(answer.zero_is_idle) is not bool or type(answer.dependence_span) is not int or answer.dependence_span < 0:
        raise ValueError("zero_is_idle is true or false, and dependence_span a number of rounds")
    if not set(answer.counted) <= set(answer.credits):
        raise ValueError("counted rounds are rounds with credits")
    return answer


def _present(clients: list[Client], row: Iterable[Any]) -> dict[Client, Any]:
    return {client: cell for client, cell in zip(clients, row, strict=True) if cell is not None}


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float(text)
