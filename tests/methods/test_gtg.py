"""GTG-Shapley on rounds: truncated between and within them, settled early."""

import numpy as np
import pytest

import fixture_q
from fedcoast import BadSetting
from fedcoast.methods import GTGShapley, Shapley
from federations import federation, show
from fixture_q import CLIENTS, Quadratic


def test_it_comes_near_shapley_as_the_orders_grow():
    rounds, utility = (
        federation(clients=tuple(range(7)), rounds=1, layers={"w": (6,)}),
        lambda m: -float(m["w"] @ m["w"]),
    )
    exact = np.array(list(show(Shapley(utility), rounds).scores.values()))
    errors = []
    for count in (7, 70, 1400):
        options = {"permutations": count, "convergence_tol": 0, "within_tol": 0, "round_tol": 0}
        of_seeds = [
            np.array(list(show(GTGShapley(utility, seed=seed, **options), rounds).scores.values())) for seed in range(6)
        ]
        errors.append(float(np.mean([np.abs(values - exact).max() for values in of_seeds])))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0] / 6


def test_it_asks_for_fewer_coalitions_than_there_are():
    rounds = federation(clients=tuple(range(12)), rounds=1, layers={"w": (4,)})
    start = rounds[0].start["w"]
    assessor = GTGShapley(lambda model: 1 - float(np.exp(-np.abs(model["w"] - start).sum())))
    show(assessor, rounds)
    assert assessor.evaluations < 2**12 / 3


def test_a_round_that_gained_nothing_costs_two_evaluations_and_gives_nothing():
    assessor = GTGShapley(Quadratic(), round_tol=10.0)
    assert set(show(assessor, fixture_q.rounds()).scores.values()) == {0.0}
    assert assessor.evaluations == 3 * 2


def test_without_truncation_credits_add_up_to_the_gain_and_the_positive_part_does_when_normalised():
    plain = show(GTGShapley(Quadratic(), within_tol=0), fixture_q.rounds()).credits
    scaled = show(GTGShapley(Quadratic(), within_tol=0, normalise="positive-part"), fixture_q.rounds()).credits
    utility = Quadratic()
    for fl_round in fixture_q.rounds():
        gained = utility(fl_round.end) - utility(fl_round.start)
        assert sum(plain[fl_round.number].values()) == pytest.approx(gained)
        positive = [credit for credit in scaled[fl_round.number].values() if credit >= 0]
        assert sum(positive) == pytest.approx(gained, rel=1e-6)
        assert [np.sign(plain[fl_round.number][c]) for c in CLIENTS] == [
            np.sign(scaled[fl_round.number][c]) for c in CLIENTS
        ]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("round_tol", -1),
        ("within_tol", "x"),
        ("convergence_tol", None),
        ("permutations", 0),
        ("normalise", "sum"),
        ("seed", 1.5),
    ],
)
def test_options_that_mean_nothing_are_refused(option, value):
    with pytest.raises(BadSetting, match=f"{option} must be"):
        GTGShapley(Quadratic(), **{option: value})
