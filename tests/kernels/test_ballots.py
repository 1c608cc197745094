import math

import numpy as np
import pytest

from fedcoast.kernels.ballots import ballot, num_kept, pack, signs, unpack

DTYPES = [np.float16, np.float32, np.float64]


def by_the_definition(update, keep):
    """The ballot as the text says it, entry by entry."""
    flat = [float(value) for value in np.asarray(update).ravel()]
    room = min(len(flat), max(1, math.floor(len(flat) * keep)))
    best = sorted(range(len(flat)), key=lambda place: (-abs(flat[place]), place))[:room]
    return [(flat[place] > 0) - (flat[place] < 0) if place in best else 0 for place in range(len(flat))]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("keep", [0.01, 0.1, 0.25, 1 / 3, 0.5, 0.9, 1.0, 1])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 10, 30, 101])
def test_a_ballot_is_what_the_definition_says(size, keep, dtype):
    rng = np.random.default_rng(size)
    smooth = rng.normal(size=size).astype(dtype)
    tied = rng.integers(-2, 3, size=size).astype(dtype)
    for update in (smooth, tied, np.zeros(size, dtype), np.full(size, -1, dtype)):
        result = ballot(update, keep)
        assert result.dtype == np.int8
        assert result.tolist() == by_the_definition(update, keep)


def test_a_ballot_is_flat_in_row_order_whatever_the_memory_order():
    update = np.array([[0.0, -3.0], [2.0, 1.0]])
    assert ballot(update, 0.5).tolist() == [0, -1, 1, 0]
    assert ballot(np.asfortranarray(update), 0.5).tolist() == [0, -1, 1, 0]
    assert ballot(update.T, 0.5).tolist() == [0, 1, -1, 0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_differences_that_overflow_vote_first_and_with_the_right_sign(dtype):
    huge = np.finfo(dtype).max
    with np.errstate(over="ignore"):
        update = np.array([1, huge, -huge, 0], dtype) - np.array([0, -huge, huge, 0], dtype)
    assert np.isinf(update[1:3]).all()
    assert ballot(update, 0.5).tolist() == [0, 1, -1, 0]
    assert ballot(update, 0.25).tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_smallest_number_votes_and_zero_does_not(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    assert ballot(np.array([0.0, -tiny, -0.0], dtype), 1.0).tolist() == [0, -1, 0]


def test_a_scalar_votes():
    assert ballot(np.array(-0.5), 0.1).tolist() == [-1]


def test_at_least_one_entry_and_never_more_than_there_are_may_vote():
    assert [num_kept(size, 0.1) for size in (0, 1, 9, 10, 19, 20, 1000)] == [0, 1, 1, 1, 1, 2, 100]
    assert [num_kept(size, 1.0) for size in (0, 1, 7)] == [0, 1, 7]
    assert num_kept(10, 1e-9) == 1


def test_signs_of_every_float_type_are_flat_integers():
    for dtype in DTYPES:
        result = signs(np.array([[3, -0.0], [-2, np.finfo(dtype).smallest_subnormal]], dtype))
        assert result.tolist() == [1, 0, -1, 1]
        assert result.dtype == np.int8
    assert signs(np.array([np.inf, -np.inf])).tolist() == [1, -1]


@pytest.mark.parametrize("size", [1, 7, 8, 9, 64, 101])
def test_packed_ballots_come_back_and_take_two_bits_an_entry(size):
    cast = np.random.default_rng(size).integers(-1, 2, size=size).astype(np.int8)
    planes = pack(cast)
    assert planes.nbytes == 2 * math.ceil(size / 8)
    assert unpack(planes, size).tolist() == cast.tolist()
    assert unpack(planes, size).dtype == np.int8
