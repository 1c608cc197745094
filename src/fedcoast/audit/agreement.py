"""Whether a claim follows from a recording: the rounds are shown once more to an assessor of the same settings."""

import json
import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from fedcoast.assessors.assessor import Assessor
from fedcoast.assessors.remaking import remade
from fedcoast.audit.papers import Claim
from fedcoast.errors import BadSetting, FedcoastError
from fedcoast.rounds.round import Round
from fedcoast.rounds.tensors import read_tensors

MOST_NAMED = 5
ROUNDING = 1e-9  # sums of floats may differ this much between machines

_BY_CLIENT = {"scores": "score", "seen": "rounds seen", "mean": "mean", "ranks": "rank"}
_BY_ROUND = {"credits": "credit", "quarantined": "quarantine"}


def differences(rounds: Iterable[Round], claims: Sequence[Claim]) -> list[list[str]]:
    """For each claim, what differs from what follows from the rounds; they are read once for all claims."""
    found: list[list[str]] = [[] for _ in claims]
    assessors: dict[int, Assessor] = {}
    for place, claim in enumerate(claims):
        try:
            assessors[place] = remade(claim.method, claim.settings)
        except BadSetting as error:
            found[place] = [f"cannot be checked: {error}"]
    try:
        for round in rounds if assessors else ():
            for place, assessor in list(assessors.items()):
                if round.number > _until(claims[place]):
                    continue
                try:
                    assessor.observe(round)
                except FedcoastError as error:
                    found[place] = [f"cannot be checked: {error}"]
                    del assessors[place]
    except FedcoastError as error:
        return [of or [f"cannot be checked: {error}"] for of in found]
    for place, assessor in assessors.items():
        found[place] = _named(_compared(claims[place], assessor))
    return found


def _until(claim: Claim) -> float:
    if claim.kind == "record of credits":
        return math.inf
    return -1 if claim.last_round is None else claim.last_round


def _named(differing: Iterator[str]) -> list[str]:
    named = list(islice(differing, MOST_NAMED))
    more = sum(1 for _ in differing)
    return named + ([f"differs in {more} more"] if more else [])


def _compared(claim: Claim, assessor: Assessor) -> Iterator[str]:
    if claim.kind == "record of credits":
        yield from _compared_credits(claim.said["credits"], assessor.assessment().credits)
        return
    if claim.last_round != assessor.last_round:
        yield f"speaks of rounds up to {claim.last_round}; the recording has them up to {assessor.last_round}"
    if claim.kind == "ledger":
        yield from _compared_states(claim.file, assessor)
    else:
        yield from _compared_answers(claim, json.loads(assessor.assessment().to_json()))


def _compared_credits(said: Mapping[int, Mapping[Any, float]], now: Mapping[int, Mapping[Any, float]]) -> Iterator[str]:
    for number, row in said.items():
        for client in dict.fromkeys((*row, *now.get(number, {}))):
            old, new = row.get(client), now.get(number, {}).get(client)
            if not _same(old, new):
                yield f"round {number}, the credit of {client!r} is {old!r}; {new!r} follows from the recording"


def _compared_answers(claim: Claim, now: Mapping[str, Any]) -> Iterator[str]:
    said, names = claim.said, [_name(client) for client in now["clients"]]
    if said.get("clients") != now["clients"]:
        yield f"names the clients {_listed(said.get('clients'))}; in the recording they are {', '.join(names)}"
        return
    for key, word in _BY_CLIENT.items():
        yield from _rows(f"the {word}", said.get(key), now[key], names)
    for key, word in _BY_ROUND.items():
        if claim.kind == "report" and key not in said:
            continue  # a page does not carry them
        rows = said.get(key)
        for number in dict.fromkeys((*now[key], *(rows if isinstance(rows, dict) else ()))):
            row = rows.get(number) if isinstance(rows, dict) else None
            yield from _rows(f"round {number}, the {word}", row, now[key].get(number), names)
    for key in ("format", "version", "method", "settings", "pending"):
        if said.get(key) != now[key]:
            yield f"says {key} {said.get(key)!r}; it is {now[key]!r}"
    for key in sorted(said.keys() - now.keys()):
        yield f"says {key!r}, which no answer does"
    if claim.standings:
        yield from _compared_standings(claim, now)


def _compared_standings(claim: Claim, now: Mapping[str, Any]) -> Iterator[str]:
    listed = {json.dumps(entry.get("client"), sort_keys=True): entry for entry in claim.standings}
    for place, client in enumerate(now["clients"]):
        entry = listed.get(json.dumps(client, sort_keys=True), {})
        for key, values in (("score", "scores"), ("rank", "ranks"), ("seen", "seen"), ("mean", "mean")):
            if not _same(entry.get(key), now[values][place]):
                yield f"lists {_name(client)} with {key} {entry.get(key)!r}; it is {now[values][place]!r}"


def _rows(what: str, said: object, now: Sequence[object] | None, names: Sequence[str]) -> Iterator[str]:
    if not isinstance(said, list) or now is None or len(said) != len(now):
        if said != now:
            given, follows = "not given" if said is None else "given", "does not follow" if now is None else "follows"
            yield f"{what} is {given} and {follows} from the recording"
        return
    for name, old, new in zip(names, said, now, strict=True):
        if not _same(old, new):
            yield f"{what} of {name} is {old!r}; {new!r} follows from the recording"


def _compared_states(file: Path, assessor: Assessor) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder) / "state"
        assessor.save(again)
        if again.read_bytes() == file.read_bytes():
            return
        (theirs, said), (ours, now) = read_tensors(file), read_tensors(again)
    if said != now:
        yield from _differing("", said, now)
    elif theirs.keys() != ours.keys() or any(_bytes(theirs[name]) != _bytes(ours[name]) for name in ours):
        yield "holds other arrays than follow from the recording"
    else:
        yield "holds what follows from the recording, in other bytes than this fedcoast writes"


def _bytes(array: Any) -> bytes:
    return bytes(getattr(array, "widened", array).tobytes())


def _differing(where: str, said: Any, now: Any) -> Iterator[str]:
    """The places at which two JSON documents differ."""
    if isinstance(said, dict) and isinstance(now, dict):
        for key in dict.fromkeys((*now, *said)):
            yield from _differing(f"{where}{'.' if where else ''}{key}", said.get(key), now.get(key))
    elif isinstance(said, list) and isinstance(now, list) and len(said) == len(now):
        for place, (old, new) in enumerate(zip(said, now, strict=True)):
            yield from _differing(f"{where}[{place}]", old, new)
    elif said != now:
        yield f"says {where} {said!r}; {now!r} follows from the recording"


def _same(said: object, now: object) -> bool:
    if isinstance(said, float) or isinstance(now, float):
        numbers = isinstance(said, int | float) and isinstance(now, int | float)
        return numbers and math.isclose(said, now, rel_tol=ROUNDING, abs_tol=ROUNDING)  # type: ignore[arg-type]
    return said == now and type(said) is type(now)


def _name(client: Mapping[str, str]) -> str:
    return repr(client["name"]) if client["type"] == "str" else client["name"]


def _listed(clients: object) -> str:
    try:
        return ", ".join(_name(client) for client in clients)  # type: ignore[attr-defined]
    except (TypeError, KeyError):
        return repr(clients)
