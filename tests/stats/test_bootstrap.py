"""Statistics with fixed seeds: each can fail, none is flaky."""

import time
import tracemalloc
from itertools import pairwise
from math import inf, sqrt

import numpy as np
import pytest
from scipy import stats

from fedcoast.stats import bootstrap as uncertainty
from fedcoast.stats.bootstrap import (
    block_length,
    blocks_seen,
    calibration,
    correlations,
    deviations,
    half_widths,
    residuals,
    trend,
)
from fedcoast.stats.participation_adjustment import adjusted_mean
from fedcoast.stats.rank_inference import above, groups, joint_reach, rank_bounds, rounds_to_settle

LEVEL = 0.90
HORIZON = 2


def rank_intervals(values, luck, level):
    """The best and the worst rank of each client, as `uncertainty` computes them."""
    return rank_bounds(values, joint_reach(luck, level)[0])


def differing(chances, level):
    """Which pairs differ: the `level` interval of their difference does not contain 0."""
    surely = (1 + level) / 2
    return (chances >= surely) | (chances <= 1 - surely)


def independent(rng, rounds, clients):
    return rng.normal(size=(rounds, clients))


def overlapping(rng, rounds, clients):
    """Each round shares its luck with the two after it, as credits with a horizon of 2 share their future."""
    noise = rng.normal(size=(rounds + 2, clients))
    return (noise[2:] + noise[1:-1] + noise[:-2]) / sqrt(3)


def fading(rng, rounds, clients):
    return overlapping(rng, rounds, clients) * np.linspace(2, 0.5, rounds)[:, None]


def skewed(rng, rounds, clients):
    return rng.exponential(size=(rounds, clients)) - 1


def training(rounds):
    """Credits that fall steeply at first, as they do when a model converges."""
    return 10 * np.exp(-np.arange(rounds) / 8) + 1


def totals(credits):
    return np.nansum(credits, axis=0)


def covered(luck, interval, runs=60, rounds=40, clients=5, curve=training, seen=1.0, estimate=totals):
    """The share of intervals that hold the truth: what comes of the curve alone, in the rounds a client was seen in."""
    rng = np.random.default_rng(1)
    hits, widths, errors = [], [], []
    for run in range(runs):
        noise = luck(rng, rounds, clients)
        present = rng.random(noise.shape) < seen
        half = interval(np.where(present, noise + curve(rounds)[:, None], np.nan), run)
        error = estimate(np.where(present, noise, np.nan))
        known = ~np.isnan(half)
        hits += (np.abs(error) <= half)[known].tolist()
        widths += half[known].tolist()
        errors += error[known].tolist()
    return np.mean(hits), np.mean(widths) / (stats.norm.ppf((1 + LEVEL) / 2) * np.std(errors))


def ours(credits, seed):
    return half_widths(deviations(credits, HORIZON, 300, seed), LEVEL)


def of_levels(credits, seed):
    return half_widths(deviations(credits, HORIZON, 300, seed, adjusted=True), LEVEL)


def one_round_at_a_time(credits, seed):
    """The naive bootstrap, with the trend taken off all the same."""
    left = residuals(credits, block_length(len(credits), HORIZON))
    picked = np.random.default_rng(seed).integers(len(left), size=(300, len(left)))
    return np.quantile(np.abs(left[picked].sum(axis=1)), LEVEL, axis=0)


def rounds_drawn_with_their_trend(credits, seed):
    """The textbook's block bootstrap, which takes the credits to be stationary."""
    counts = uncertainty._times_drawn(np.random.default_rng(seed), 300, len(credits), 3)
    return half_widths(counts @ (credits - credits.mean(axis=0)), LEVEL)


@pytest.mark.parametrize("luck", [independent, overlapping, fading, skewed])
def test_nine_intervals_in_ten_hold_the_truth(luck):
    share, width = covered(luck, ours)
    assert 0.85 <= share <= 0.95
    assert width < 1.3  # that of an oracle who knows the spread is 1


