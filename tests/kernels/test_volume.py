"""Volume and information: what copies, empty hands and many dimensions do to them."""

import numpy as np
import pytest

from volume import information_gain, log_robust_volume, pooled, robust_volume


def test_no_points_have_no_volume_and_tell_nothing():
    nothing = pooled([np.ones((2, 3))], 0)
    assert nothing.shape == (0, 3)
    assert robust_volume(nothing) == 0
    assert information_gain(nothing) == 0


def test_copies_of_the_same_points_add_next_to_nothing_to_the_robust_volume():
    points = np.random.default_rng(0).normal(size=(20, 3))
    once, twice = robust_volume(points), robust_volume(np.concatenate([points, points]))
    plain = np.sqrt(np.linalg.det(2 * points.T @ points) / np.linalg.det(points.T @ points))
    assert once < twice < 1.01 * once
    assert plain > 2.8  # what copies do to the volume that is not robust


def test_fewer_points_than_dimensions_have_a_volume_near_nothing():
    assert robust_volume(np.ones((2, 5))) < 2e-4


def test_the_logarithm_holds_where_the_volume_overflows():
    points = 1e4 * np.random.default_rng(0).normal(size=(200, 100))
    assert np.isfinite(log_robust_volume(points))
    assert log_robust_volume(points) > 709


def test_more_points_never_tell_less():
    points = np.random.default_rng(0).normal(size=(30, 4))
    gains = [information_gain(points[:count], prior=2.0, noise=0.5) for count in range(31)]
    assert gains == sorted(gains)
    kernel = 0.5 * np.linalg.slogdet(np.eye(30) + 4 * points @ points.T)[1]  # the same, from the points' side
    assert gains[-1] == pytest.approx(kernel)
