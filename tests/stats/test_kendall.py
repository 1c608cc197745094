"""Kendall's τ_b against SciPy."""

import math

import numpy as np
import pytest
from scipy.stats import kendalltau

from fedcoast.stats.ranking import kendall


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("size", [2, 5, 40])
def test_tau_is_scipys_with_and_without_ties(seed, size):
    rng = np.random.default_rng([seed, size])
    first, second = rng.integers(0, 4, size).astype(float), rng.normal(size=size).round(seed % 3)
    ours, theirs = kendall(first, second), kendalltau(first, second).statistic
    assert math.isnan(ours) if math.isnan(theirs) else ours == pytest.approx(theirs, abs=1e-12)


def test_tau_of_the_golden_data():
    assert kendall([5, 4, 3, 2, 1], [0.9, 0.7, 0.7, 0.1, 0.3]) == pytest.approx(0.7378647874, abs=1e-9)


def test_what_has_no_order_has_no_correlation():
    for pair in (([1, 1, 1], [1, 2, 3]), ([1, 2], [float("nan"), 1]), ([], []), ([1], [2])):
        assert math.isnan(kendall(*pair))
    with pytest.raises(ValueError, match="got 2 and 1"):
        kendall([1, 2], [1])