def test_intervals_that_draw_one_round_at_a_time_hold_it_too_rarely():
    assert covered(overlapping, one_round_at_a_time)[0] < 0.70
    assert covered(overlapping, ours)[0] > 0.85


def test_intervals_that_take_the_trend_for_luck_are_useless():
    assert covered(overlapping, rounds_drawn_with_their_trend)[1] > 2
    assert covered(overlapping, ours)[1] < 1.3


@pytest.mark.parametrize(("seen", "rounds"), [(0.5, 60), (0.25, 100)])
def test_clients_that_are_away_half_of_the_time_are_covered_too(seen, rounds):
    assert 0.85 <= covered(overlapping, ours, seen=seen, rounds=rounds, runs=30)[0] <= 0.96


@pytest.mark.parametrize("luck", [independent, overlapping])
@pytest.mark.parametrize(("seen", "rounds"), [(0.5, 60), (0.25, 100)])
def test_what_is_evened_is_covered_too(luck, seen, rounds):
    share, width = covered(luck, of_levels, seen=seen, rounds=rounds, runs=30, estimate=adjusted_mean)
    assert 0.85 <= share <= 0.98
    assert width < 1.5


def test_luck_of_a_level_is_that_of_the_mean_where_everybody_is_there():
    credits = overlapping(np.random.default_rng(0), 40, 3)
    of_total, of_level = (deviations(credits, HORIZON, 300, 0, adjusted) for adjusted in (False, True))
    np.testing.assert_allclose(of_level, of_total / 40, atol=1e-12)


def test_a_rare_client_has_no_luck_of_its_own_and_lends_some_to_the_others():
    credits = overlapping(np.random.default_rng(0), 60, 3)
    credits[::2, 0] = credits[1::2, 1] = np.nan
    credits[:4, 0] = credits[:4, 1] = 0.5  # they met
    credits[:, 2] = np.nan
    alone = deviations(credits, HORIZON, 2000, 0, adjusted=True)
    credits[20:23, 2] = (-9, 9, -9)
    luck = deviations(credits, HORIZON, 2000, 0, adjusted=True)
    assert np.isnan(luck[:, 2]).all()
    assert (luck[:, :2].std(axis=0) > 1.1 * alone[:, :2].std(axis=0)).all()


def test_a_dozen_rounds_give_wide_intervals_and_not_wrong_ones():
    share, width = covered(independent, ours, rounds=12, curve=np.zeros)
    assert 0.85 <= share <= 0.97
    assert 1.2 < width < 2.5


def test_a_trend_of_training_costs_little():
    with_trend = covered(overlapping, ours, runs=20)[1]
    without = covered(overlapping, ours, runs=20, curve=np.zeros)[1]
    assert with_trend == pytest.approx(without, rel=0.1)


def test_a_trend_is_orthonormal_and_holds_whatever_is_linear_in_the_logarithm():
    places = np.array([0, 2, 3, 5, 8, 9, 13, 14, 15, 19])
    basis = trend(places, rounds=20, length=3)
    assert basis.T @ basis == pytest.approx(np.eye(basis.shape[1]))
    line = 3 - 2 * np.log(places + 2)
    assert basis @ (basis.T @ line) == pytest.approx(line)


def test_a_trend_has_fewer_terms_than_there_are_blocks_of_credits():
    assert [trend(np.arange(n), n, 3).shape[1] for n in (3, 9, 12, 18, 90)] == [1, 2, 3, 5, 5]
    assert trend(np.arange(0, 90, 9), 90, 3).shape[1] == 2


def test_blocks_are_at_least_as_long_as_what_neighbours_share_and_grow_with_the_rounds():
    assert [block_length(n, horizon=2) for n in (0, 1, 27, 64, 125, 1000)] == [3, 3, 3, 4, 5, 10]
    assert block_length(100, horizon=9) == 10
    assert block_length(100, horizon=0) == 5


