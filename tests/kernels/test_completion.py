"""Matrix completion finds what a low rank leaves no choice about."""

import numpy as np
import pytest

from fedcoast.errors import BadSetting
from fedcoast.kernels.completion import complete


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_matrix_of_low_rank_is_found_from_part_of_it(rank):
    rng = np.random.default_rng(rank)
    truth = rng.uniform(0.2, 1, size=(20, rank)) @ rng.normal(size=(rank, 16))
    hidden = rng.random(truth.shape) < 0.25
    completed = complete(np.where(hidden, np.nan, truth), rank=rank, ridge=1e-9, sweeps=3000)
    assert np.abs(completed - truth).max() < 1e-3 * np.abs(truth).max()


def test_a_matrix_that_is_known_is_given_back():
    truth = np.outer([1.0, -2.0, 3.0], [1.0, 0.5])
    np.testing.assert_allclose(complete(truth, rank=2, ridge=1e-9), truth, atol=1e-6)


def test_a_stronger_ridge_shrinks():
    truth = np.outer([1.0, 2.0], [1.0, 3.0])
    sizes = [np.abs(complete(truth, rank=1, ridge=ridge)).sum() for ridge in (1e-6, 0.1, 1.0, 2.0)]
    assert sizes == sorted(sizes, reverse=True)


def test_the_answer_scales_with_the_data():
    rng = np.random.default_rng(0)
    known = np.where(rng.random((6, 7)) < 0.2, np.nan, rng.normal(size=(6, 7)))
    known[0] = 1.0
    small = complete(1e-6 * known, rank=2, ridge=1e-9, sweeps=200)
    np.testing.assert_allclose(complete(known, rank=2, ridge=1e-3, sweeps=200), 1e6 * small, rtol=1e-2, atol=1e-2)


def test_a_matrix_of_zeros_stays_one():
    assert not complete(np.array([[0.0, np.nan], [0.0, 0.0]]), rank=1, ridge=0.0).any()


def test_a_column_nobody_observed_is_refused():
    with pytest.raises(BadSetting, match="every column must be observed at least once; column 1 never was"):
        complete(np.array([[1.0, np.nan], [2.0, np.nan]]), rank=1, ridge=1e-3)
