"""Signs in two bits an entry: a plane of those that are up and a plane of those that are down, in 64-bit words.

All layers of a model share one pair of planes. Every layer begins at a word, and the rest of its last word is zero, so
that layers can be read, written and counted separately. Bit j of word w of a layer is its entry 64·w + j.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from fedcoast.kernels.ballots import Floats, Signs

Words = NDArray[np.uint64]
Planes = NDArray[np.uint64]
"""Two rows of words: up, down."""
Row = NDArray[np.int64]
"""One integer a layer."""

PIECE = 1 << 16  # entries whose intermediate results stay in the cache
SPAN = 1 << 14  # words of which the same is true


@dataclass(frozen=True)
class PlaneLayout:
    """Which words belong to which layer.

    >>> PlaneLayout((64, 65, 1)).bounds
    (0, 1, 3, 4)
    """

    sizes: tuple[int, ...]

    @cached_property
    def bounds(self) -> tuple[int, ...]:
        return tuple(accumulate((-(-size // 64) for size in self.sizes), initial=0))

    @property
    def words(self) -> int:
        return self.bounds[-1]

    def empty_planes(self) -> Planes:
        """Planes without a vote."""
        return np.zeros((2, self.words), np.uint64)

    def layers(self, planes: Planes) -> Iterator[Planes]:
        """The planes of each layer; views."""
        for first, last in zip(self.bounds, self.bounds[1:], strict=False):
            yield planes[:, first:last]

    @cached_property
    def spans(self) -> tuple[tuple[slice, slice, NDArray[np.intp]], ...]:
        """The words in pieces for the cache: which words, which layers, and where in the piece each layer begins."""
        bounds, spans = np.asarray(self.bounds), []
        for first in range(0, self.words, SPAN):
            last = min(first + SPAN, self.words)
            lowest = int(np.searchsorted(bounds, first, side="right")) - 1
            highest = int(np.searchsorted(bounds, last, side="left"))
            begins = np.maximum(bounds[lowest:highest] - first, 0)
            spans.append((slice(first, last), slice(lowest, highest), begins.astype(np.intp)))
        return tuple(spans)


def flat(array: Floats) -> Floats:
    """One read-only row, as the compiled code needs it; copied only if it is not contiguous in memory."""
    row = np.require(array, requirements=["C", "A"]).reshape(-1).view()
    row.flags.writeable = False
    return row


def to_signs(planes: Planes, size: int) -> Signs:
    """The signs of one layer of `size` entries.

    >>> to_signs(np.array([[1], [4]], np.uint64), 3).tolist()
    [1, 0, -1]
    """
    up, down = (np.unpackbits(row.view(np.uint8), count=size, bitorder="little").view(np.int8) for row in planes)
    return np.asarray(up - down)


def write_bits(row: Words, at: int, bits: NDArray[np.bool]) -> None:
    """Write these bits into a row from entry `at`, which begins a byte; the rest of the last byte becomes zero."""
    packed = np.packbits(bits, bitorder="little")
    row.view(np.uint8)[at // 8 : at // 8 + packed.size] = packed


def set_bits(row: Words) -> NDArray[np.intp]:
    """The entries whose bit is set, which should be few.

    >>> set_bits(np.array([0, 5], np.uint64)).tolist()
    [64, 66]
    """
    words = np.flatnonzero(row)
    which, bits = np.nonzero(np.unpackbits(row[words].view(np.uint8).reshape(-1, 8), axis=1, bitorder="little"))
    return np.asarray(64 * words[which] + bits)


def clear_bits(row: Words, places: NDArray[np.intp]) -> None:
    """Clear the bits of these entries."""
    np.bitwise_and.at(row, places // 64, ~(np.uint64(1) << (places % 64).astype(np.uint64)))


def signs_of(values: Sequence[Floats], plane_layout: PlaneLayout, shift: Sequence[np.floating] | None = None) -> Planes:
    """sgn(value + shift) of every layer; shifts are numbers of the layer's own type.

    The sum of two floats is zero only when it is exactly so, and otherwise has the sign of the exact sum: comparing
    with −shift tells the same without adding.
    """
    planes = plane_layout.empty_planes()
    for place, (value, (up, down)) in enumerate(zip(values, plane_layout.layers(planes), strict=True)):
        row, zero = value.reshape(-1), value.dtype.type(0 if shift is None else -shift[place])
        for at in range(0, row.size, PIECE):
            write_bits(up, at, row[at : at + PIECE] > zero)
            write_bits(down, at, row[at : at + PIECE] < zero)
    return planes


def agreements(signal: Planes, reference: Planes, plane_layout: PlaneLayout) -> Row:
    """Σ_h signal[h]·reference[h] of each layer, exact integers: agreeing entries minus opposing ones."""
    rows = np.zeros(len(plane_layout.sizes), np.int64)
    scratch = np.empty((2, min(SPAN, plane_layout.words)), np.uint64)
    for words, layers, begins in plane_layout.spans:
        up, down = signal[:, words]
        rises, falls = reference[:, words]
        here, there = scratch[:, : up.size]
        np.bitwise_or(np.bitwise_and(up, rises, out=here), np.bitwise_and(down, falls, out=there), out=here)
        counted = np.bitwise_count(here).astype(np.int8)
        np.bitwise_or(np.bitwise_and(up, falls, out=here), np.bitwise_and(down, rises, out=there), out=here)
        counted -= np.bitwise_count(here).view(np.int8)
        rows[layers] += np.add.reduceat(counted, begins, dtype=np.int64)
    return rows


def sizes(signal: Planes, plane_layout: PlaneLayout, base: Planes | None = None) -> Row:
    """Σ_h |signal[h] − base[h]| of each layer; without a base, the number of entries that are not zero."""
    rows = np.zeros(len(plane_layout.sizes), np.int64)
    for words, layers, begins in plane_layout.spans:
        up, down = signal[:, words]
        if base is None:
            counted = np.bitwise_count(up | down).astype(np.int64)
        else:
            rises, falls = base[:, words]
            counted = np.bitwise_count((up ^ rises) | (down ^ falls)).astype(np.int64)
            counted += np.bitwise_count((up & falls) | (down & rises))  # from one end to the other is two
        rows[layers] += np.add.reduceat(counted, begins)
    return rows