def test_correlations_are_found_through_the_trend():
    rng = np.random.default_rng(0)
    runs = [overlapping(rng, 40, 5) + training(40)[:, None] for _ in range(40)]
    found = np.mean([correlations(residuals(run, 3), ~np.isnan(run), 3, HORIZON) for run in runs], axis=0)
    assert found == pytest.approx([1, 2 / 3, 1 / 3], abs=0.08)
    runs = [independent(rng, 40, 5) for _ in range(40)]
    found = np.mean([correlations(residuals(run, 3), ~np.isnan(run), 3, HORIZON) for run in runs], axis=0)
    assert found == pytest.approx([1, 0, 0], abs=0.08)


def test_credits_without_luck_have_no_correlations():
    flat = np.ones((30, 2))
    assert correlations(residuals(flat, 3), ~np.isnan(flat), 3, HORIZON).tolist() == [1, 0, 0]
    assert np.abs(deviations(flat, HORIZON, 100, 0)).max() < 1e-9


@pytest.mark.parametrize("places", [np.arange(40), np.flatnonzero(np.random.default_rng(3).random(60) < 0.5)])
def test_the_calibration_is_what_a_simulation_finds(places):
    rounds, length, alike = int(places[-1]) + 1, 3, np.array([1, 2 / 3, 1 / 3])
    share, degrees = calibration(places, rounds, length, alike)
    noise = overlapping(np.random.default_rng(0), rounds, 4000)[places]
    basis = trend(places, rounds, length)
    left = np.zeros((rounds, 4000))
    left[places] = noise - basis @ (basis.T @ noise)
    around = np.concatenate([left, left[: length - 1]])
    blocks = sum(around[shift : shift + rounds] for shift in range(length))
    shown = (blocks**2).sum(axis=0) / length
    assert shown.mean() / noise.sum(axis=0).var() == pytest.approx(share, rel=0.06)
    assert 2 * shown.mean() ** 2 / shown.var() == pytest.approx(degrees, rel=0.12)


@pytest.mark.parametrize(("degrees", "within"), [(2, 0.15), (3, 0.04), (5, 0.02), (10, 0.01), (40, 0.01)])
def test_the_doubt_about_the_spread_is_students(degrees, within):
    normal = stats.norm.ppf((np.arange(2000) + 0.5) / 2000)
    mixed = (normal[:, None] * uncertainty._doubt(normal, np.float64(degrees))).ravel()
    for level in (0.8, 0.9, 0.95):
        assert np.quantile(np.abs(mixed), level) == pytest.approx(stats.t.ppf((1 + level) / 2, degrees), rel=within)


def test_draws_are_whole_blocks_around_the_circle():
    counts = uncertainty._times_drawn(np.random.default_rng(0), 50, 11, 3)
    assert counts.shape == (50, 11)
    assert set(counts.sum(axis=1)) == {12}
    marks = np.zeros(11)
    marks[[0, 10]] = 1, -1  # neighbours on the circle: most blocks that hold one hold the other
    assert (np.abs(counts @ marks) <= 4).all()
    assert np.abs(counts @ marks).mean() < np.abs(counts @ np.roll(np.repeat([1, 0, -1, 0], [1, 4, 1, 5]), 0)).mean()


def test_the_same_seed_draws_the_same():
    table = overlapping(np.random.default_rng(0), 30, 3)
    assert deviations(table, HORIZON, 300, 5).tobytes() == deviations(table, HORIZON, 300, 5).tobytes()
    assert deviations(table, HORIZON, 300, 5).tobytes() != deviations(table, HORIZON, 300, 6).tobytes()


@pytest.mark.parametrize("factor", [1e-200, 8, 1e200])
def test_luck_scales_with_the_credits_and_does_not_care_where_they_stand(factor):
    table = overlapping(np.random.default_rng(0), 30, 3)
    plain = deviations(table, HORIZON, 200, 0)
    assert deviations(table * factor, HORIZON, 200, 0) == pytest.approx(plain * factor, rel=1e-6)
    assert deviations(table + 7, HORIZON, 200, 0) == pytest.approx(plain, abs=1e-9)


