"""Values of games whose answers are known by hand or by their definition."""

import itertools
import math

import numpy as np
import pytest

from fedcoast.errors import BadSetting
from fedcoast.methods.coalition.games import (
    banzhaf,
    banzhaf_reuse,
    beta_shapley,
    beta_weights,
    everyone,
    individual,
    leave_one_out,
    lookup,
    members,
    random_coalitions,
    semivalue,
    shapley,
    tabulate,
)
from paper.research_code import mean_of_inner_marginals

# A rival clamps marginals at zero, and cannot see that player 2 harms whoever it joins: v(N) = 0.6 here, and the true
# values are (0.35, 0.35, −0.10).
HARMFUL = np.array([0.0, 0.5, 0.5, 0.8, 0.1, 0.3, 0.3, 0.6])


def random_game(seed, players=4):
    return np.random.default_rng(seed).normal(size=2**players)


def shapley_by_orders(table):
    """The definition over all n! orders, with nothing shared with the code under test."""
    players = (len(table) - 1).bit_length()
    totals = [0.0] * players
    for order in itertools.permutations(range(players)):
        joined = 0
        for player in order:
            totals[player] += table[joined | 1 << player] - table[joined]
            joined |= 1 << player
    return np.array(totals) / math.factorial(players)


@pytest.mark.parametrize("players", [1, 2, 3, 4, 5])
def test_shapley_is_the_mean_over_all_orders_of_joining(players):
    game = random_game(players, players)
    np.testing.assert_allclose(shapley(game), shapley_by_orders(game), atol=1e-12)


def test_a_harmful_player_is_worth_less_than_nothing():
    np.testing.assert_allclose(shapley_by_orders(HARMFUL), [0.35, 0.35, -0.10], atol=1e-12)
    np.testing.assert_allclose(shapley(HARMFUL), [0.35, 0.35, -0.10], atol=1e-12)
    assert banzhaf(HARMFUL)[2] < 0
    assert leave_one_out(lookup(HARMFUL), 3)[2] < 0


def test_players_who_add_the_same_have_the_same_value_to_the_last_bit():
    rng = np.random.default_rng(0)
    by_size_and_star = rng.normal(size=(7, 2)) * 10.0 ** rng.integers(-8, 8, size=(7, 2))
    game = [by_size_and_star[(c >> 1).bit_count(), c & 1] for c in range(2**7)]
    for value in (shapley, banzhaf, lambda table: beta_shapley(table, 4, 1)):
        assert len(set(value(game)[1:].tolist())) == 1


def test_one_player_gets_what_there_is_to_gain():
    for value in (shapley, banzhaf, lambda table: beta_shapley(table, 16, 1)):
        assert value([2.0, 5.0]).tolist() == pytest.approx([3.0])
    assert leave_one_out(lookup([2.0, 5.0]), 1).tolist() == [3.0]
    assert individual(lookup([2.0, 5.0]), 1).tolist() == [3.0]


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (4, 1), (1, 16), (0.5, 2.5)])
@pytest.mark.parametrize("players", [1, 2, 5, 15])
def test_beta_weights_are_a_distribution_over_the_coalitions(alpha, beta, players):
    weights = beta_weights(players, alpha, beta)
    assert sum(math.comb(players - 1, k) * weight for k, weight in enumerate(weights)) == pytest.approx(1)


def test_beta_shapley_is_the_mean_of_binomial_semivalues_over_a_beta_law():
    """Kwon and Zou's p(k) is E[q^k (1−q)^{n−1−k}] for q ~ Beta(β, α): here by quadrature, not by gamma functions."""
    game, alpha, beta = random_game(3, 5), 4, 2  # whole numbers: a polynomial, which the quadrature has exactly
    nodes, heights = np.polynomial.legendre.leggauss(12)
    q, weight = (nodes + 1) / 2, heights / 2 * ((nodes + 1) / 2) ** (beta - 1) * (1 - (nodes + 1) / 2) ** (alpha - 1)
    binomial = np.array([semivalue(game, [p**k * (1 - p) ** (4 - k) for k in range(5)]) for p in q])
    expected = (weight[:, None] * binomial).sum(axis=0) / weight.sum()
    np.testing.assert_allclose(beta_shapley(game, alpha, beta), expected, rtol=1e-10)


def test_beta_shapley_of_one_and_one_is_shapley():
    game = random_game(1, 6)
    np.testing.assert_allclose(beta_shapley(game, 1, 1), shapley(game), atol=1e-12)


def test_the_research_code_ignores_the_empty_and_the_full_coalition():
    game = random_game(5)
    changed = game.copy()
    changed[[0, -1]] = 1e6
    np.testing.assert_array_equal(mean_of_inner_marginals(changed), mean_of_inner_marginals(game))
    assert not np.allclose(shapley(changed), shapley(game))


@pytest.mark.parametrize("players", [1, 2])
def test_the_research_code_has_nothing_to_average_over_for_fewer_than_three(players):
    assert mean_of_inner_marginals(random_game(0, players)).tolist() == [0.0] * players


def test_reused_samples_of_every_coalition_are_the_exact_banzhaf_value():
    game = random_game(2, 5)
    np.testing.assert_allclose(banzhaf_reuse(lookup(game), 5, range(32)), banzhaf(game), atol=1e-12)


def test_reused_samples_come_near_the_banzhaf_value_as_they_grow():
    game = random_game(2, 6)
    errors = []
    for count in (30, 300, 3000, 30000):
        drawn = random_coalitions(6, count, np.random.default_rng(7))
        errors.append(np.abs(banzhaf_reuse(lookup(game), 6, drawn) - banzhaf(game)).max())
    assert errors[-1] < 0.03
    assert errors == sorted(errors, reverse=True)


def test_a_player_drawn_on_one_side_only_has_no_sampled_value():
    assert np.isnan(banzhaf_reuse(lookup(HARMFUL), 3, [0b011, 0b001, 0b000])).tolist() == [False, False, True]


def test_coalitions_are_drawn_evenly():
    drawn = random_coalitions(3, 8000, np.random.default_rng(0))
    counts = np.bincount(drawn, minlength=8)
    assert counts.min() > 900
    assert counts.max() < 1100


def test_a_game_is_asked_for_each_coalition_and_no_more():
    calls = []

    def ask(coalitions):
        calls.extend(coalitions)
        return [0.0] * len(coalitions)

    leave_one_out(ask, 4)
    assert sorted(calls) == [0b0111, 0b1011, 0b1101, 0b1110, 0b1111]
    calls.clear()
    individual(ask, 3)
    assert calls == [0, 1, 2, 4]
    calls.clear()
    individual(ask, 3, "none")
    assert calls == [1, 2, 4]
    calls.clear()
    tabulate(ask, 3)
    assert calls == list(range(8))


def test_coalitions_are_bits():
    assert everyone(4) == 15
    assert members(0) == ()
    assert members(0b10110) == (1, 2, 4)


@pytest.mark.parametrize("table", [[], [1.0, 2.0, 3.0], [[1.0, 2.0], [3.0, 4.0]]])
def test_a_table_that_is_no_game_is_refused(table):
    with pytest.raises(BadSetting, match=r"a list of 2\*\*n worths; got an array of shape"):
        shapley(table)
