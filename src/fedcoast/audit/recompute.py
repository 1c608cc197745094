"""Whether a claim follows from a recording: an assessor with the same settings observes the rounds again."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from fedcoast.analysis.behaviour import Behaviour
from fedcoast.analysis.disagreement import Disagreement
from fedcoast.analysis.flags import flags_of
from fedcoast.analysis.health import Health
from fedcoast.analysis.uncertainty import uncertainty
from fedcoast.analysis.verdicts import verdicts_to_json
from fedcoast.audit.artifacts import Claim
from fedcoast.audit.states import compared_states
from fedcoast.errors import BadSetting, FedcoastError
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.base import Assessor
from fedcoast.methods.remaking import remade
from fedcoast.reports.signature import last_round
from fedcoast.rounds.round import Round
from fedcoast.rounds.unmoved import Shares, unmoved_in

MOST_NAMED = 5
ROUNDING = 1e-9  # sums of floats may differ this much between machines

_WITHOUT_LAST_ROUND = ("answer", "report")  # do not say which round was the last that was seen
_BY_CLIENT = {"scores": "score", "seen": "rounds seen", "mean": "mean", "ranks": "rank"}
_BY_ROUND = {"credits": "credit", "quarantined": "quarantine", "unchanged": "unchanged upload"}
_ADDED_BY_ASSESS = {"verdicts": "the verdicts", "health": "the model's health", "flags": "flags"}


def differences(rounds: Iterable[Round], claims: Sequence[Claim]) -> list[tuple[Claim, list[str]]]:
    """Each claim with its differences from a recomputation; the rounds are read once for all claims.

    An answer or report that agrees comes back with the last round that was needed for it.
    """
    checks = [_Check(claim) for claim in claims]
    try:
        for fl_round in rounds if any(check.assessor is not None for check in checks) else ():
            for check in checks:
                check.show(fl_round)
    except FedcoastError as error:
        for check in checks:
            check.fail(error)
    for check in checks:
        check.show(None)
    return [(check.claim, check.found) for check in checks]


class _Check:
    """A claim, and an assessor with its settings that observes the same rounds until the differences are known.

    An answer does not say which round was the last that its method saw, only which was the last that left a trace: a
    round in which nobody gets credit leaves no more than names. So it may agree after any round before the next trace.
    """

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.found: list[str] = []
        self.assessor: Assessor | None = None
        self._shares: dict[int, Shares | None] = {}
        self._behaviour = Behaviour()
        self._disagreement = Disagreement()
        try:
            self.assessor = remade(claim.method, claim.settings)
        except BadSetting as error:
            self.found = [f"cannot be checked: {error}"]

    def show(self, fl_round: Round | None) -> None:
        """Observe the next round of the recording; None ends it."""
        try:
            later = fl_round is None or fl_round.number > _until(self.claim)
            if later:
                self._compare()
            if self.assessor is None or fl_round is None:
                return
            self.assessor.observe(fl_round)
            if "health" in self.claim.content:
                self._shares[fl_round.number] = unmoved_in(fl_round)
            if "flags" in self.claim.content:
                self._behaviour.observe(fl_round)
            if "verdicts" in self.claim.content:
                self._disagreement.observe(fl_round)
            if later and last_round(self.assessor.assessment()) != self.claim.last_round:
                self.assessor = None
        except FedcoastError as error:
            self.fail(error)

    def fail(self, error: FedcoastError) -> None:
        """Stop here: no further round can be compared."""
        if self.assessor is not None:
            self.found, self.assessor = self.found or [f"cannot be checked: {error}"], None

    def _compare(self) -> None:
        """Compare with the rounds so far; if a claim never agrees, its first differences are listed."""
        if self.assessor is None:
            return
        now = _named(_compared(self.claim, self.assessor, self._added_by_assess(self.assessor.assessment())))
        self.found = now and (self.found or now)
        if not now and self.claim.kind in _WITHOUT_LAST_ROUND:
            self.claim = replace(self.claim, last_round=self.assessor.last_round)
        if not now or self.claim.kind not in _WITHOUT_LAST_ROUND:
            self.assessor = None

    def _added_by_assess(self, answer: Assessment) -> dict[str, Any]:
        """What `fedcoast assess --json` adds to the answer, if the claim contains it too."""
        content = self.claim.content
        now: dict[str, Any] = {}
        if "verdicts" in content:
            looked = isinstance(content["verdicts"], dict) and "warnings" in content["verdicts"]
            update_agreement = self._disagreement.summary() if looked else None
            now["verdicts"] = verdicts_to_json(
                answer, uncertainty(answer) if answer.credits else None, update_agreement
            )
        if "health" in content:
            now["health"] = Health(self._shares).to_json()
        if "flags" in content:
            now["flags"] = [flag.to_json() for flag in flags_of(self._behaviour)]
        return now


def _until(claim: Claim) -> float:
    if claim.kind == "record of credits":
        return math.inf
    return -1 if claim.last_round is None else claim.last_round


def _named(differing: Iterator[str]) -> list[str]:
    named = list(islice(differing, MOST_NAMED))
    more = sum(1 for _ in differing)
    return named + ([f"differs in {more} more"] if more else [])


def _compared(claim: Claim, assessor: Assessor, added: Mapping[str, Any]) -> Iterator[str]:
    if claim.kind == "record of credits":
        yield from _compared_credits(claim.content["credits"], assessor.assessment().lasting_credits)
        return
    if (-1 if assessor.last_round is None else assessor.last_round) < _until(claim):
        yield f"speaks of rounds up to {claim.last_round}; the recording has them up to {assessor.last_round}"
    if claim.kind == "ledger":
        yield from compared_states(claim.file, assessor)
    else:
        yield from _compared_answers(claim, json.loads(assessor.assessment().to_json()))
        for key, now in added.items():
            if not _alike(claim.content[key], now):
                yield f"says of {_ADDED_BY_ASSESS[key]} {claim.content[key]!r}; {now!r} follows from the recording"


def _compared_credits(
    recorded: Mapping[int, Mapping[Any, float]], now: Mapping[int, Mapping[Any, float]]
) -> Iterator[str]:
    for number, row in recorded.items():
        for client in dict.fromkeys((*row, *now.get(number, {}))):
            old, new = row.get(client), now.get(number, {}).get(client)
            if not _same(old, new):
                yield f"round {number}, the credit of {client!r} is {old!r}; {new!r} follows from the recording"


def _compared_answers(claim: Claim, now: Mapping[str, Any]) -> Iterator[str]:
    recorded, names = claim.content, [_name(client) for client in now["clients"]]
    if recorded.get("clients") != now["clients"]:
        yield f"names the clients {_listed(recorded.get('clients'))}; in the recording they are {', '.join(names)}"
        return
    for key, word in _BY_CLIENT.items():
        yield from _rows(f"the {word}", recorded.get(key), now[key], names)
    for key, word in _BY_ROUND.items():
        if claim.kind == "report" and key not in recorded:
            continue  # a page does not carry them
        if key == "unchanged" and "zero_is_idle" not in recorded:
            continue  # an answer of an earlier version
        rows, computed = recorded.get(key), now.get(key, {})
        for number in dict.fromkeys((*computed, *(rows if isinstance(rows, dict) else ()))):
            row = rows.get(number) if isinstance(rows, dict) else None
            yield from _rows(f"round {number}, the {word}", row, computed.get(number), names)
    for key in ("format", "version", "method", "settings", "pending", "unordered"):
        if recorded.get(key) != now.get(key):
            yield f"says {key} {recorded.get(key)!r}; it is {now.get(key)!r}"
    for key in ("zero_is_idle", "dependence_span", "counted_rounds"):
        if key in recorded and recorded[key] != now[key]:  # answers of earlier versions do not say it
            yield f"says {key} {recorded[key]!r}; it is {now[key]!r}"
    for key in sorted(recorded.keys() - now.keys() - set(_ADDED_BY_ASSESS)):
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


def _rows(what: str, recorded: object, now: Sequence[object] | None, names: Sequence[str]) -> Iterator[str]:
    if not isinstance(recorded, list) or now is None or len(recorded) != len(now):
        if recorded != now:
            stated = "not given" if recorded is None else "given"
            follows = "does not follow" if now is None else "follows"
            yield f"{what} is {stated} and {follows} from the recording"
        return
    for name, old, new in zip(names, recorded, now, strict=True):
        if not _same(old, new):
            yield f"{what} of {name} is {old!r}; {new!r} follows from the recording"


def _alike(recorded: object, now: object) -> bool:
    """The same JSON but for the rounding of its numbers."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        return recorded.keys() == now.keys() and all(_alike(recorded[key], now[key]) for key in now)
    if isinstance(recorded, list) and isinstance(now, list):
        return len(recorded) == len(now) and all(map(_alike, recorded, now))
    return _same(recorded, now)


def _same(recorded: object, now: object) -> bool:
    if isinstance(recorded, float) or isinstance(now, float):
        numbers = isinstance(recorded, int | float) and isinstance(now, int | float)
        try:
            return numbers and math.isclose(recorded, now, rel_tol=ROUNDING, abs_tol=ROUNDING)  # type: ignore[arg-type]
        except OverflowError:  # an integer beyond all floats
            return False
    return recorded == now and type(recorded) is type(now)


def _name(client: Mapping[str, str]) -> str:
    return repr(client["name"]) if client["type"] == "str" else client["name"]


def _listed(clients: object) -> str:
    try:
        return ", ".join(_name(client) for client in clients)  # type: ignore[attr-defined]
    except (TypeError, KeyError):
        return repr(clients)
