"""MR and λ-MR: shares of gains, and the guard where there is no gain to share."""

from dataclasses import replace

import numpy as np
import pytest

import fixture_q
from fedcoast import BadSetting
from fedcoast.methods import MultiRound, Shapley
from federations import show
from fixture_q import Quadratic


def test_every_round_gives_out_one_or_what_is_left_of_it():
    for decay in (1.0, 0.5):
        credits = show(MultiRound(Quadratic(), decay=decay), fixture_q.rounds()).credits
        for place, of in enumerate(credits.values(), start=1):
            assert sum(of.values()) == pytest.approx(decay**place)


def test_rounds_are_counted_as_they_are_shown_whatever_their_numbers():
    later = [replace(fl_round, number=10 * fl_round.number) for fl_round in fixture_q.rounds()]
    here, there = (
        show(MultiRound(Quadratic(), decay=0.5), fixture_q.rounds()),
        show(MultiRound(Quadratic(), decay=0.5), later),
    )
    assert here.scores == there.scores


def backwards():
    """A round that made the model worse: everybody walks away from the optimum."""
    for fl_round in fixture_q.rounds(count=1):
        local = {c: {n: 2 * fl_round.start[n] - model[n] for n in model} for c, model in fl_round.local.items()}
        yield replace(fl_round, local=local)


def test_a_loss_keeps_its_sign_under_the_guard_and_turns_round_without():
    sv = show(Shapley(Quadratic()), backwards()).scores
    guarded = show(MultiRound(Quadratic()), backwards()).scores
    bare = show(MultiRound(Quadratic(), guard=None), backwards()).scores
    assert sum(sv.values()) < 0
    for client, value in sv.items():
        assert np.sign(guarded[client]) == np.sign(value)
        assert np.sign(bare[client]) == -np.sign(value)
    assert sum(guarded.values()) == pytest.approx(-1)


def test_a_round_without_gain_gives_nothing():
    still = [replace(r, local=dict.fromkeys(r.local, r.start)) for r in fixture_q.rounds()]
    for guard in (1e-6, None):
        assert set(show(MultiRound(Quadratic(), guard=guard), still).scores.values()) == {0.0}
    assert set(show(MultiRound(Quadratic(), guard=100.0), fixture_q.rounds()).scores.values()) == {0.0}


def test_rounds_below_the_cut_are_not_played():
    assessor = MultiRound(Quadratic(), decay=0.5, cut=0.2)
    credits = show(assessor, fixture_q.rounds()).credits
    assert assessor.evaluations == 2 * 8
    assert set(credits[3].values()) == {0.0}


@pytest.mark.parametrize(("option", "value"), [("decay", 0), ("decay", 1.5), ("guard", -1), ("guard", "x"), ("cut", 2)])
def test_options_that_mean_nothing_are_refused(option, value):
    with pytest.raises(BadSetting, match=f"{option} must"):
        MultiRound(Quadratic(), **{option: value})
