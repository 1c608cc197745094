"""The contract of an assessor, one check for each promise. Adding a method to METHODS is enough to be checked."""

import inspect
import json
import logging
import math
import random
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedcoast.errors import BadRound, BadSetting, BadUpload, Client, FedcoastError
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.base import Assessor
from fedcoast.rounds.arrays import Array, BFloat16, read
from fedcoast.rounds.round import Round
from fedcoast.testing.toy import toy_rounds

Make = Callable[..., Assessor]
Check = Callable[[Make, Sequence[Round], Collection[str]], None]

SEEDS = 6  # over how many a method that draws at random must treat equal clients alike
CLOSE = 1e-9  # what sums in another order may differ by, relative to the largest score


class BrokenContract(AssertionError):
    """An assessor does not keep the contract; the text says which promise, and how that showed."""


def check_assessor(make: Make, *, rounds: Iterable[Round] | None = None, needs: Collection[str] = ()) -> None:
    """Check that what `make` makes keeps every promise of an assessor, or raise `BrokenContract`.

    `make()` gives a new assessor each time, and takes its options by keyword: `make(bad_uploads="raise")`, and
    `make(seed=3)` if it draws at random, which it shows by a setting "seed". `rounds` are at least four rounds of
    at least three clients that all take part, with finite uploads; without them a small classifier with buffers and
    weights is shown. `needs` is what `METHODS` says: "full participation" allows refusing rounds that lack somebody.

    >>> from fedcoast import CoAst
    >>> check_assessor(CoAst)
    """
    shown = toy_rounds() if rounds is None else list(rounds)
    if len(shown) < 4 or min(len(round.clients) for round in shown) < 3:
        raise BadSetting(f"the contract is checked on four or more rounds of three or more clients; got {len(shown)}")
    for promise, check in CHECKS.items():
        try:
            check(make, shown, needs)
        except BrokenContract:
            raise
        except Exception as error:
            raise BrokenContract(f"{promise}: it raised {type(error).__name__}: {error}") from error