def test_twins_have_the_same_luck():
    table = overlapping(np.random.default_rng(0), 30, 3)
    luck = deviations(table[:, [0, 1, 0]], HORIZON, 200, 0)
    assert luck[:, 0].tobytes() == luck[:, 2].tobytes()


def test_nothing_is_said_about_a_client_that_was_seen_too_rarely():
    table = overlapping(np.random.default_rng(0), 40, 4)
    table[2:, 1] = np.nan
    table[:, 2] = np.nan
    luck = deviations(table, HORIZON, 100, 0)
    assert np.isnan(luck).all(axis=0).tolist() == [False, True, True, False]
    assert np.isnan(half_widths(luck, LEVEL)).tolist() == [False, True, True, False]


@pytest.mark.parametrize("rounds", [0, 1, 5, 8])
def test_fewer_than_three_blocks_of_rounds_say_nothing(rounds):
    assert np.isnan(deviations(np.ones((rounds, 2)), HORIZON, 100, 0)).all()
    assert blocks_seen(np.arange(rounds), rounds, 3) < 3


def test_many_ways_of_being_seen_are_calibrated_between_a_few():
    rng = np.random.default_rng(0)
    table = np.where(rng.random((80, 30)) < rng.uniform(0.3, 1, 30), overlapping(rng, 80, 30), np.nan)
    alike = np.array([1, 2 / 3, 1 / 3])
    share, degrees = uncertainty._calibrations(~np.isnan(table), 4, alike)
    for client in range(30):
        exact = calibration(np.flatnonzero(~np.isnan(table[:, client])), 80, 4, alike)
        assert (share[client], degrees[client]) == pytest.approx(exact, rel=0.15)


def test_the_chance_to_be_above_counts_draws_and_halves_ties():
    rng = np.random.default_rng(0)
    values, luck = rng.normal(size=6), rng.integers(-2, 3, size=(700, 6)).astype(float)
    values[3] = values[2]
    drawn = values + luck
    expected = [[np.mean((a > b) + (a == b) / 2) for b in drawn.T] for a in drawn.T]
    assert above(values, luck) == pytest.approx(np.array(expected))
    luck[:, 4] = np.nan
    assert np.isnan(above(values, luck)[4]).all()
    assert np.isnan(above(values, luck)[:, 4]).all()
    assert not np.isnan(np.delete(np.delete(above(values, luck), 4, 0), 4, 1)).any()


def test_how_sure_one_is_that_a_is_above_b_is_how_often_it_is():
    """Pairs that are 95 % sure are told apart wrongly at most about once in twenty."""
    rng = np.random.default_rng(2)
    wrong = sure = 0
    for run in range(150):
        table = overlapping(rng, 40, 2) + training(40)[:, None]  # the two are equally good
        chance = above(table.sum(axis=0), deviations(table, HORIZON, 300, run))[0, 1]
        sure += 1
        wrong += bool(differing(np.array([[chance]]), LEVEL)[0, 0])
    assert 0.03 <= wrong / sure <= 0.16


def test_rank_intervals_hold_the_true_ranks_where_ranks_of_draws_would_not():
    rng = np.random.default_rng(0)
    truth = np.array([8.0, 0.4, 0.3, 0.2, 0.1, 0.0, -8.0])
    ranks = np.arange(1, 8)
    ours, naive = [], []
    for _ in range(150):
        values, luck = truth + rng.normal(size=7), rng.normal(size=(400, 7))
        best, worst = rank_intervals(values, luck, LEVEL).T
        ours.append((best <= ranks) & (ranks <= worst))
        drawn = stats.rankdata(-(values + luck), axis=1)
        low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
        naive.append((low <= ranks) & (ranks <= high))
    assert np.mean(ours, axis=0).min() > 0.88
    assert np.mean(naive, axis=0).min() < 0.88


