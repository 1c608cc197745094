"""The contract of an assessor, one check for each promise. Adding a method to METHODS is enough to be checked."""

import json
import math
import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedcoast.errors import BadRound, BadSetting, FedcoastError
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.base import Assessor
from fedcoast.rounds.arrays import read
from fedcoast.rounds.round import Round
from fedcoast.testing.altered_rounds import (
    copied,
    model_bytes,
    reversed_order,
    scaled,
    without_clients,
)
from fedcoast.testing.demands import (
    BrokenContract,
    Make,
    demand,
    demand_finite,
    demand_same,
    global_random_state,
    raises,
    show,
)
from fedcoast.testing.refusals import (
    a_bad_upload_costs_only_its_client,
    a_round_is_taken_whole_or_not_at_all,
    bad_settings_are_refused,
    methods_that_need_uploads_refuse_ballots,
    rounds_come_in_order,
)
from fedcoast.testing.toy import toy_rounds

Check = Callable[[Make, Sequence[Round], Collection[str]], None]

SEEDS = 6  # over which a random method must give equal clients equal scores on average
CLOSE = 1e-9  # the difference that another order of summing may cause, relative to the largest score


def check_assessor(make: Make, *, rounds: Iterable[Round] | None = None, needs: Collection[str] = ()) -> None:
    """Check that the assessors from `make` keep every promise of an assessor, or raise `BrokenContract`.

    `make()` returns a new assessor each time, and takes its options by keyword: `make(bad_uploads="raise")`, and
    `make(seed=3)` if it draws at random, which it declares by a setting "seed". `rounds` are at least four rounds of
    at least three clients that all take part, with finite uploads; the default is a small classifier with buffers and
    weights. `needs` is what `METHODS` says: "full participation" allows refusing rounds with absent clients.

    >>> from fedcoast import CoAst
    >>> check_assessor(CoAst)
    """
    shown = toy_rounds() if rounds is None else list(rounds)
    if len(shown) < 4 or min(len(fl_round.clients) for fl_round in shown) < 3:
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
    demand(isinstance(assessor, Assessor), f"an assessor is a subclass of Assessor; got {type(assessor).__name__}")
    answer = assessor.assessment()
    empty = not (answer.scores or answer.credits or answer.pending or answer.rounds_scored or answer.quarantined)
    demand(empty, f"before the first round there is nothing to say; it said {answer!r}")
    demand(isinstance(answer.method, str) and answer.method != "", "its `method` must be a name")
    demand(Assessment.from_json(answer.to_json()) == answer, "its settings must be what JSON can hold")


