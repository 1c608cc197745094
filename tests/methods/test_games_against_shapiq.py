"""Shapley, Banzhaf, Beta Shapley and the least core against an independent library, on random games."""

import numpy as np
import pytest
from shapiq.game_theory.exact import ExactComputer

from fedcoast.methods.coalition.games import banzhaf, beta_shapley, shapley
from fedcoast.methods.coalition.least_core_program import least_core

GAMES = [(seed, players) for players in (2, 3, 4, 5) for seed in range(5)]


def computer(table):
    players = (len(table) - 1).bit_length()
    bits = 1 << np.arange(players)
    return ExactComputer(lambda rows: table[np.atleast_2d(rows).astype(int) @ bits], n_players=players)


def of_players(values, players):
    return np.array([values[(player,)] for player in range(players)])


def game(seed, players):
    rng = np.random.default_rng([seed, players])
    return rng.normal(size=2**players) * 10.0 ** rng.integers(-3, 4)


@pytest.mark.parametrize(("seed", "players"), GAMES)
def test_semivalues_are_those_of_shapiq(seed, players):
    table = game(seed, players)
    theirs = computer(table)
    tolerance = 1e-12 * np.abs(table).max()
    expected = of_players(theirs("SV", 1), players)
    np.testing.assert_allclose(shapley(table), expected, rtol=0, atol=tolerance)
    np.testing.assert_allclose(beta_shapley(table, 1, 1), expected, rtol=0, atol=tolerance)
    np.testing.assert_allclose(banzhaf(table), of_players(theirs("BV", 1), players), rtol=0, atol=tolerance)


def test_the_least_core_is_that_of_shapiq_where_shapiq_reaches_it():
    """shapiq minimises ‖x‖ + e for e ≥ 0 in one go. Where that ends at the least e, its x is the smallest for it."""
    compared = 0
    for seed in range(60):
        players = 3 + seed % 3
        table = np.random.default_rng(seed).normal(size=2**players)
        table[0] = 0
        theirs = computer(table.copy())
        expected = of_players(theirs("ELC", 1), players)
        payments, subsidy = least_core(dict(enumerate(table)), players)
        reached = max(
            table[c] - sum(expected[i] for i in range(players) if c >> i & 1) for c in range(1, 2**players - 1)
        )
        assert subsidy <= reached + 1e-6  # theirs is never better
        if reached - subsidy < 1e-6:
            np.testing.assert_allclose(payments, expected, atol=1e-5)
            compared += 1
    assert compared >= 10
