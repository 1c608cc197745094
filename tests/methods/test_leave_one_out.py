"""Leave-one-out and its neighbour, each client alone."""

from dataclasses import replace

import pytest

import fixture_q
from fedcoast.methods import LeaveOneOut
from federations import show, without
from fixture_q import Quadratic


def test_it_asks_for_one_more_coalition_than_there_are_clients():
    assessor = LeaveOneOut(Quadratic())
    show(assessor, fixture_q.rounds())
    assert assessor.evaluations == 3 * 4


def test_of_two_clients_that_bring_the_same_neither_is_missed_under_the_fixed_denominator_of_their_sum():
    rounds = [replace(r, local={**r.local, "c3": r.local["c1"]}) for r in fixture_q.rounds()]
    found = show(LeaveOneOut(Quadratic()), rounds).scores
    assert found["c1"] == pytest.approx(found["c3"])


def test_a_client_alone_is_worth_what_the_round_gained():
    (first, *_) = fixture_q.rounds()
    alone = without(replace(first, weights=None), "c2", "c3")
    utility = Quadratic()
    assert show(LeaveOneOut(utility), [alone]).scores["c1"] == pytest.approx(
        utility(first.local["c1"]) - utility(first.start)
    )
