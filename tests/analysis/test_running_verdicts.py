"""Verdicts as numbers while a federation trains: the same rule as everywhere, at a cost that does not grow."""

from itertools import pairwise

import numpy as np
import pytest

from fedcoast import Assessment
from fedcoast.analysis import running_verdicts
from fedcoast.analysis.running_verdicts import CODES, RunningVerdicts
from fedcoast.analysis.uncertainty import joint_ranges, uncertainty
from fedcoast.analysis.verdicts import VERDICTS, verdicts


def answer(rounds, zero_is_idle=True):
    """One client that helps, one that hurts, one without effect and one that returns the model."""
    rng = np.random.default_rng(5)
    worth = {"helper": 9.0, "harm": -9.0, "noise": 0.0}
    credits = {n: {c: w + rng.normal() for c, w in worth.items()} | {"rider": 0.0} for n in range(rounds)}
    return Assessment(
        "coast",
        {c: sum(of[c] for of in credits.values()) for c in (*worth, "rider")},
        credits,
        rounds_scored=dict.fromkeys((*worth, "rider"), rounds),
        zero_is_idle=zero_is_idle,
        unchanged=dict.fromkeys(credits, ("rider",)),
    )


def test_every_verdict_has_a_number_and_only_what_is_never_paid_is_below_zero():
    assert set(CODES) == set(VERDICTS)
    assert {verdict for verdict, code in CODES.items() if code < 0} == {"hurts", "idle"}


@pytest.mark.parametrize("rounds", [1, 5, 6, 40])
def test_they_are_the_verdicts_of_every_other_place(rounds):
    found = answer(rounds)
    expected = verdicts(found, uncertainty(found))
    assert joint_ranges(found) == uncertainty(found).joint_intervals
    assert RunningVerdicts().codes(found) == {client: CODES[verdict] for client, verdict in expected.items()}
    assert expected["rider"] == "idle"
    assert (expected["helper"] == "helps") == (rounds >= 6)


def test_where_zero_means_nothing_and_nobody_is_idle_there_are_none():
    found = Assessment("cosine", {"a": 1.0}, {1: {"a": 1.0}}, rounds_scored={"a": 1})
    assert RunningVerdicts().codes(found) == {}
    assert RunningVerdicts().codes(Assessment("cosine", {"a": 0.0}, {}, rounds_scored={"a": 0})) == {}


def test_a_long_training_works_them_out_less_and_less_often(monkeypatch):
    worked_out = []
    monkeypatch.setattr(
        running_verdicts, "joint_ranges", lambda found: worked_out.append(len(found.credits)) or dict.fromkeys("a")
    )
    running = RunningVerdicts()
    for rounds in range(1, 1001):
        credits = {number: {"a": 1.0} for number in range(rounds)}
        running.codes(Assessment("coast", {"a": rounds}, credits, rounds_scored={"a": rounds}, zero_is_idle=True))
    assert worked_out[:99] == list(range(1, 100))
    assert len(worked_out) < 250
    assert max(after / before for before, after in pairwise(worked_out[98:])) <= 1.02
    assert worked_out[-1] > 980
