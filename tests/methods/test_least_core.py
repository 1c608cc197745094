"""The least core of rounds, whole and from a sample."""

import pytest

import fixture_q
from fedcoast import BadSetting
from fedcoast.methods import LeastCore
from federations import federation, show
from fixture_q import Quadratic


def test_credits_add_up_to_the_rounds_gain():
    credits, utility = show(LeastCore(Quadratic()), fixture_q.rounds("n")).credits, Quadratic()
    for fl_round in fixture_q.rounds("n"):
        assert sum(credits[fl_round.number].values()) == pytest.approx(utility(fl_round.end) - utility(fl_round.start))


def test_a_sample_gives_out_the_same_and_asks_for_less():
    rounds = federation(clients=tuple(range(8)), rounds=2, layers={"w": (6,)})
    whole, some = LeastCore(lambda m: -float(m["w"] @ m["w"])), LeastCore(lambda m: -float(m["w"] @ m["w"]), samples=30)
    exact, sampled = show(whole, rounds).credits, show(some, rounds).credits
    for number in (1, 2):
        assert sum(sampled[number].values()) == pytest.approx(sum(exact[number].values()))
    assert some.evaluations <= 2 * (30 + 8 + 2) < whole.evaluations


def test_samples_are_counted():
    with pytest.raises(BadSetting, match="samples must be an integer of at least 1"):
        LeastCore(Quadratic(), samples=0)
