"""The evaluator: each coalition asked for once, counted, in threads or not, and clear about what is no number."""

import threading

import numpy as np
import pytest

import fixture_q
from fedcoast import BadSetting
from fedcoast.methods import Banzhaf, Evaluator, GTGShapley, LeaveOneOut, Shapley, TMCShapley
from federations import federation, show
from fixture_q import Quadratic


class Slow:
    """A utility that notes the threads it is asked from, and lets them meet."""

    workers = 3

    def __init__(self):
        self.threads, self.lock = set(), threading.Lock()
        self.meeting = threading.Barrier(3, timeout=5)

    def __call__(self, model):
        with self.lock:
            new = threading.get_ident() not in self.threads
            self.threads.add(threading.get_ident())
        if new:
            self.meeting.wait()
        return float(np.sum(model["scale"]))


def norm(model):
    return -float(sum(np.sum(np.square(array, dtype=np.float64)) for array in model.values()))


def test_every_coalition_of_every_round_is_asked_for_once():
    utility = Quadratic()
    assessor = Shapley(utility)
    show(assessor, fixture_q.rounds())
    assert utility.calls == assessor.evaluations == assessor.evaluator.evaluations == 3 * 2**3


def test_a_shared_evaluator_asks_once_for_all_methods_and_each_counts_its_own():
    utility = Quadratic()
    shared = Evaluator(utility)
    methods = [Shapley(shared), Banzhaf(shared), LeaveOneOut(shared), TMCShapley(shared)]
    for fl_round in fixture_q.rounds():
        for method in methods:
            method.observe(fl_round)
    assert utility.calls == shared.evaluations == 3 * 2**3
    assert [method.evaluations for method in methods] == [24, 24, 12, 24]
    apart = [Shapley(Quadratic()), Banzhaf(Quadratic()), LeaveOneOut(Quadratic()), TMCShapley(Quadratic())]
    for method, alone in zip(methods, apart, strict=True):
        assert method.assessment() == show(alone, fixture_q.rounds())


def test_weights_and_denominators_never_share_what_is_not_the_same():
    utility = Quadratic()
    shared = Evaluator(utility)
    settings = [("round", "renormalise"), ("uniform", "renormalise"), ("round", "fixed"), ("uniform", "fixed")]
    methods = [Shapley(shared, weights=weights, denominator=denominator) for weights, denominator in settings]
    for fl_round in fixture_q.rounds("n"):
        for method in methods:
            method.observe(fl_round)
    for method, (weights, denominator) in zip(methods, settings, strict=True):
        alone = Shapley(Quadratic(), weights=weights, denominator=denominator)
        assert method.assessment() == show(alone, fixture_q.rounds("n"))
    # The same models, asked for once: everybody under either denominator (for both weights), and, renormalised under
    # either weights, nobody and the heaviest alone.
    assert utility.calls == 3 * (4 * 8 - 4)


def test_two_federations_never_share_a_round_though_numbers_and_clients_are_the_same():
    shared = Evaluator(norm)
    first, second = federation(seed=1, rounds=1), federation(seed=2, rounds=1)
    both = [show(Shapley(shared), rounds).scores for rounds in (first, second, first)]
    assert both == [show(Shapley(norm), rounds).scores for rounds in (first, second, first)]
    assert both[0] != both[1]


def test_threads_ask_at_once_and_answer_the_same():
    rounds = federation(clients=tuple(range(6)), rounds=3)
    for method in (Shapley, TMCShapley, GTGShapley):
        serial, threaded = Evaluator(norm), Evaluator(norm, workers=4)
        assert show(method(serial), rounds) == show(method(threaded), rounds)
        assert serial.evaluations == threaded.evaluations


def test_a_utility_says_how_many_threads_it_bears():
    utility = Slow()
    show(Shapley(utility), federation(clients=tuple(range(5)), rounds=1))
    assert len(utility.threads) == 3
    assert Evaluator(norm).workers == 1


def test_progress_is_told_after_each_evaluation():
    calls = []
    show(Shapley(Evaluator(norm, workers=2, progress=calls.append)), federation(rounds=2))
    assert calls == list(range(1, 17))


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), r"the utility must be finite; for the coalition \['ann', 'bob'\] of round 1 it is nan"),
        (float("-inf"), r"the utility must be finite; for the coalition \['ann', 'bob'\] of round 1 it is -inf"),
        (None, r"the utility must return a number; for the coalition \['ann', 'bob'\] of round 1 it returned None"),
    ],
)
def test_what_is_no_number_is_refused_with_the_coalition_and_the_round_may_be_shown_again(value, message, workers):
    (fl_round,) = federation(rounds=1)
    both = {name: (fl_round.local["ann"][name] + fl_round.local["bob"][name]) / 2 for name in fl_round.start}
    broken = [True]

    def utility(model):
        if broken and all(np.allclose(model[name], both[name], atol=1e-6) for name in both):
            return value
        return norm(model)

    assessor = Shapley(Evaluator(utility, workers=workers))
    with pytest.raises(BadSetting, match=message):
        assessor.observe(fl_round)
    assert assessor.last_round is None
    broken.clear()
    assert show(assessor, [fl_round]) == show(Shapley(Evaluator(utility)), [fl_round])


def test_an_error_of_the_utility_itself_comes_through():
    class Broken(Exception):
        pass

    def utility(model):
        raise Broken

    for workers in (1, 2):
        with pytest.raises(Broken):
            show(Shapley(Evaluator(utility, workers=workers)), federation(rounds=1))


def test_the_model_is_lent_and_nothing_of_the_round_can_be_reached_through_it():
    (fl_round,) = federation(rounds=1)
    before = {client: {name: array.copy() for name, array in model.items()} for client, model in fl_round.local.items()}

    def vandal(model):
        worth = norm(model)
        for array in model.values():
            array[...] = 77
        return worth

    assert show(Shapley(vandal), [fl_round]).credits == show(Shapley(norm), [fl_round]).credits
    for client, model in fl_round.local.items():
        for name, array in model.items():
            np.testing.assert_array_equal(array, before[client][name])


@pytest.mark.parametrize("utility", [None, 0.5, "accuracy"])
def test_what_cannot_be_called_is_no_utility(utility):
    with pytest.raises(BadSetting, match=r"utility must be a function that values a model .* got \w+"):
        Shapley(utility)


@pytest.mark.parametrize("workers", [0, -1, 1.5, "two"])
def test_workers_are_counted(workers):
    with pytest.raises(BadSetting, match="workers must be an integer of at least 1"):
        Evaluator(norm, workers=workers)


def test_settings_name_the_utility():
    class Named:
        name = "accuracy on my images"

        def __call__(self, model):
            return 0.0

    assert Shapley(norm).settings["utility"] == "norm"
    assert Shapley(Named()).settings["utility"] == "accuracy on my images"
    assert Shapley(Quadratic()).settings["utility"] == "Quadratic"
