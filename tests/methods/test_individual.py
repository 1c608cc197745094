"""Each client alone, with and without what the model was worth before."""

import pytest

import fixture_q
from fedcoast import BadSetting
from fedcoast.methods import Individual
from federations import show
from fixture_q import CLIENTS, Quadratic


def test_it_is_the_worth_of_the_upload_less_that_of_the_start():
    utility, (first, *_) = Quadratic(), fixture_q.rounds("n")
    idle = show(Individual(Quadratic()), [first]).scores
    plain = show(Individual(Quadratic(), baseline="none"), [first]).scores
    for client in CLIENTS:
        assert plain[client] == pytest.approx(utility(first.local[client]))
        assert idle[client] == pytest.approx(utility(first.local[client]) - utility(first.start))


def test_who_changes_nothing_is_worth_nothing():
    assert show(Individual(Quadratic()), fixture_q.rounds(idle=["c3"])).scores["c3"] == 0


def test_it_asks_as_often_as_there_are_clients_and_once_for_the_baseline():
    for baseline, count in (("idle", 12), ("none", 9)):
        assessor = Individual(Quadratic(), baseline=baseline)
        show(assessor, fixture_q.rounds())
        assert assessor.evaluations == count


def test_the_baseline_is_a_word():
    with pytest.raises(BadSetting, match="baseline must be one of 'idle', 'none'; got 'zero'"):
        Individual(Quadratic(), baseline="zero")
