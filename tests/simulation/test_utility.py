"""The lab's utility: what a recorded model is worth on the test images, from any thread, and its slope."""

import threading

import numpy as np
import pytest
import torch

from fedcoast import BadFile, BadSetting, read_about, replay
from fedcoast.methods import DIGFL, Evaluator, Shapley
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.simulation import simulate
from fedcoast.simulation.utility import utility_for

SMALL = Experiment(rounds=2, clients=3, steps=4, batch=16, augment=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    simulate(Federation(SMALL), folder)
    return folder


@pytest.fixture(scope="module")
def utility(run):
    return utility_for(read_about(run))


def test_it_is_the_loss_and_accuracy_that_the_run_recorded(run, utility):
    accuracy = utility_for(read_about(run), "accuracy")
    for fl_round in replay(run):
        assert utility(fl_round.end) == pytest.approx(-fl_round.metrics["test loss"], rel=1e-9)
        assert accuracy(fl_round.end) == fl_round.metrics["test accuracy"]


def test_threads_answer_as_one_does_and_leave_torch_as_it_was(run, utility):
    before = torch.get_num_threads()
    models = [model for fl_round in replay(run) for model in (fl_round.start, *fl_round.local.values())]
    alone = [utility(model) for model in models]
    found = {}

    def ask(place):
        found[place] = [utility(model) for model in models]

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(3), alone)
    assert torch.get_num_threads() == before


def test_an_assessor_gets_the_same_from_one_worker_and_from_two(run, utility):
    answers = []
    for workers in (1, 2):
        assessor = Shapley(Evaluator(utility, workers=workers))
        for fl_round in replay(run):
            assessor.observe(fl_round)
        answers.append(assessor.assessment())
    assert answers[0] == answers[1]
    assert utility.workers >= 1
    assert answers[0].settings["utility"] == "loss on 360 test images of digits"


def test_the_gradient_is_the_slope_of_the_loss(run, utility):
    (first, *_) = replay(run)
    model = {name: np.array(array, dtype=np.float64) for name, array in first.end.items()}
    slope = utility.gradient(first.end)
    assert {name: array.shape for name, array in slope.items()} == {name: array.shape for name, array in model.items()}
    rng = np.random.default_rng(0)
    way = {name: rng.normal(size=array.shape) for name, array in model.items()}
    size = 1e-3
    ahead, behind = (
        utility({name: np.float32(model[name] + sign * size * way[name]) for name in model}) for sign in (1, -1)
    )
    expected = -(ahead - behind) / (2 * size)  # of the loss, which is minus the utility
    assert sum(float(np.sum(slope[name] * way[name])) for name in model) == pytest.approx(expected, rel=1e-2)


def test_the_gradient_leaves_nothing_behind(run, utility):
    (first, *_) = replay(run)
    once = utility.gradient(first.end)
    utility(first.start)
    again = utility.gradient(first.end)
    for name in once:
        np.testing.assert_array_equal(once[name], again[name])
    assert DIGFL(utility).settings["utility"] == utility.name


def test_fewer_images_are_another_utility_and_too_many_are_all(run, utility):
    (first, *_) = replay(run)
    some = utility_for(read_about(run), limit=50)
    assert some(first.end) != utility(first.end)
    assert some.name == "loss on 50 test images of digits"
    assert utility_for(read_about(run), limit=10**6)(first.end) == utility(first.end)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "f1"}, r"measure must be 'loss' .* got 'f1'"),
        ({"limit": 0}, "limit must be an integer of at least 1"),
        ({"limit": 2.5}, "limit must be an integer of at least 1"),
    ],
)
def test_options_that_mean_nothing_are_refused(run, options, message):
    with pytest.raises(BadSetting, match=message):
        utility_for(read_about(run), **options)


def test_a_run_that_is_not_of_the_lab_has_no_utility():
    with pytest.raises(BadFile, match="does not name its experiment"):
        utility_for({})


def test_a_run_on_other_data_wants_them(run):
    about = {**read_about(run), "dataset": "My own digits"}
    with pytest.raises(BadSetting, match="trained on 'My own digits', but the data given are 'Digits"):
        utility_for(about)
