import numpy as np
import pytest

from fedcoast.kernels.aggregation import adaptive_step, mean, pruned_mean, sparse_mean, sparse_upload
from fedcoast.kernels.ballots import ballot

DTYPES = [np.float16, np.float32, np.float64]


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_mean_is_numpys_average_in_double_precision(dtype):
    rng = np.random.default_rng(0)
    tensors = [rng.normal(size=(3, 4)).astype(dtype) for _ in range(7)]
    weights = rng.integers(1, 50, size=7).tolist()
    plain, weighted = mean(tensors), mean(tensors, weights)
    assert plain.dtype == weighted.dtype == dtype
    close = 4 * np.finfo(dtype).eps
    doubles = np.array(tensors, np.float64)
    np.testing.assert_allclose(plain, doubles.mean(axis=0), rtol=close, atol=close)
    np.testing.assert_allclose(weighted, np.average(doubles, axis=0, weights=weights), rtol=close, atol=close)
    assert not np.allclose(plain, weighted)


def test_the_mean_of_equal_float32_numbers_is_the_number():
    value = np.random.default_rng(1).normal(size=1000).astype(np.float32)
    for clients in (3, 5, 10, 100):
        assert np.array_equal(mean([value] * clients), value)
        assert np.array_equal(mean([value] * clients, weights=range(1, clients + 1)), value)


def test_only_the_proportion_of_weights_matters():
    tensors = [np.array([1.0, 0.0]), np.array([0.0, 1.0])]
    assert mean(tensors, [3, 1]).tolist() == mean(tensors, [0.75, 0.25]).tolist() == [0.75, 0.25]


def test_a_client_of_weight_zero_does_not_move_the_mean():
    tensors = [np.array([1.0]), np.array([100.0])]
    assert mean(tensors, [2, 0]).tolist() == [1.0]


@pytest.mark.parametrize("step", [0.02, "avg"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_entry_without_votes_keeps_its_value_to_the_last_bit(dtype, step):
    rng = np.random.default_rng(2)
    start = rng.normal(size=(10, 10)).astype(dtype)
    start.ravel()[:20] = -0.0
    updates = [rng.normal(size=(10, 10)).astype(dtype) for _ in range(3)]
    before = start.tobytes()
    after = pruned_mean(start, updates, keep=0.1, step=step)
    silent = np.all([ballot(update, 0.1) == 0 for update in updates], axis=0).reshape(start.shape)
    assert silent.ravel()[:20].any()
    assert not silent.all()
    assert after[silent].tobytes() == start[silent].tobytes()
    assert (after[~silent] != start[~silent]).any()
    assert (after.dtype, after.shape) == (start.dtype, start.shape)
    assert start.tobytes() == before


def test_votes_that_cancel_leave_the_entry_as_it_was():
    start = np.float32([0.1, -0.0, 0.3])
    updates = [np.float32([1, 0, 0]), np.float32([-1, 0, 0])]
    assert pruned_mean(start, updates, keep=0.4, step=0.02).tobytes() == start.tobytes()


def test_the_pruned_mean_is_the_mean_of_the_pruned_models():
    rng = np.random.default_rng(3)
    start = rng.normal(size=50)
    updates = [rng.normal(size=50) for _ in range(4)]
    pruned = [start + 0.02 * ballot(update, 0.2) for update in updates]
    np.testing.assert_allclose(pruned_mean(start, updates, 0.2, 0.02), np.mean(pruned, axis=0), atol=1e-15)


def test_the_adaptive_step_gives_every_client_the_mean_size_of_its_own_votes():
    start = np.zeros(4)
    updates = [np.array([4.0, -2.0, 1.0, 0.0]), np.array([0.0, 0.0, 0.6, 0.2])]
    assert [adaptive_step(update, 0.5) for update in updates] == [3.0, pytest.approx(0.4)]
    np.testing.assert_allclose(pruned_mean(start, updates, 0.5, "avg"), [1.5, -1.5, 0.2, 0.2])


def test_an_update_of_zeros_has_no_step_and_moves_nothing():
    assert adaptive_step(np.zeros(5), 0.5) == 0.0
    assert pruned_mean(np.ones(5), [np.zeros(5)], 0.5, "avg").tolist() == [1.0] * 5


def test_the_adaptive_step_of_an_overflow_is_still_a_number():
    huge = np.array([np.inf, 1.0, 0.0, 0.0])
    assert np.isfinite(adaptive_step(huge, 0.5))
    assert np.isfinite(adaptive_step(np.array([1.7e308, 1.7e308]), 1.0))


@pytest.mark.parametrize("keep", [0.1, 0.5, 1.0])
def test_a_sparse_upload_has_the_raw_values_where_the_ballot_votes_and_the_start_elsewhere(keep):
    rng = np.random.default_rng(2)
    start, local = rng.normal(size=(5, 8)), rng.normal(size=(5, 8))
    votes = ballot(local - start, keep).reshape(start.shape) != 0
    upload = sparse_upload(start, local, keep)
    np.testing.assert_array_equal(upload[votes], local[votes])
    np.testing.assert_array_equal(upload[~votes], start[~votes])
    assert votes.sum() == int(40 * keep)


def test_the_sparse_mean_moves_by_the_mean_of_the_kept_raw_updates():
    rng = np.random.default_rng(3)
    start, tensors = rng.normal(size=30), [rng.normal(size=30) for _ in range(5)]
    updates = [(tensor - start) * (ballot(tensor - start, 0.1) != 0) for tensor in tensors]
    merged = sparse_mean(start, tensors, 0.1)
    np.testing.assert_allclose(merged - start, np.mean(updates, axis=0), atol=1e-15)
    nobody = np.all([one == 0 for one in updates], axis=0)
    assert nobody.any()
    np.testing.assert_array_equal(merged[nobody], start[nobody])


def test_keeping_everything_makes_the_sparse_mean_the_mean():
    rng = np.random.default_rng(4)
    start, tensors = rng.normal(size=30), [rng.normal(size=30) for _ in range(5)]
    np.testing.assert_array_equal(sparse_mean(start, tensors, 1.0), mean(tensors))
