"""Data size, chance and constant: what every other method must beat."""

import math
from dataclasses import replace

import numpy as np
import pytest

from fedcoast import BadRound
from fedcoast.methods import METHODS, Chance, Constant, Cosine, Size
from federations import federation, show, without


def weighted(rounds):
    return [replace(r, weights={c: 10 * len(c) + place for place, c in enumerate(r.clients)}) for r in rounds]


def test_data_size_is_what_the_aggregation_counted():
    answer = show(Size(), weighted(federation(rounds=3)))
    assert answer.mean == {"ann": 30, "bob": 31, "cid": 32}
    assert answer.scores["cid"] == 96


def test_data_size_counts_the_rounds_a_client_was_there():
    shown = weighted(
        [without(fl_round, "bob") if fl_round.number == 2 else fl_round for fl_round in federation(rounds=3)]
    )
    assert show(Size(), shown).rounds_scored == {"ann": 3, "bob": 2, "cid": 3}


def test_data_size_without_weights_says_what_is_missing():
    with pytest.raises(BadRound, match=r"round 1 has no aggregation weights.*Round\(weights=…\)"):
        show(Size(), federation(rounds=1))


def test_a_weight_of_a_quarantined_client_earns_nothing():
    (fl_round,) = weighted(federation(rounds=1))
    broken = {name: np.full_like(array, np.nan) for name, array in fl_round.start.items()}
    answer = show(Size(), [replace(fl_round, local={**fl_round.local, "bob": broken})])
    assert answer.credits == {1: {"ann": 30, "cid": 32}}
    assert answer.scores["bob"] == 0


def test_chance_knows_nothing_but_the_name_and_the_seed():
    one, other = show(Chance(), federation(seed=1)), show(Chance(), federation(seed=2))
    assert one.scores == other.scores
    assert show(Chance(seed=1), federation()).scores != one.scores
    assert all(0 < score <= 1 for score in one.scores.values())
    assert len(set(one.scores.values())) == 3


def test_chance_tells_the_number_seven_from_the_name_seven():
    answer = show(Chance(), federation(clients=(7, "7", -7)))
    assert len(set(answer.scores.values())) == 3


def test_chance_is_uniform_and_on_average_of_no_use():
    everyone = tuple(range(400))
    draws = np.array(list(show(Chance(), federation(rounds=1, clients=everyone, layers={"w": (1,)})).scores.values()))
    assert draws.mean() == pytest.approx(0.5, abs=0.05)
    assert np.histogram(draws, bins=4, range=(0, 1))[0].min() > 70
    truth = {"ann": 3.0, "bob": 2.0, "cid": 1.0}
    shown = federation(rounds=1)
    assert abs(np.mean([show(Chance(seed=s), shown).spearman(truth) for s in range(60)])) < 0.25


def test_the_score_of_chance_does_not_grow_with_the_rounds():
    shown = [without(fl_round, "bob") if fl_round.number > 1 else fl_round for fl_round in federation()]
    assert show(Chance(), shown).scores == show(Chance(), shown[:1]).scores


def test_no_correlation_with_a_constant_is_a_number():
    shown = [without(fl_round, "bob") if fl_round.number > 1 else fl_round for fl_round in federation()]
    constant, cosine = show(Constant(), shown), show(Cosine(), shown)
    assert set(constant.scores.values()) == {0}
    assert math.isnan(constant.spearman(cosine.scores))
    assert math.isnan(cosine.spearman(constant.scores))


def test_baselines_do_with_ballots():
    (fl_round,) = weighted(federation(rounds=1))
    for name in ("size", "chance", "constant"):
        assert show(METHODS[name].make(), [replace(fl_round, ballot_keep=0.1)]).credits