def leaves_its_inputs_alone(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    assessor = make()
    for fl_round in map(copied, rounds):
        before = model_bytes(fl_round)
        assessor.observe(fl_round)
        assessor.assessment()
        demand(model_bytes(fl_round) == before, f"round {fl_round.number} was changed; no caller's array may be")


def keeps_copies(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    """Servers reuse the memory of their models."""
    assessor = make()
    for fl_round in map(copied, rounds):
        assessor.observe(fl_round)
        for model in (fl_round.start, fl_round.end, *fl_round.local.values()):
            for value in model.values():
                read(value)[0][...] = 77
    demand_same(assessor.assessment(), show(make(), rounds), "the caller may reuse a round's arrays once it was shown")


def arrival_order_is_irrelevant(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    turned = [
        replace(
            fl_round,
            local={client: reversed_order(fl_round.local[client]) for client in reversed(list(fl_round.local))},
            weights=None if fl_round.weights is None else reversed_order(fl_round.weights),
        )
        for fl_round in rounds
    ]
    demand_same(show(make(), turned), show(make(), rounds), "the order in which clients arrive may change no bit")


def equal_clients_have_equal_scores(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    client = rounds[0].clients[-1]
    twin = f"twin of {client}"
    doubled = [
        replace(
            fl_round,
            local={**fl_round.local, twin: fl_round.local[client]},
            weights=None if fl_round.weights is None else {**fl_round.weights, twin: fl_round.weights[client]},
        )
        for fl_round in rounds
    ]
    seeds = [{"seed": seed} for seed in range(SEEDS)] if "seed" in make().settings else [{}]
    answers = [show(make(**seed), doubled) for seed in seeds]
    apart = [answer.scores[client] - answer.scores[twin] for answer in answers]
    allowed = CLOSE * max(1.0, *(abs(score) for answer in answers for score in answer.scores.values()))
    if len(apart) > 1:  # equal on average: the mean must not be far from zero for how much it varies
        allowed += 5 * float(np.std(apart)) / math.sqrt(len(apart))
    mean = float(np.mean(apart))
    demand(
        abs(mean) <= allowed,
        f"two clients with the same uploads and weights must have equal scores; they are {mean} apart",
    )


def clients_may_leave_and_return(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    leaver, newcomer = rounds[0].clients[-1], rounds[0].clients[-2]
    away = {rounds[place].number for place in range(1, len(rounds) - 1)}
    partial = [
        without_clients(
            fl_round, {leaver} if fl_round.number in away else {newcomer} if fl_round is rounds[0] else set()
        )
        for fl_round in rounds
    ]
    if "full participation" in needs:
        assessor = make()
        demand(
            raises(BadRound, lambda: show(assessor, partial)),
            "a method that needs full participation refuses other rounds with a BadRound",
        )
        return
    answer = show(make(), partial)
    demand_finite(answer)
    demand(set(answer.scores) == set(rounds[0].clients), f"everyone who answered has a score; got {answer.scores}")
    if make().credits_absent:
        return
    absent = [number for number, of in answer.credits.items() if number in away and leaver in of]
    demand(not absent, f"an absent client gets no credit; {leaver!r} was absent in round {absent}")
    present = len(rounds) - len(away)
    demand(
        answer.rounds_scored[leaver] <= present,
        f"{leaver!r} answered in {present} rounds; seen in {answer.rounds_scored[leaver]}",
    )


def continues_after_a_restart(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    whole = show(make(), rounds)
    with tempfile.TemporaryDirectory() as folder:
        for cut in (0, len(rounds) // 2):
            before, after = make(), make()
            so_far = show(before, rounds[:cut])
            before.save(Path(folder) / "state")
            after.restore(Path(folder) / "state")
            demand_same(
                after.assessment(),
                so_far,
                f"restored after {cut} rounds, it must give the answer that it gave when saved",
            )
            demand_same(
                show(after, rounds[cut:]), whole, f"restored after {cut} rounds, it must continue as if never stopped"
            )


def state_is_bounded(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    assessor = make()
    if assessor.remembers_everything:
        return
    sizes = []
    step = rounds[-1].number - rounds[0].number + 1
    for turn in range(3):
        for fl_round in rounds:
            assessor.observe(replace(fl_round, number=fl_round.number + turn * step))
        facts, arrays = assessor._dump_state(assessor._state)
        sizes.append((sum(array.nbytes for array in arrays.values()), len(json.dumps(facts))))
    (arrays_then, facts_then), (arrays_now, facts_now) = sizes[1:]
    demand(
        arrays_now <= arrays_then and facts_now <= 1.25 * facts_then + 64,
        f"its state must not grow with the rounds: {arrays_then:,} bytes of arrays and {facts_then:,} of facts became"
        f" {arrays_now:,} and {facts_now:,}. A method that has to remember says so: remembers_everything = True",
    )


def same_seed_same_scores(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    before = global_random_state()
    seed = {"seed": 3} if "seed" in make().settings else {}
    again = (
        "the same seed must give the same answer again" if seed else "the same rounds must give the same answer again"
    )
    demand_same(show(make(**seed), rounds), show(make(**seed), rounds), again)
    untouched = global_random_state() == before
    demand(
        untouched, "the global random generators belong to the caller; draw from one of your own, by a setting `seed`"
    )


def answers_are_finite(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    first, everyone = rounds[0], rounds[0].clients
    cases = {
        "ordinary rounds": list(rounds),
        "rounds in which nobody moves": [
            replace(fl_round, local=dict.fromkeys(fl_round.local, fl_round.start), end=fl_round.start)
            for fl_round in rounds
        ],
        "a client that is far off": [
            replace(fl_round, local={**fl_round.local, everyone[0]: scaled(fl_round.local[everyone[0]], 1e15)})
            for fl_round in rounds
        ],
    }
    if "full participation" not in needs:
        cases["one client alone"] = [without_clients(fl_round, set(everyone[1:])) for fl_round in rounds]
    if first.weights is not None:
        cases["a client that weighs nothing"] = [
            replace(fl_round, weights={**(fl_round.weights or {}), everyone[0]: 0}) for fl_round in rounds
        ]
    for case, shown in cases.items():
        try:
            answer = show(make(), shown)
        except FedcoastError as error:
            raise BrokenContract(f"{case} must have an answer; it raised {type(error).__name__}: {error}") from error
        demand_finite(answer, f"{case}: ")


def asking_changes_nothing(make: Make, rounds: Sequence[Round], needs: Collection[str]) -> None:
    assessor = make()
    for fl_round in rounds:
        assessor.observe(fl_round)
        demand_same(assessor.assessment(), assessor.assessment(), "asked twice, it must answer the same")
    demand_same(assessor.assessment(), show(make(), rounds), "being asked after every round must not change the answer")


CHECKS: dict[str, Check] = {
    check.__name__.replace("_", " "): check
    for check in (
        is_silent_before_the_first_round,
        leaves_its_inputs_alone,
        keeps_copies,
        arrival_order_is_irrelevant,
        equal_clients_have_equal_scores,
        clients_may_leave_and_return,
        continues_after_a_restart,
        state_is_bounded,
        same_seed_same_scores,
        answers_are_finite,
        a_bad_upload_costs_only_its_client,
        a_round_is_taken_whole_or_not_at_all,
        asking_changes_nothing,
        rounds_come_in_order,
        methods_that_need_uploads_refuse_ballots,
        bad_settings_are_refused,
    )
}
"""Every promise, by its sentence: parametrise a test with them to see each one pass."""
