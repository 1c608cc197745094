"""TMC-Shapley on rounds: near the exact value, with fewer evaluations."""

import numpy as np
import pytest

import fixture_q
from fedcoast import BadSetting
from fedcoast.methods import Shapley, TMCShapley
from fedcoast.testing import toy_rounds, toy_utility
from federations import federation, show
from fixture_q import Quadratic


def test_few_clients_without_tolerance_are_valued_exactly():
    exact = show(Shapley(Quadratic()), fixture_q.rounds("n")).scores
    sampled = show(TMCShapley(Quadratic(), tolerance=0), fixture_q.rounds("n")).scores
    assert sampled == pytest.approx(exact, abs=1e-12)


def test_it_comes_near_shapley_as_the_orders_grow():
    rounds, utility = (
        federation(clients=tuple(range(7)), rounds=1, layers={"w": (6,)}),
        lambda m: -float(m["w"] @ m["w"]),
    )
    exact = np.array(list(show(Shapley(utility), rounds).scores.values()))
    errors = []
    for count in (4, 64, 1024):
        of_seeds = [
            np.array(list(show(TMCShapley(utility, permutations=count, tolerance=0, seed=s), rounds).scores.values()))
            for s in range(6)
        ]
        errors.append(float(np.mean([np.abs(values - exact).max() for values in of_seeds])))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0] / 8


def test_it_asks_for_fewer_coalitions_than_there_are():
    rounds = federation(clients=tuple(range(10)), rounds=1)
    assessor = TMCShapley(lambda model: -float(np.sum(model["head.weight"] ** 2)))
    show(assessor, rounds)
    assert assessor.evaluations < 0.3 * 2**10


def test_a_wide_tolerance_asks_for_next_to_nothing():
    assessor = TMCShapley(toy_utility(), tolerance=1e9)
    rounds = toy_rounds()
    assert set(show(assessor, rounds).scores.values()) == {0.0}
    assert assessor.evaluations == 2 * len(rounds)


@pytest.mark.parametrize(
    ("option", "value"), [("permutations", 0), ("tolerance", -1), ("tolerance", "x"), ("seed", -1)]
)
def test_options_that_mean_nothing_are_refused(option, value):
    with pytest.raises(BadSetting, match=f"{option} must be"):
        TMCShapley(Quadratic(), **{option: value})