def test_rank_intervals_leave_room_for_whom_nothing_is_known():
    luck = np.random.default_rng(0).normal(size=(300, 3))
    luck[:, 1] = np.nan
    assert rank_intervals(np.array([50.0, 20.0, 0.0]), luck, LEVEL).tolist() == [[1, 2], [1, 3], [2, 3]]


def test_clients_that_tie_exactly_share_their_ranks():
    luck = np.repeat(np.random.default_rng(0).normal(size=(300, 1)), 2, axis=1)
    assert rank_intervals(np.zeros(2), luck, LEVEL).tolist() == [[1, 2], [1, 2]]
    assert rank_intervals(np.array([1.0, 0.0]), luck, LEVEL).tolist() == [[1, 1], [2, 2]]


def test_a_chain_of_neighbours_that_cannot_be_told_apart_is_one_group():
    apart = ~np.eye(5, dtype=bool)
    assert groups(apart) == [range(n, n + 1) for n in range(5)]
    apart[1, 2] = apart[2, 1] = apart[2, 3] = apart[3, 2] = False
    assert groups(apart) == [range(1), range(1, 4), range(4, 5)]
    apart[0, 4] = apart[4, 0] = False
    assert groups(apart) == [range(5)]
    assert groups(np.zeros((0, 0), dtype=bool)) == []


def test_nobody_is_in_another_group_than_someone_it_cannot_be_told_apart_from():
    rng = np.random.default_rng(0)
    for _ in range(50):
        apart = np.triu(rng.random((8, 8)) < 0.9, 1)
        apart |= apart.T
        runs = groups(apart)
        assert [place for run in runs for place in run] == list(range(8))
        assert all(one.stop == other.start for one, other in pairwise(runs))
        for one in runs:
            others = [place for run in runs if run != one for place in run]
            assert apart[np.ix_(list(one), others)].all()


def test_the_rounds_that_would_settle_it():
    assert rounds_to_settle(10, 10, 20, 0.90) == np.ceil(20 * stats.norm.ppf(0.95) ** 2) - 20
    assert rounds_to_settle(-10, 10, 20, 0.90) == rounds_to_settle(10, 10, 20, 0.90)
    assert rounds_to_settle(100, 1, 20, 0.90) == 0
    assert rounds_to_settle(3, 0, 20, 0.90) == 0
    assert rounds_to_settle(0, 1, 20, 0.90) == inf
    assert rounds_to_settle(0, 0, 20, 0.90) == inf
    assert rounds_to_settle(1e-300, 1e300, 20, 0.90) == inf


def test_after_the_rounds_that_would_settle_it_about_half_are_settled():
    rng = np.random.default_rng(0)
    lead, rounds = 0.25, 40
    more = int(rounds_to_settle(lead * rounds, sqrt(2 * rounds), rounds, LEVEL))
    settled = []
    for run in range(60):
        table = independent(rng, rounds + more, 2) + np.array([lead, 0])
        chances = above(table.sum(axis=0), deviations(table, 0, 200, run))
        settled.append(differing(chances, LEVEL)[0, 1])
    assert 0.3 <= np.mean(settled) <= 0.7


@pytest.mark.slow
def test_a_thousand_clients_and_rounds_fit():
    rng = np.random.default_rng(0)
    table = np.where(rng.random((1000, 1000)) < 0.5, rng.normal(size=(1000, 1000)), np.nan)
    values = np.nansum(table, axis=0)
    tracemalloc.start()
    began = time.process_time()
    luck = deviations(table, HORIZON, 2000, 0)
    chances = above(values, luck)
    ranks = rank_intervals(values, luck, LEVEL)
    runs = groups(differing(chances, LEVEL))
    seconds, peak = time.process_time() - began, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(ranks), sum(map(len, runs))) == (1000, 1000)
    assert peak < 1e9
    assert seconds < 60
