"""Quantising, splitting and comparing reports."""

import numpy as np
import pytest

from fedcoast.kernels.peer_prediction import (
    correlated,
    draw_pairs,
    exact_penalty,
    halves,
    joint_counts,
    largest_share,
    peer_score,
    quantise,
    spare_tasks,
)


def test_codes_are_equal_steps_between_the_bounds():
    assert quantise(np.array([-9, -1, -0.51, -0.5, 0, 0.49, 0.5, 1, 9]), 1.0, 4).tolist() == [0, 0, 0, 1, 2, 2, 3, 3, 3]
    assert quantise(np.array([-1.0, 0, 1.0]), 0.0, 8).tolist() == [4, 4, 4]
    assert quantise(np.array([0.0]), 1.0, 256).dtype == np.uint8
    assert quantise(np.array([1.0]), 1.0, 1024).tolist() == [1023]


@pytest.mark.parametrize("share", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("size", [1, 7, 1000, 5000])
def test_the_quantile_of_a_stream_is_that_of_the_whole(share, size):
    values = np.random.default_rng(size).normal(size=size)
    streamed = largest_share(np.array_split(values, 7), count=size, share=share)
    assert streamed == pytest.approx(np.quantile(np.abs(values), share), rel=1e-12)


def test_fewer_entries_than_promised_have_their_own_quantile():
    values = np.arange(1.0, 101.0)  # half of the clients were quarantined
    assert largest_share([values], count=200, share=0.9) == pytest.approx(np.quantile(values, 0.9))


def test_where_most_entries_are_zero_the_largest_sets_the_scale():
    assert largest_share([np.zeros(5000), np.array([0.3])], count=5001, share=0.999) == 0.3
    assert largest_share([np.zeros(10)], count=10, share=0.999) == 0
    assert largest_share([], count=0, share=0.999) == 0


def test_every_equal_split_is_equally_likely():
    rng = np.random.default_rng(0)
    splits = [tuple(halves(4, rng)) for _ in range(3000)]
    counts = {split: splits.count(split) for split in set(splits)}
    assert len(counts) == 6
    assert all(400 < count < 600 for count in counts.values())


@pytest.mark.parametrize("size", [1, 2, 9, 1000, 99_999])
def test_halves_are_halves(size):
    half = halves(size, np.random.default_rng(size))
    assert np.bincount(half, minlength=2).tolist() == [size // 2, size - size // 2]


def test_counts_do_not_depend_on_the_pieces_they_are_counted_in():
    rng = np.random.default_rng(0)
    size, levels = 70_000, 8  # more than one piece
    first, second = (rng.integers(levels, size=size).astype(np.uint8) for _ in range(2))
    half = halves(size, rng)
    counts = joint_counts(first, second, half, levels)
    for which in (0, 1):
        table = np.zeros((levels, levels), dtype=int)
        np.add.at(table, (first[half == which], second[half == which]), 1)
        assert np.array_equal(counts[which], table)


def by_definition(first, second, half, bonus, pairs):
    """Section 3.2 step by step, with loops."""
    total = 0.0
    for place, p in enumerate(bonus):
        other = [t for t in range(len(first)) if half[t] != half[p]]

        def sign(a, b, tasks=other):
            joint = sum(first[t] == a and second[t] == b for t in tasks) / len(tasks)
            alone = sum(first[t] == a for t in tasks) * sum(second[t] == b for t in tasks) / len(tasks) ** 2
            return float(joint - alone > 1e-12)

        total += sign(first[p], second[p])
        spare = [t for t in range(len(first)) if half[t] == half[p] and t not in bonus]
        if pairs is None:
            every = [sign(first[q], second[r]) for q in spare for r in spare if q != r]
            total -= sum(every) / len(every)
        else:
            total -= sign(first[pairs[0][place]], second[pairs[1][place]])
    return total / len(bonus)


@pytest.mark.parametrize("levels", [2, 4, 50])
@pytest.mark.parametrize("penalty", ["sampled", "exact"])
def test_a_peer_score_is_what_the_definition_says(levels, penalty):
    rng = np.random.default_rng(levels)
    first = rng.integers(levels, size=40).astype(np.uint8)
    second = np.where(rng.random(40) < 0.5, first, rng.integers(levels, size=40)).astype(np.uint8)
    half = halves(40, rng)
    bonus = rng.choice(40, 12, replace=False)
    pairs = draw_pairs(half, bonus, rng) if penalty == "sampled" else None
    score = peer_score(first, second, half, bonus, levels, pairs)
    assert score == pytest.approx(by_definition(first, second, half, list(bonus), pairs), abs=1e-12)


def test_pairs_are_of_the_bonus_tasks_half_and_no_bonus_tasks():
    rng = np.random.default_rng(0)
    half = halves(30, rng)
    bonus = rng.choice(30, 15, replace=False)
    if min(spare_tasks(half, bonus)) < 2:
        pytest.fail("the seed leaves a half without two spare tasks; take another")
    for _ in range(50):
        q, other = draw_pairs(half, bonus, rng)
        assert (half[q] == half[bonus]).all()
        assert (half[other] == half[bonus]).all()
        assert not np.isin(np.concatenate([q, other]), bonus).any()
        assert (q != other).all()


def test_the_exact_penalty_is_the_mean_of_the_drawn_ones():
    rng = np.random.default_rng(1)
    first = rng.integers(3, size=60).astype(np.uint8)
    second = np.where(rng.random(60) < 0.6, first, rng.integers(3, size=60)).astype(np.uint8)
    half, bonus = halves(60, rng), rng.choice(60, 20, replace=False)
    exact = peer_score(first, second, half, bonus, 3)
    drawn = [peer_score(first, second, half, bonus, 3, draw_pairs(half, bonus, rng)) for _ in range(400)]
    assert np.mean(drawn) == pytest.approx(exact, abs=4 * np.std(drawn) / 20)


def test_without_the_diagonal_equal_codes_earn_nothing():
    codes = np.array([0, 1] * 20, dtype=np.uint8)
    half = np.repeat(np.array([0, 1], dtype=np.uint8), 20)
    bonus = np.array([0, 1, 20, 21])
    assert peer_score(codes, codes, half, bonus, 2) > 0.4
    assert peer_score(codes, codes, half, bonus, 2, diagonal=False) == 0


def test_independence_is_decided_in_integers():
    # 3·(1/3·1/3) is no 1/3 in floats; here it is exactly nothing.
    assert not correlated(np.full((3, 3), 7)).any()
    assert exact_penalty(np.ones((2, 2), dtype=bool), np.array([[2, 1], [1, 3]])) == 1
