"""Every method keeps the contract, and the contract catches whoever does not."""

import random
from functools import partial

import numpy as np
import pytest

from fedcoast import METHODS, Assessor, BadSetting
from fedcoast.methods.option_checks import check_seed, check_word
from fedcoast.testing import CHECKS, BrokenContract, check_assessor, toy_rounds, toy_utility

ROUNDS = toy_rounds(4)


def maker(method):
    judged = {"utility", "gradient"} & set(method.needs)
    return partial(method.make, utility=toy_utility()) if judged else method.make


@pytest.mark.parametrize("promise", CHECKS)
@pytest.mark.parametrize("name", METHODS)
def test_every_method_keeps_every_promise(name, promise):
    CHECKS[promise](maker(METHODS[name]), ROUNDS, METHODS[name].needs)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_who_it_is_and_what_it_measures(name):
    method = METHODS[name]
    assert maker(method)().method in name
    assert method.measures
    assert "|" not in method.measures  # it stands in a table


class Lengths(Assessor):
    """The honest one that the broken ones are made from: lengths of updates."""

    method = "lengths"

    def __init__(self, bad_uploads="quarantine"):
        super().__init__(bad_uploads)

    @property
    def settings(self):
        return {}

    def _step(self, view, state):
        return {view.number: {c: self._length(model, view) for c, model in view.uploads()}}, state

    def _length(self, model, view):
        return float(sum(np.abs(model[e.name].astype(float) - view.start[e.name]).sum() for e in view.schema.trainable))


class Talkative(Lengths):
    def _scores(self, sums):
        return sums or {"nobody": 0.0}


class Tidying(Lengths):
    def _step(self, view, state):
        result = super()._step(view, state)
        view.fl_round.start["body.bias"][0] = 0
        return result


class Borrowing(Lengths):
    """Keeps the caller's array and reads it one round later."""

    last = None

    def _step(self, view, state):
        before, self.last = self.last, view.fl_round.end["head.bias"]
        bonus = 0.0 if before is None else float(before.sum())
        ((number, credits),) = super()._step(view, state)[0].items()
        return {number: {client: credit + bonus for client, credit in credits.items()}}, state


class FirstComeFirstServed(Lengths):
    def _step(self, view, state):
        ((number, credits),) = super()._step(view, state)[0].items()
        return {number: {client: credits[client] + place for place, client in enumerate(view.fl_round.local)}}, state


class Partisan(Lengths):
    def _step(self, view, state):
        ((number, credits),) = super()._step(view, state)[0].items()
        return {number: {client: credit + len(str(client)) for client, credit in credits.items()}}, state


class Sentimental(Lengths):
    """Goes on crediting who left."""

    def _step(self, view, state):
        ((number, credits),) = super()._step(view, state)[0].items()
        return {number: dict.fromkeys(self._ledger.clients, 0.0) | credits}, state


class Positional(Lengths):
    """Takes clients for places in a list, as FedML did."""

    def _step(self, view, state):
        ((number, credits),) = super()._step(view, state)[0].items()
        if not hasattr(self, "columns"):
            self.columns = list(credits)
        return {number: {client: credits[client] for client in self.columns}}, state


class Forgetful(Lengths):
    """Remembers something that it does not save."""

    total = 0.0

    def _step(self, view, state):
        ((number, credits),) = super()._step(view, state)[0].items()
        self.total += sum(credits.values())
        return {number: {client: credit / self.total for client, credit in credits.items()}}, state


class Hoarding(Lengths):
    def _initial_state(self):
        return {}

    def _step(self, view, state):
        credits, _ = super()._step(view, state)
        return credits, {**state, str(view.number): np.zeros(10)}

    def _dump_state(self, state):
        return {}, dict(state)

    def _load_state(self, facts, arrays):
        return dict(arrays)


class HoardingFacts(Hoarding):
    def _dump_state(self, state):
        return {"attic": [array.tolist() for array in state.values()]}, {}

    def _load_state(self, facts, arrays):
        return {str(place): np.array(row) for place, row in enumerate(facts["attic"])}


class DeclaredHoarding(Hoarding):
    remembers_everything = True


class Gambling(Lengths):
    def _length(self, model, view):
        return np.random.default_rng().random()


class GamblingWithTheHouse(Lengths):
    """The same every time, at the cost of everybody's random numbers."""

    def _length(self, model, view):
        random.random()
        return super()._length(model, view)


class Dividing(Lengths):
    def _length(self, model, view):
        with np.errstate(all="ignore"):
            return float(1 / np.float64(super()._length(model, view)))


class Refusing(Lengths):
    def _step(self, view, state):
        if len(view.clients) < 2:
            raise BadSetting("two clients are wanted")
        return super()._step(view, state)


class Singles(Lengths):
    """float32 is no number that JSON knows."""

    def _length(self, model, view):
        return np.float32(super()._length(model, view))


class Contagious(Lengths):
    """A bad upload changes what the others get."""

    def _step(self, view, state):
        ((number, credits),) = super()._step(view, state)[0].items()
        return {number: {client: credit / len(view.clients) for client, credit in credits.items()}}, state


class Hasty(Lengths):
    """Changes itself instead of returning a new state."""

    seen_rounds = 0

    def _step(self, view, state):
        self.seen_rounds += 1
        ((number, credits),) = super()._step(view, state)[0].items()
        return {number: {client: credit * self.seen_rounds for client, credit in credits.items()}}, state

    def _dump_state(self, state):
        return {"seen": self.seen_rounds}, {}

    def _load_state(self, facts, arrays):
        self.seen_rounds = facts["seen"]


