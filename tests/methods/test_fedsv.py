"""FedSV: the cohort's game in each round, exact or sampled."""

from dataclasses import replace

import pytest

import fixture_q
from fedcoast import BadSetting
from fedcoast.methods import FedSV
from federations import show, without
from fixture_q import Quadratic


def test_who_was_not_heard_gets_nothing_for_the_round():
    rounds = list(fixture_q.rounds())
    rounds[1] = without(replace(rounds[1], weights=None), "c1")
    whole, partial = show(FedSV(Quadratic()), fixture_q.rounds()), show(FedSV(Quadratic()), rounds)
    assert partial.scores["c1"] == pytest.approx(whole.credits[1]["c1"] + whole.credits[3]["c1"])
    assert partial.rounds_scored == {"c1": 2, "c2": 3, "c3": 3}


def test_clients_with_the_same_data_score_apart_if_drawn_in_different_rounds():
    """FedSV's known weakness, and no fault of ours; ComFedSV is the remedy."""
    rounds = []
    for fl_round in fixture_q.rounds():
        twins = {**fl_round.local, "twin": fl_round.local["c1"]}
        twins.pop("c1" if fl_round.number == 1 else "twin")
        rounds.append(type(fl_round)(fl_round.number, start=fl_round.start, local=twins, end=fl_round.end))
    found = show(FedSV(Quadratic()), rounds).scores
    assert abs(found["twin"] - found["c1"]) > 0.1


def test_sampling_every_order_is_exact_and_fewer_are_right_on_average():
    exact = show(FedSV(Quadratic()), fixture_q.rounds()).scores
    every = show(FedSV(Quadratic(), permutations=6), fixture_q.rounds()).scores
    some = [show(FedSV(Quadratic(), permutations=3, seed=seed), fixture_q.rounds()).scores for seed in range(60)]
    assert every == pytest.approx(exact, abs=1e-12)
    assert some[0] != some[1]
    for client, score in exact.items():
        assert sum(of[client] for of in some) / len(some) == pytest.approx(score, abs=0.25)


@pytest.mark.parametrize("permutations", [0, -1, 2.5, True])
def test_permutations_are_counted(permutations):
    with pytest.raises(BadSetting, match="permutations must be an integer of at least 1"):
        FedSV(Quadratic(), permutations=permutations)
