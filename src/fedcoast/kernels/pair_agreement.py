"""How well every ballot of one round agrees with every ballot of another: exact integers, layer by layer."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedcoast.kernels.bit_planes import PlaneLayout, Planes
from fedcoast.kernels.threads import ALONE, ThreadPool

PIECE = 1 << 12  # words; a piece of the ballots of a few clients stays in the cache


def pair_agreements(
    first: Sequence[Planes],
    second: Sequence[Planes],
    compared: NDArray[np.bool],
    plane_layout: PlaneLayout,
    threads: ThreadPool = ALONE,
) -> NDArray[np.int64]:
    """Σ_h first_i[h] · second_j[h], by layer, i and j; zero for pairs that are not `compared`.

    >>> ups_and_downs = [np.array([[0b011], [0b100]], np.uint64), np.array([[0b001], [0b010]], np.uint64)]
    >>> pair_agreements(ups_and_downs, ups_and_downs, np.ones((2, 2), bool), PlaneLayout((3,))).tolist()
    [[[3, 0], [0, 2]]]
    """
    table = np.zeros((len(plane_layout.sizes), len(first), len(second)), np.int64)
    pieces = [slice(at, min(at + PIECE, plane_layout.words)) for at in range(0, plane_layout.words, PIECE)]

    def add(part: slice) -> list[tuple[slice, NDArray[np.int64]]]:
        return [_piece(first, second, compared, plane_layout, words) for words in pieces[part]]

    count = -(-len(pieces) // threads.threads) if pieces else 1
    parts = [slice(at, at + count) for at in range(0, len(pieces), count)]
    for layers, rows in (found for results in threads.map(add, parts) for found in results):
        table[layers] += rows
    return table


def _piece(
    first: Sequence[Planes],
    second: Sequence[Planes],
    compared: NDArray[np.bool],
    plane_layout: PlaneLayout,
    words: slice,
) -> tuple[slice, NDArray[np.int64]]:
    """The same for a few words: which layers they belong to, and the sums of those."""
    layers, begins = _layers_of(plane_layout, words)
    rows = np.zeros((begins.size, len(first), len(second)), np.int64)
    voting = [planes[0, words] | planes[1, words] for planes in second]
    both, opposed = np.empty((2, words.stop - words.start), np.uint64)
    for i, (up, down) in enumerate(planes[:, words] for planes in first):
        mine = up | down
        for j in np.flatnonzero(compared[i]).tolist():
            np.bitwise_and(mine, voting[j], out=both)
            np.bitwise_xor(down, second[j][1, words], out=opposed)
            np.bitwise_and(opposed, both, out=opposed)
            counted = np.bitwise_count(both).astype(np.int16)
            counted -= 2 * np.bitwise_count(opposed).astype(np.int16)
            rows[:, i, j] = np.add.reduceat(counted, begins, dtype=np.int64)
    return layers, rows


def _layers_of(plane_layout: PlaneLayout, words: slice) -> tuple[slice, NDArray[np.intp]]:
    """The layers that these words belong to, and where each begins among them."""
    bounds = np.asarray(plane_layout.bounds)
    lowest = int(np.searchsorted(bounds, words.start, side="right")) - 1
    highest = int(np.searchsorted(bounds, words.stop, side="left"))
    return slice(lowest, highest), np.maximum(bounds[lowest:highest] - words.start, 0).astype(np.intp)