def is_silent_before_the_first_round(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    assessor = make()
    _demand(isinstance(assessor, Assessor), f"an assessor is a subclass of Assessor; got {type(assessor).__name__}")
    answer = assessor.assessment()
    empty = not (answer.scores or answer.credits or answer.pending or answer.rounds_scored or answer.quarantined)
    _demand(empty, f"before the first round there is nothing to say; it said {answer!r}")
    _demand(isinstance(answer.method, str) and answer.method != "", "its `method` must be a name")
    _demand(Assessment.from_json(answer.to_json()) == answer, "its settings must be what JSON can hold")


def leaves_its_inputs_alone(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    assessor = make()
    for round in map(_copied, rounds):
        before = _bytes(round)
        assessor.observe(round)
        assessor.assessment()
        _demand(_bytes(round) == before, f"round {round.number} was changed; no caller's array may be")


def keeps_copies(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    """Servers reuse the memory of their models."""
    assessor = make()
    for round in map(_copied, rounds):
        assessor.observe(round)
        for model in (round.start, round.end, *round.local.values()):
            for value in model.values():
                read(value)[0][...] = 77
    _same(assessor.assessment(), _show(make(), rounds), "the caller may reuse a round's arrays once it was shown")


def arrival_order_is_irrelevant(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    turned = [
        replace(
            round,
            local={client: _reversed(round.local[client]) for client in reversed(list(round.local))},
            weights=None if round.weights is None else _reversed(round.weights),
        )
        for round in rounds
    ]
    _same(_show(make(), turned), _show(make(), rounds), "the order in which clients arrive may change no bit")


def equal_clients_have_equal_scores(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    client = rounds[0].clients[-1]
    twin = f"twin of {client}"
    doubled = [
        replace(
            round,
            local={**round.local, twin: round.local[client]},
            weights=None if round.weights is None else {**round.weights, twin: round.weights[client]},
        )
        for round in rounds
    ]
    seeds = [{"seed": seed} for seed in range(SEEDS)] if "seed" in make().settings else [{}]
    answers = [_show(make(**seed), doubled) for seed in seeds]
    apart = [answer.scores[client] - answer.scores[twin] for answer in answers]
    allowed = CLOSE * max(1.0, *(abs(score) for answer in answers for score in answer.scores.values()))
    if len(apart) > 1:  # equal on average: the mean must not be far from zero for how much it varies
        allowed += 5 * float(np.std(apart)) / math.sqrt(len(apart))
    mean = float(np.mean(apart))
    _demand(
        abs(mean) <= allowed, f"two clients with the same uploads and weights must score alike; they are {mean} apart"
    )


def clients_may_leave_and_return(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    leaver, newcomer = rounds[0].clients[-1], rounds[0].clients[-2]
    away = {rounds[place].number for place in range(1, len(rounds) - 1)}
    partial = [
        _without(round, {leaver} if round.number in away else {newcomer} if round is rounds[0] else set())
        for round in rounds
    ]
    if "full participation" in needs:
        assessor = make()
        _demand(_raises(BadRound, lambda: _show(assessor, partial)), "who needs everybody refuses with a BadRound")
        return
    answer = _show(make(), partial)
    _finite(answer)
    _demand(set(answer.scores) == set(rounds[0].clients), f"everyone who answered has a score; got {answer.scores}")
    if make().credits_absent:
        return
    absent = [number for number, of in answer.credits.items() if number in away and leaver in of]
    _demand(not absent, f"who does not answer gets no credit; {leaver!r} was absent in round {absent}")
    present = len(rounds) - len(away)
    _demand(
        answer.rounds_scored[leaver] <= present,
        f"{leaver!r} answered in {present} rounds; seen in {answer.rounds_scored[leaver]}",
    )


def goes_on_after_a_restart(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    whole = _show(make(), rounds)
    with tempfile.TemporaryDirectory() as folder:
        for cut in (0, len(rounds) // 2):
            before, after = make(), make()
            so_far = _show(before, rounds[:cut])
            before.save(Path(folder) / "state")
            after.restore(Path(folder) / "state")
            _same(after.assessment(), so_far, f"restored after {cut} rounds, it must answer as it did when saved")
            _same(_show(after, rounds[cut:]), whole, f"restored after {cut} rounds, it must go on as if never stopped")


def state_is_bounded(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    assessor = make()
    if assessor.remembers_everything:
        return
    sizes = []
    step = rounds[-1].number - rounds[0].number + 1
    for turn in range(3):
        for round in rounds:
            assessor.observe(replace(round, number=round.number + turn * step))
        facts, arrays = assessor._state()
        sizes.append((sum(array.nbytes for array in arrays.values()), len(json.dumps(facts))))
    (arrays_then, facts_then), (arrays_now, facts_now) = sizes[1:]
    _demand(
        arrays_now <= arrays_then and facts_now <= 1.25 * facts_then + 64,
        f"its state must not grow with the rounds: {arrays_then:,} bytes of arrays and {facts_then:,} of facts became"
        f" {arrays_now:,} and {facts_now:,}. A method that has to remember says so: remembers_everything = True",
    )


def same_seed_same_scores(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    before = _global_chance()
    seed = {"seed": 3} if "seed" in make().settings else {}
    again = (
        "the same seed must give the same answer again" if seed else "the same rounds must give the same answer again"
    )
    _same(_show(make(**seed), rounds), _show(make(**seed), rounds), again)
    untouched = _global_chance() == before
    _demand(
        untouched, "the global random generators belong to the caller; draw from one of your own, by a setting `seed`"
    )


def answers_are_finite(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    first, everyone = rounds[0], rounds[0].clients
    cases = {
        "ordinary rounds": list(rounds),
        "rounds in which nobody moves": [
            replace(round, local=dict.fromkeys(round.local, round.start), end=round.start) for round in rounds
        ],
        "a client that is far off": [
            replace(round, local={**round.local, everyone[0]: _scaled(round.local[everyone[0]], 1e15)})
            for round in rounds
        ],
    }
    if "full participation" not in needs:
        cases["one client alone"] = [_without(round, set(everyone[1:])) for round in rounds]
    if first.weights is not None:
        cases["a client that weighs nothing"] = [
            replace(round, weights={**(round.weights or {}), everyone[0]: 0}) for round in rounds
        ]
    for case, shown in cases.items():
        try:
            answer = _show(make(), shown)
        except FedcoastError as error:
            raise BrokenContract(f"{case} must have an answer; it raised {type(error).__name__}: {error}") from error
        _finite(answer, f"{case}: ")


def a_bad_upload_costs_only_its_client(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    client, bad = rounds[0].clients[0], rounds[1]
    if "full participation" in needs:
        return
    with _quiet():
        answer = _show(make(), _with(rounds, _spoiled(bad, client)))
    absent = _show(make(), _with(rounds, _without(bad, {client})))
    _demand(client in answer.quarantined.get(bad.number, {}), f"{client!r} sent NaN and must be among the quarantined")
    earned = client in answer.credits.get(bad.number, {})
    _demand(not earned or make().credits_absent, "a bad upload earns no credit")
    same = (answer.scores, answer.credits, answer.rounds_scored) == (
        absent.scores,
        absent.credits,
        absent.rounds_scored,
    )
    _demand(same, f"a bad upload must count as if its client were absent; got {answer.credits}, want {absent.credits}")


def a_round_is_taken_whole_or_not_at_all(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    assessor, spoiled = make(bad_uploads="raise"), _spoiled(rounds[1], rounds[1].clients[-1])
    assessor.observe(rounds[0])
    _demand(_raises(BadUpload, lambda: assessor.observe(spoiled)), 'bad_uploads="raise" must raise a BadUpload')
    for round in rounds[1:]:
        assessor.observe(round)
    whole = _show(make(bad_uploads="raise"), rounds)
    _same(assessor.assessment(), whole, "a round that raised must leave nothing behind when it is shown again, mended")


def asking_changes_nothing(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    assessor = make()
    for round in rounds:
        assessor.observe(round)
        _same(assessor.assessment(), assessor.assessment(), "asked twice, it must answer the same")
    _same(assessor.assessment(), _show(make(), rounds), "being asked after every round must not change the answer")


def rounds_come_in_order(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    assessor = make()
    assessor.observe(rounds[0])
    _demand(_raises(BadRound, lambda: assessor.observe(rounds[0])), "a round shown twice must raise a BadRound")


def ballots_are_refused_by_who_needs_uploads(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    assessor = make()
    refused = _raises(BadSetting, lambda: assessor.observe(replace(rounds[0], ballot_keep=0.1)))
    _demand(
        refused or assessor.takes_ballots,
        "a round of ballots alone must raise a BadSetting; a method that can do with them says takes_ballots = True",
    )


def bad_settings_are_refused(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    takes = inspect.signature(make).parameters
    anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes.values())
    # What a preset fixes is a setting, and no option.
    options = [option for option in make().settings if option in takes or anything]
    for option in (*options, "bad_uploads"):
        try:
            make(**{option: _Nonsense()})
        except BadSetting as error:
            told = option in str(error) or option == "bad_uploads"
            _demand(
                told and "Nonsense" in str(error),
                f"the error for a bad {option} must name it and what came; it says: {error}",
            )
        except Exception as error:
            raise BrokenContract(
                f"a bad {option} must raise a BadSetting; it raised {type(error).__name__}: {error}"
            ) from error
        else:
            raise BrokenContract(f"an impossible value for {option} must raise a BadSetting; it was taken")


CHECKS: dict[str, Check] = {
    check.__name__.replace("_", " "): check
    for check in (
        is_silent_before_the_first_round,
        leaves_its_inputs_alone,
        keeps_copies,
        arrival_order_is_irrelevant,
        equal_clients_have_equal_scores,
        clients_may_leave_and_return,
        goes_on_after_a_restart,
        state_is_bounded,
        same_seed_same_scores,
        answers_are_finite,
        a_bad_upload_costs_only_its_client,
        a_round_is_taken_whole_or_not_at_all,
        asking_changes_nothing,
        rounds_come_in_order,
        ballots_are_refused_by_who_needs_uploads,
        bad_settings_are_refused,
    )
}
"""Every promise, by its sentence: parametrise a test with them to see each one pass."""


class _Nonsense:
    """No option of anything."""

    def __repr__(self) -> str:
        return "Nonsense()"


def _demand(holds: bool, promise: str) -> None:
    if not holds:
        raise BrokenContract(promise)


def _same(one: Assessment, other: Assessment, promise: str) -> None:
    if one != other:
        raise BrokenContract(f"{promise}; {one.scores} is not {other.scores} (credits {one.credits}, {other.credits})")


def _finite(answer: Assessment, where: str = "") -> None:
    numbers = [*answer.scores.values(), *(credit for of in answer.credits.values() for credit in of.values())]
    fine = all(isinstance(number, int | float) and math.isfinite(number) for number in numbers)
    _demand(fine, f"{where}scores and credits must be finite numbers; got {answer.scores}, {answer.credits}")
    _demand(Assessment.from_json(answer.to_json()) == answer, f"{where}the answer must survive JSON")


def _raises(kind: type[FedcoastError], call: Callable[[], object]) -> bool:
    try:
        call()
    except kind:
        return True
    return False


def _show(assessor: Assessor, rounds: Iterable[Round]) -> Assessment:
    for round in rounds:
        assessor.observe(round)
    return assessor.assessment()


def _global_chance() -> str:
    return f"{random.getstate()} {np.random.get_state(legacy=False)}"  # noqa: NPY002 (that nobody used it is checked)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warning about a bad upload that was made on purpose."""
    log = logging.getLogger("fedcoast")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _with(rounds: Sequence[Round], changed: Round) -> list[Round]:
    return [changed if round.number == changed.number else round for round in rounds]


def _without(round: Round, clients: Collection[Client]) -> Round:
    kept = [client for client in round.local if client not in clients]
    weights = None if round.weights is None else {client: round.weights[client] for client in kept}
    return replace(round, local={client: round.local[client] for client in kept}, weights=weights)


def _spoiled(round: Round, client: Client) -> Round:
    model = {name: _own(value) for name, value in round.local[client].items()}
    first = round.schema().trainable[0].name
    read(model[first])[0].reshape(-1)[0] = np.nan
    return replace(round, local={**round.local, client: model})


def _scaled(model: Mapping[str, object], factor: float) -> dict[str, object]:
    scaled = {}
    for name, value in model.items():
        array, kind = read(value)
        float_enough = kind in ("float32", "float64")
        scaled[name] = np.asarray(array * factor, dtype=array.dtype) if float_enough else value
    return scaled


def _copied(round: Round) -> Round:
    return replace(
        round,
        start={name: _own(value) for name, value in round.start.items()},
        end={name: _own(value) for name, value in round.end.items()},
        local={client: {name: _own(value) for name, value in model.items()} for client, model in round.local.items()},
    )


def _own(value: object) -> Array | BFloat16:
    array, kind = read(value)
    return BFloat16(array.copy()) if kind == "bfloat16" else array.copy()


def _bytes(round: Round) -> list[bytes]:
    models = (round.start, round.end, *round.local.values())
    return [read(value)[0].tobytes() for model in models for value in model.values()]


def _reversed(mapping: Mapping[Any, Any]) -> dict[Any, Any]:
    return {key: mapping[key] for key in reversed(list(mapping))}
