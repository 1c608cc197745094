"""Ballots compared with ballots: the integers of a plain product, for any layers, pieces and threads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcoast.kernels import pair_agreement
from fedcoast.kernels.bit_planes import PlaneLayout
from fedcoast.kernels.threads import ThreadPool
from plain_votes import to_planes
from strategies import steady


def ballots(rng, count, sizes):
    signs = [[rng.integers(-1, 2, size=size).astype(np.int8) for size in sizes] for _ in range(count)]
    return signs, [np.concatenate([to_planes(layer) for layer in one], axis=1) for one in signs]


@steady
@given(
    st.lists(st.integers(1, 700), min_size=1, max_size=4),
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(1, 3),
    st.sampled_from([1, 3, 1 << 12]),
    st.integers(0, 2**32 - 1),
)
def test_every_agreement_is_the_plain_product(sizes, rows, columns, threads, piece, seed):
    rng = np.random.default_rng(seed)
    (first, planes), (second, other_planes) = ballots(rng, rows, sizes), ballots(rng, columns, sizes)
    compared = rng.random((rows, columns)) < 0.7
    with pytest.MonkeyPatch.context() as patch, ThreadPool(threads) as pool:
        patch.setattr(pair_agreement, "PIECE", piece)
        table = pair_agreement.pair_agreements(planes, other_planes, compared, PlaneLayout(tuple(sizes)), pool)
    for layer in range(len(sizes)):
        for i in range(rows):
            for j in range(columns):
                plain = int(first[i][layer].astype(np.int64) @ second[j][layer].astype(np.int64))
                assert table[layer, i, j] == (plain if compared[i, j] else 0)
