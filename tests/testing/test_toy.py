"""The toy federation is one: FedAvg, better and worse clients, and a utility with its gradient."""

from itertools import pairwise

import numpy as np
import pytest

from fedcoast import CoAst
from fedcoast.testing import Quadratic, toy_rounds, toy_utility


def test_the_gradient_is_the_slope_of_the_loss():
    utility, (first, *_) = toy_utility(), toy_rounds()
    slope = utility.gradient(first.start)
    model = {name: np.asarray(array, dtype=np.float64) for name, array in first.start.items()}
    step = 1e-6
    for name in slope:
        ahead = {**model, name: model[name] + step}
        assert (utility(model) - utility(ahead)) / step == pytest.approx(slope[name].sum(), abs=1e-4)


def test_the_best_model_is_worth_nothing_less_than_zero():
    assert Quadratic({"w": np.ones(3)})({"w": np.ones(3), "buffer": np.zeros(1)}) == 0


def test_the_federation_learns_and_ranks_its_clients():
    rounds, utility = toy_rounds(), toy_utility()
    worth = [utility(rounds[0].start), *(utility(fl_round.end) for fl_round in rounds)]
    assert worth == sorted(worth)
    alone = {client: utility(model) for client, model in rounds[0].local.items()}
    assert sorted(alone, key=alone.get, reverse=True) == ["north", "south", 7, "idle"]
    for fl_round in rounds[1:]:
        assert fl_round.weights == {"north": 40, "south": 30, 7: 20, "idle": 10}
    for before, after in pairwise(rounds):
        assert all(np.array_equal(before.end[name], after.start[name]) for name in before.end)


def test_rounds_share_no_memory():
    one, other = toy_rounds(), toy_rounds()
    one[0].local["north"]["head.bias"][...] = 9
    one[0].start["head.bias"][...] = 9
    one[0].end["norm.running_mean"][...] = 9
    CoAst().observe(other[0])
    assert not (other[0].local["north"]["head.bias"] == 9).any()
    assert not (one[1].start["head.bias"] == 9).any()
    assert not (toy_rounds()[0].end["norm.running_mean"] == 9).any()
