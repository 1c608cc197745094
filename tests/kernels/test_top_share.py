"""The quick ballot is the readable one, on anything."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedcoast.kernels.ballots import ballot
from fedcoast.kernels.top_share import quick_ballot

COARSE = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 1e-45, -1e-45, 1e38, -1e38, np.inf, -np.inf])


@settings(derandomize=True, deadline=None, max_examples=400)
@given(
    hnp.arrays(st.sampled_from([np.float32, np.float64]), st.integers(1, 200), elements=COARSE),
    st.sampled_from([0.001, 0.05, 0.1, 0.29, 0.5, 0.99, 1.0]),
)
def test_ties_zeros_and_infinities_make_no_difference(update, keep):
    np.testing.assert_array_equal(quick_ballot(update, keep), ballot(update, keep))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("keep", [0.001, 0.1, 0.5, 1.0])
def test_large_layers_of_every_kind_make_no_difference(dtype, keep):
    rng = np.random.default_rng(0)
    gaussian = rng.normal(size=30_000)
    kinds = {
        "gaussian": gaussian,
        "sorted": np.sort(gaussian),
        "mostly zero": np.where(rng.random(30_000) < 0.95, 0, gaussian),
        "equal": np.full(30_000, -0.5),
        "zero": np.zeros(30_000),
        "on a grid": np.round(gaussian * 4) / 4,
        "one hot": np.eye(1, 30_000, 7)[0],
    }
    for name, update in kinds.items():
        update = update.astype(dtype)
        assert (quick_ballot(update, keep) == ballot(update, keep)).all(), name