class Fickle(Lengths):
    asked = 0

    def _scores(self, sums):
        self.asked += bool(sums)
        return {client: score + self.asked for client, score in sums.items()}


class Impatient(Lengths):
    def observe(self, fl_round, /):
        self.last_round = None
        super().observe(fl_round)


class Careless(Lengths):
    takes_ballots = False

    def observe(self, fl_round, /):
        from dataclasses import replace

        super().observe(replace(fl_round, ballot_keep=None))


class Gullible(Lengths):
    def __init__(self, scale=1.0, bad_uploads="quarantine"):
        super().__init__(bad_uploads)
        self.scale = scale

    @property
    def settings(self):
        return {"scale": self.scale}


class Mumbling(Gullible):
    def __init__(self, scale=1.0, bad_uploads="quarantine"):
        super().__init__(scale, bad_uploads)
        if not isinstance(scale, float):
            raise BadSetting("something is wrong")


class Crashing(Gullible):
    def __init__(self, scale=1.0, bad_uploads="quarantine"):
        super().__init__(float(scale), bad_uploads)


class Biased(Lengths):
    """Draws at random, and always a little more for short names."""

    def __init__(self, seed=0, bad_uploads="quarantine"):
        super().__init__(bad_uploads)
        check_seed(seed)
        self.seed = seed

    @property
    def settings(self):
        return {"seed": self.seed}

    def _step(self, view, state):
        rng = np.random.default_rng([self.seed, view.number])
        return {view.number: {client: rng.random() + 50 / len(str(client)) for client, _ in view.uploads()}}, state


class Unbiased(Biased):
    def _step(self, view, state):
        rng = np.random.default_rng([self.seed, view.number])
        return {view.number: {client: rng.random() for client, _ in view.uploads()}}, state


BROKEN = [
    (Talkative, "is silent before the first round"),
    (Tidying, "leaves its inputs alone"),
    (Borrowing, "keeps copies"),
    (FirstComeFirstServed, "arrival order is irrelevant"),
    (Partisan, "equal clients have equal scores"),
    (Biased, "equal clients have equal scores"),
    (Sentimental, "clients may leave and return"),
    (Positional, "clients may leave and return"),
    (Forgetful, "continues after a restart"),
    (Hoarding, "state is bounded"),
    (HoardingFacts, "state is bounded"),
    (Gambling, "same seed same scores"),
    (GamblingWithTheHouse, "same seed same scores"),
    (Dividing, "answers are finite"),
    (Refusing, "answers are finite"),
    (Singles, "answers are finite"),
    (Contagious, "a bad upload costs only its client"),
    (Sentimental, "a bad upload costs only its client"),
    (Hasty, "a round is taken whole or not at all"),
    (Fickle, "asking changes nothing"),
    (Impatient, "rounds come in order"),
    (Careless, "methods that need uploads refuse ballots"),
    (Gullible, "bad settings are refused"),
    (Mumbling, "bad settings are refused"),
    (Crashing, "bad settings are refused"),
]


@pytest.mark.parametrize(("broken", "promise"), BROKEN, ids=[f"{b.__name__}: {p}" for b, p in BROKEN])
def test_who_breaks_a_promise_is_caught(broken, promise):
    with pytest.raises((BrokenContract, KeyError)):  # a method may also just fall over
        CHECKS[promise](broken, ROUNDS, ())


@pytest.mark.parametrize("broken", sorted({broken for broken, _ in BROKEN}, key=lambda broken: broken.__name__))
def test_the_whole_contract_raises_one_kind_of_error(broken):
    with pytest.raises(BrokenContract):
        check_assessor(broken)


def test_every_promise_has_someone_who_breaks_it():
    assert {promise for _, promise in BROKEN} == set(CHECKS)


@pytest.mark.parametrize("honest", [Lengths, DeclaredHoarding, Unbiased])
def test_the_honest_ones_pass(honest):
    check_assessor(honest)


def test_what_falls_over_is_reported_with_the_promise_and_the_error():
    with pytest.raises(BrokenContract, match=r"clients may leave and return: it raised KeyError: 'south'"):
        check_assessor(Positional)


def test_an_assessor_is_an_assessor():
    with pytest.raises(BrokenContract, match="subclass of Assessor; got dict"):
        check_assessor(dict)


def test_the_contract_can_be_checked_on_rounds_of_your_own():
    check_assessor(Lengths, rounds=iter(toy_rounds(4)))
    with pytest.raises(BadSetting, match="four or more rounds of three or more clients; got 3"):
        check_assessor(Lengths, rounds=toy_rounds(3))


class NeedsEverybody(Lengths):
    """Refuses rounds that lack one of those it met first."""

    def _step(self, view, state):
        from fedcoast import BadRound

        credits, state = super()._step(view, state)
        if self.last_round is not None and set(credits[view.number]) != set(self._ledger.clients):
            raise BadRound(f"round {view.number} lacks somebody; this needs full participation")
        return credits, state


def test_who_needs_everybody_may_refuse_only_if_it_says_so():
    check_assessor(NeedsEverybody, needs=("full participation",))
    with pytest.raises(BrokenContract, match="lacks somebody"):
        check_assessor(NeedsEverybody)
    with pytest.raises(BrokenContract, match="a method that needs full participation refuses"):
        check_assessor(Lengths, needs=("full participation",))


def test_options_are_named_in_their_errors():
    with pytest.raises(BadSetting, match="penalty must be one of 'sampled', 'exact'; got 'harsh'"):
        check_word("penalty", "harsh", ("sampled", "exact"))
    with pytest.raises(BadSetting, match=r"seed must be an integer of at least 0, .*; got True"):
        check_seed(True)
