"""Sampling by orders of joining: exact in the limit, cheaper before it."""

import math

import numpy as np
import pytest

from fedcoast.methods.coalition.games import lookup, shapley
from fedcoast.methods.coalition.sampling import (
    budget,
    gtg,
    guided_orders,
    marginals,
    positive_part,
    random_orders,
    settled,
    tmc,
)


class Counted:
    """A game that notes which coalitions it was asked about."""

    def __init__(self, table):
        self.ask, self.seen = lookup(table), set()

    def __call__(self, coalitions):
        self.seen.update(coalitions)
        return self.ask(coalitions)


def saturating_game(players, seed=0, bend=3.0):
    """Skills that add up, with diminishing returns: what late joiners add is small, as in real federations."""
    skills = np.random.default_rng(seed).uniform(0.2, 1.0, players)
    sums = [sum(skill for i, skill in enumerate(skills) if c >> i & 1) for c in range(2**players)]
    return 1 - np.exp(-bend * np.array(sums) / skills.sum())


@pytest.mark.parametrize("sampler", ["tmc", "gtg"])
def test_sampling_comes_near_shapley_as_the_budget_grows(sampler):
    game = saturating_game(8)
    exact = shapley(game)
    errors = []
    for count in (8, 64, 512, 4096):
        of_seeds = []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            if sampler == "tmc":
                values = tmc(lookup(game), 8, random_orders(8, count, rng))
            else:
                values = gtg(lookup(game), 8, rng, round_tol=0, within_tol=0, convergence_tol=0, most=count)
            of_seeds.append(np.abs(values - exact).max())
        errors.append(float(np.mean(of_seeds)))
    assert errors == sorted(errors, reverse=True)
    # Eight times the orders, a √8-th of the error: three steps make 22.6; a third of that is far from chance.
    assert errors[-1] < errors[0] / 8
    assert errors[-1] < 0.02 * exact.max()


@pytest.mark.parametrize("sampler", ["tmc", "gtg"])
def test_sampling_asks_about_fewer_coalitions_than_there_are_and_is_near_all_the_same(sampler):
    game = Counted(saturating_game(12, bend=6.0))
    exact = shapley(saturating_game(12, bend=6.0))
    if sampler == "tmc":
        values = tmc(game, 12, random_orders(12, 60, np.random.default_rng(0)), tolerance=0.01)
    else:
        values = gtg(game, 12, np.random.default_rng(0), within_tol=0.01)
    assert len(game.seen) < 2**12 / 6
    assert np.abs(values - exact).max() < 0.3 * exact.max()
    assert np.corrcoef(values, exact)[0, 1] > 0.85


def test_truncation_asks_for_nothing_behind_it():
    """v jumps to v(N) with the first player: each order needs its first step, and no other."""
    game = Counted([0.0] + [1.0] * 31)
    values = tmc(game, 5, [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0)], tolerance=1e-6)
    assert game.seen == {0b11111, 0, 0b00001, 0b10000}
    assert values.tolist() == [0.5, 0, 0, 0, 0.5]


def test_truncation_is_checked_before_the_first_step_too():
    game = Counted([1.0] * 8)
    assert tmc(game, 3, [(0, 1, 2)], tolerance=1e-6).tolist() == [0, 0, 0]
    assert game.seen == {0, 7}


def test_without_tolerance_every_order_adds_up_to_the_gain():
    game = np.random.default_rng(0).normal(size=32)
    rows = marginals(lookup(game), 5, random_orders(5, 20, np.random.default_rng(1)))
    np.testing.assert_allclose(rows.sum(axis=1), game[-1] - game[0], atol=1e-12)


def test_orders_walked_in_step_are_orders_walked_alone():
    game = np.random.default_rng(0).normal(size=32)
    orders = random_orders(5, 20, np.random.default_rng(1))
    alone = np.concatenate([marginals(lookup(game), 5, [order], 0.3) for order in orders])
    np.testing.assert_array_equal(marginals(lookup(game), 5, orders, 0.3), alone)


def test_few_players_are_walked_in_every_order_once_and_exactly():
    assert len(random_orders(4, 24, np.random.default_rng(0))) == math.factorial(4)
    assert len(random_orders(4, 23, np.random.default_rng(0))) == 23
    game = np.random.default_rng(0).normal(size=16)
    np.testing.assert_allclose(tmc(lookup(game), 4, random_orders(4, 30, np.random.default_rng(0))), shapley(game))


def test_in_a_sweep_everybody_comes_first_once():
    orders = guided_orders(6, np.random.default_rng(0))
    assert [order[0] for order in orders] == list(range(6))
    assert all(sorted(order) == list(range(6)) for order in orders)


def test_gtg_skips_a_round_with_nothing_to_share_out():
    game = Counted([0.5, 9.0, -9.0, 0.5005])
    assert gtg(game, 2, np.random.default_rng(0), round_tol=0.001).tolist() == [0, 0]
    assert game.seen == {0, 3}
    assert gtg(game, 2, np.random.default_rng(0), round_tol=0.0001, within_tol=0).any()


def test_gtg_stops_when_the_means_have_settled():
    players = 10
    additive = Counted([float(c.bit_count()) for c in range(2**players)])  # every marginal is 1: settled at once
    assert gtg(additive, players, np.random.default_rng(0)).tolist() == [1.0] * players
    walked = len(additive.seen)
    patient = Counted(np.random.default_rng(0).normal(size=2**players))
    gtg(patient, players, np.random.default_rng(0), convergence_tol=0.0, within_tol=0)
    assert walked < 350  # forty orders of ten
    assert len(patient.seen) > 950


def test_gtgs_budget_is_that_of_its_code():
    assert budget(2) == (30, 4)
    assert budget(6) == (30, 51)
    assert budget(40) == (40, 4 * 2**40 // 5)


def test_settling_compares_the_last_running_means_with_the_newest():
    steady = np.ones((10, 4))
    assert settled(steady)
    jump = steady.copy()
    jump[0, 0] = 1.18  # 0.18 / 4 players is 4.5 %
    assert settled(jump)
    jump[0, 0] = 1.22
    assert not settled(jump)
    assert settled(jump, convergence_tol=0.06)


def test_the_positive_part_adds_up_to_the_gain():
    values = np.array([0.3, 0.2, -0.1])
    scaled = positive_part(values, gain=0.4)
    assert scaled[:2].sum() == pytest.approx(0.4)
    assert scaled[2] == pytest.approx(-0.08)
    assert positive_part(values, gain=-0.4)[2] == pytest.approx(-0.4)
    assert positive_part(np.zeros(2), gain=0.0).tolist() == [0, 0]
