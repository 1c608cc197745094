"""Shapley's axioms, on tables and on rounds, and what holds of the other values."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedcoast.methods import Banzhaf, BetaShapley, Individual, LeastCore, LeaveOneOut, Shapley
from fedcoast.methods.coalition.games import banzhaf, beta_shapley, leave_one_out, lookup, shapley
from fedcoast.methods.coalition.least_core_program import least_core
from federations import show
from strategies import federations, steady

worths = st.floats(-1e6, 1e6).map(lambda worth: worth if abs(worth) > 1e-6 else 0.0)


@st.composite
def games(draw, least=1, most=5):
    players = draw(st.integers(least, most))
    return draw(hnp.arrays(np.float64, 2**players, elements=worths))


def close(one, other, scale):
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-9 * (1 + np.abs(scale).max()))


def swapped(table, first, second):
    """The same game with two players' names exchanged."""

    def name(coalition):
        ends = (coalition >> first & 1) ^ (coalition >> second & 1)
        return coalition ^ (ends << first | ends << second)

    return np.array([table[name(coalition)] for coalition in range(len(table))])


@steady
@given(games())
def test_shapley_gives_out_what_there_is(table):
    close(shapley(table).sum(), table[-1] - table[0], table)


@steady
@given(games(least=2), st.data())
def test_players_who_add_the_same_are_worth_the_same(table, data):
    players = len(table).bit_length() - 1
    first = data.draw(st.integers(0, players - 2))
    second = data.draw(st.integers(first + 1, players - 1))
    even = (table + swapped(table, first, second)) / 2
    for value in (shapley, banzhaf, lambda game: beta_shapley(game, 4, 1)):
        assert value(even)[first] == value(even)[second]


@steady
@given(games(least=2), st.data())
def test_who_adds_nothing_is_worth_nothing(table, data):
    players = len(table).bit_length() - 1
    null = data.draw(st.integers(0, players - 1))
    without = np.array([table[coalition & ~(1 << null)] for coalition in range(len(table))])
    for value in (shapley, banzhaf, lambda game: beta_shapley(game, 4, 1), lambda g: leave_one_out(lookup(g), players)):
        assert value(without)[null] == 0


@steady
@given(games(least=3, most=3), games(least=3, most=3), st.floats(-100, 100))
def test_values_are_linear_in_the_game(one, other, factor):
    for value in (shapley, banzhaf, lambda game: beta_shapley(game, 16, 1)):
        close(value(one + factor * other), value(one) + factor * value(other), np.abs(one) + 100 * np.abs(other))


@steady
@given(games(least=2, most=4))
def test_the_least_core_gives_out_what_there_is_and_no_coalition_is_short_by_more_than_the_subsidy(table):
    players = len(table).bit_length() - 1
    payments, subsidy = least_core(dict(enumerate(table)), players)
    close(payments.sum(), table[-1] - table[0], table)
    for coalition in range(1, len(table) - 1):
        paid = sum(payments[player] for player in range(players) if coalition >> player & 1)
        assert paid + subsidy >= table[coalition] - table[0] - 1e-8 * (1 + np.abs(table).max())


def distance(model):
    """Minus the squared distance from one: every layer, every buffer."""
    return -sum(float(np.sum((np.asarray(array, dtype=np.float64) - 1) ** 2)) for array in model.values())


def tilt(model):
    return sum(float(np.sum(np.sin(np.asarray(array, dtype=np.float64)))) for array in model.values())


@steady
@given(federations(clients=st.integers(1, 4)))
def test_a_rounds_credits_add_up_to_what_the_round_gained(rounds):
    for method in (Shapley, LeastCore):
        credits = show(method(distance), rounds).credits
        for fl_round in rounds:
            gained = distance(merged(fl_round)) - distance(fl_round.start)
            assert math.isclose(sum(credits[fl_round.number].values()), gained, rel_tol=1e-3, abs_tol=1e-3)


def merged(fl_round):
    models = list(fl_round.local.values())
    return {
        name: np.asarray(np.mean([model[name] for model in models], axis=0, dtype=np.float64), dtype=array.dtype)
        for name, array in fl_round.start.items()
    }


@steady
@given(federations(clients=st.integers(2, 4), rounds=st.integers(1, 2), partial=False))
def test_a_client_that_changes_nothing_scores_zero_exactly_under_the_fixed_denominator(rounds):
    idle = [type(r)(r.number, start=r.start, local={**r.local, 0: r.start}, end=r.end) for r in rounds]
    for method in (Shapley, Banzhaf, BetaShapley, LeaveOneOut, Individual):
        assert show(method(distance, denominator="fixed"), idle).scores[0] == 0


@steady
@given(federations(clients=st.integers(1, 3), rounds=st.integers(1, 2)))
def test_scores_are_linear_in_the_utility(rounds):
    for method in (Shapley, Banzhaf, LeaveOneOut):
        one, other = show(method(distance), rounds).scores, show(method(tilt), rounds).scores
        both = show(method(lambda model: distance(model) - 3 * tilt(model)), rounds).scores
        for client, score in both.items():
            assert math.isclose(score, one[client] - 3 * other[client], rel_tol=1e-6, abs_tol=1e-6)
