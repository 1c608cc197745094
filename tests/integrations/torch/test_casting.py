"""The ballot of a torch tensor is the reference's, bit for bit, on every device there is."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from fedcoast.integrations.torch import cast, packed
from fedcoast.kernels.ballots import ballot, pack
from fedcoast.rounds.arrays import arithmetic
from strategies import keeps, steady

DTYPES = (np.float16, np.float32, np.float64)
ODD = [0.0, -0.0, 1.0, -1.0, 0.5, 1.0009765625]


@st.composite
def models(draw):
    """Two tensors with many ties, zeros, extreme and subnormal numbers; sizes around a byte and above a block."""
    dtype = draw(st.sampled_from(DTYPES))
    limits = np.finfo(dtype)
    extreme = [float(limits.max), float(limits.min), float(limits.smallest_subnormal), float(limits.tiny)]
    elements = st.sampled_from(ODD + extreme) | st.floats(-4, 4, width=16)
    shape = draw(st.sampled_from([(1,), (7,), (8,), (9,), (3, 5), (64,), (2, 3, 11), (300,)]))
    return tuple(draw(arrays.arrays(dtype, shape, elements=elements)) for _ in range(2))


@steady
@given(models(), keeps)
def test_a_ballot_is_the_references(both, keep):
    start, local = both
    with np.errstate(over="ignore"):
        wanted = ballot(arithmetic(local) - arithmetic(start), keep)
    got = cast(torch.from_numpy(start), torch.from_numpy(local), keep)
    assert (got.dtype, got.tolist()) == (torch.int8, wanted.tolist())
    assert packed(got).tolist() == pack(wanted).tolist()


@pytest.mark.parametrize("keep", [0.001, 0.1, 1.0])
@pytest.mark.parametrize("kind", ["smooth", "coarse", "equal", "zero", "95 % zero", "sorted"])
def test_large_layers_of_every_kind_on_every_device(device, kind, keep):
    rng = np.random.default_rng(5)
    update = rng.normal(size=20_001).astype(np.float32)
    update = {
        "smooth": update,
        "coarse": np.round(update * 4) / 4,
        "equal": np.sign(update) * np.float32(0.25),
        "zero": update * 0,
        "95 % zero": update * (rng.random(update.size) < 0.05),
        "sorted": np.sort(update),
    }[kind]
    got = cast(torch.zeros(update.size, device=device), torch.from_numpy(update).to(device), keep)
    assert got.device.type == device
    assert packed(got).tolist() == pack(ballot(update, keep)).tolist()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_floats_are_subtracted_in_float32(device, dtype):
    start = torch.linspace(1, 300, 999).to(dtype).to(device)
    local = (start.float() * 1.01).to(dtype)
    update = (local.float() - start.float()).cpu().numpy()
    assert cast(start, local, 0.3).tolist() == ballot(update, 0.3).tolist()


def test_entries_are_counted_in_row_order_whatever_the_memory_order():
    update = torch.tensor([[0.0, -3.0], [2.0, 1.0]])
    assert cast(torch.zeros(2, 2), update, 0.5).tolist() == [0, -1, 1, 0]
    assert cast(torch.zeros(2, 2), update.T, 0.5).tolist() == [0, 1, -1, 0]
