"""Beta Shapley of rounds: Shapley's value in the middle, lone clients at one end, the last to join at the other."""

import pytest

import fixture_q
from fedcoast import BadSetting
from fedcoast.methods import BetaShapley, Individual, LeaveOneOut, Shapley
from federations import show
from fixture_q import Quadratic


def test_one_and_one_is_shapley():
    exact = show(Shapley(Quadratic()), fixture_q.rounds()).scores
    assert show(BetaShapley(Quadratic(), alpha=1, beta=1), fixture_q.rounds()).scores == pytest.approx(exact)


def test_the_extremes_are_standing_alone_and_leaving_one_out():
    alone = show(Individual(Quadratic()), fixture_q.rounds()).scores
    missed = show(LeaveOneOut(Quadratic()), fixture_q.rounds()).scores
    assert show(BetaShapley(Quadratic(), alpha=1e7), fixture_q.rounds()).scores == pytest.approx(alone, rel=1e-5)
    assert show(BetaShapley(Quadratic(), alpha=1, beta=1e7), fixture_q.rounds()).scores == pytest.approx(
        missed, rel=1e-5
    )


@pytest.mark.parametrize(("option", "value"), [("alpha", 0), ("beta", -1), ("beta", "x")])
def test_options_that_mean_nothing_are_refused(option, value):
    with pytest.raises(BadSetting, match=f"{option} must be a positive number"):
        BetaShapley(Quadratic(), **{option: value})
