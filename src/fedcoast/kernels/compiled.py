"""The ballot of one tensor in about one pass over start and upload: machine code, made by numba.

A sample brackets the smallest |δ| that votes: below < |δ| ≤ high. One pass writes the bits of everything above `below`
and marks what lies inside the bracket; those few are settled exactly, ties to the lower flat index. When the bracket
missed, the pass is repeated with one that cannot: the sample decides the speed and never the result.

Bit j of word w is entry 64·w + j. `near`, `sizes` and `spare` are scratch, lent by the caller; `keys` is the memory
of `sizes` read as integers, which have the same order, and one entry longer than the longest list.
`steps` compiles everything for one type of numbers; nothing else may, so callers use exactly those types.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from fedcoast.kernels.ballots import Floats
from fedcoast.kernels.compiling import plain_messages

with plain_messages():
    import numba
    from numba import boolean, float32, float64, int64, types, uint32, uint64

Bits = NDArray[np.unsignedinteger]
F = TypeVar("F", bound=Callable[..., object])

DIRECT = 2048  # entries of a tensor that is not worth a sample
RUN = 4  # neighbours that are sampled together
SIGMAS = 3.5  # half the width of the bracket, in standard deviations of the sample's rank
BINS = 1024


def compiled(function: F) -> F:
    """Compile with numba's cache on disk if there is a folder for it, else in memory alone."""
    try:
        return cast(F, numba.njit(nogil=True, cache=True)(function))
    except RuntimeError:
        return cast(F, numba.njit(nogil=True)(function))


@compiled
def _ones(word: Any) -> Any:
    """How many bits are set; the compiler turns this pattern into one instruction."""
    x = word - ((word >> uint64(1)) & uint64(0x5555555555555555))
    x = (x & uint64(0x3333333333333333)) + ((x >> uint64(2)) & uint64(0x3333333333333333))
    x = (x + (x >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return int64((x * uint64(0x0101010101010101)) >> uint64(56))


@compiled
def _largest(keys: Bits, count: int, rank: int, spare: Bits) -> Any:
    """The key that has `rank` others before it, the largest first; by counting, so that ties cost nothing."""
    bins = np.empty(BINS, np.int64)
    left, wanted, candidates = count, rank, keys
    while True:
        low, high = candidates[0], candidates[0]
        for i in range(left):
            low, high = min(low, candidates[i]), max(high, candidates[i])
        if low == high:
            return low
        shift = 0
        while (uint64(high - low) >> uint64(shift)) >= uint64(BINS):
            shift += 1
        bins[:] = 0
        for i in range(left):
            bins[int64(uint64(candidates[i] - low) >> uint64(shift))] += 1
        place = BINS - 1
        while wanted >= bins[place]:
            wanted -= bins[place]
            place -= 1
        num_candidates = 0
        for i in range(left):
            key = candidates[i]
            spare[num_candidates] = key
            num_candidates += int64(int64(uint64(key - low) >> uint64(shift)) == place)
        candidates, left = spare, num_candidates


@compiled
def bracket(local: Floats, start: Floats, voters: int, sizes: Floats, keys: Bits, spare: Bits) -> tuple[Any, Any, bool]:
    """Two sizes, `below` and `high`, and whether more than one size lies between them."""
    n = local.size
    last = sizes.size - 1  # where a key is put to be read as the number it is
    sizes[last] = 0
    nothing = sizes[last]
    sizes[last] = np.inf
    everything = sizes[last]
    if voters >= n:
        return nothing, nothing, True
    if n <= DIRECT:
        return nothing, everything, True
    runs = int64(n ** (2 / 3)) // RUN
    state = uint64(0x9E3779B97F4A7C15)
    at = 0
    for run in range(runs):
        begin, end = run * n // runs, (run + 1) * n // runs - RUN
        state ^= state << uint64(13)
        state ^= state >> uint64(7)
        state ^= state << uint64(17)
        place = begin + int64(((state >> uint64(32)) * uint64(end - begin + 1)) >> uint64(32))
        for i in range(place, place + RUN):
            sizes[at] = abs(local[i] - start[i])
            at += 1
    share = voters / n
    middle, margin = at * share, SIGMAS * np.sqrt(at * share * (1 - share)) + 1
    smaller, larger = int64(np.floor(middle - margin)), int64(np.ceil(middle + margin))
    below, high, several = nothing, everything, True
    if larger < at:
        key = _largest(keys, at, larger, spare)
        if key > 0:
            keys[last] = key - 1
            below = sizes[last]
            keys[last] = key
            several = False
    if smaller >= 0:
        key = _largest(keys, at, smaller, spare)
        several = several or key != keys[last]
        keys[last] = key
        high = sizes[last]
    else:
        several = True
    return below, high, several


@compiled
def sweep(
    local: Floats, start: Floats, below: Any, high: Any, several: bool, up: Bits, down: Bits, near: Bits, sizes: Floats
) -> tuple[int, int]:
    """Write the bits of a tensor, or of a part that begins with a word; count what lies above the bracket and inside.

    The sizes inside are listed, if there can be several.
    """
    n = local.size
    above, inside = 0, 0
    for word in range(n >> 6):
        first = word << 6
        rises, falls, beyond = uint64(0), uint64(0), uint64(0)
        for j in range(64):  # of known length, and without a branch: the compiler turns it into vectors
            moved = local[first + j] - start[first + j]
            rises |= uint64(moved > below) << uint64(j)
            falls |= uint64(moved < -below) << uint64(j)
            beyond |= uint64(abs(moved) > high) << uint64(j)
        within = (rises | falls) & ~beyond
        up[word], down[word], near[word] = rises, falls, within
        above += _ones(beyond)
        if several:
            while within:
                lowest = within & (~within + uint64(1))
                place = first + _ones(lowest - uint64(1))
                sizes[inside] = abs(local[place] - start[place])
                inside += 1
                within ^= lowest
        else:
            inside += _ones(within)
    if n & 63:
        word = n >> 6
        up[word], down[word], near[word] = uint64(0), uint64(0), uint64(0)
        for place in range(word << 6, n):
            moved = local[place] - start[place]
            bit = uint64(1) << uint64(place & 63)
            up[word] |= bit if moved > below else uint64(0)
            down[word] |= bit if moved < -below else uint64(0)
            if abs(moved) > high:
                above += 1
            elif abs(moved) > below:
                near[word] |= bit
                if several:
                    sizes[inside] = abs(moved)
                inside += 1
    return above, inside


@compiled
def settle(
    size: int, voters: int, above: int, inside: int, below: Any, several: bool,
    up: Bits, down: Bits, near: Bits, sizes: Floats, keys: Bits, spare: Bits,
) -> bool:  # fmt: skip
    """Clear the bits inside the bracket that do not vote; false if the bracket missed, and nothing was changed."""
    missing = voters - above
    if missing < 0:
        return False
    if inside <= missing:
        return inside == missing or below == 0
    threshold, ties = below, missing
    if several and missing > 0:
        keys[sizes.size - 1] = _largest(keys, inside, missing - 1, spare)
        threshold = sizes[sizes.size - 1]
        for i in range(inside):
            ties -= int64(sizes[i] > threshold)
    at = 0
    for word in range((size + 63) >> 6):
        within = near[word]
        if within == 0:
            continue
        dropped = uint64(0)
        if missing == 0:
            dropped = within
        elif several:
            while within:
                lowest = within & (~within + uint64(1))
                tied = (sizes[at] == threshold) & (ties > 0)
                ties -= int64(tied)
                dropped |= uint64(0) if tied | (sizes[at] > threshold) else lowest
                at += 1
                within ^= lowest
        else:
            while within and ties > 0:
                ties -= 1
                within &= within - uint64(1)
            dropped = within
        up[word] &= ~dropped
        down[word] &= ~dropped
    return True


@compiled
def cast_ballot(
    local: Floats, start: Floats, voters: int, up: Bits, down: Bits, near: Bits, sizes: Floats, keys: Bits, spare: Bits
) -> int:
    """The ballot of a whole tensor; 1 if the bracket missed and the pass was repeated, 0 if not."""
    n = local.size
    below, high, several = bracket(local, start, voters, sizes, keys, spare)
    missed = 0
    while True:
        above, inside = sweep(local, start, below, high, several, up, down, near, sizes)
        if settle(n, voters, above, inside, below, several, up, down, near, sizes, keys, spare):
            return missed
        # The last that votes lies beyond one end of the bracket: all of that side is a bracket that cannot miss.
        missed = 1
        several = inside >= 0  # true, and not a constant, which would be compiled for apart
        sizes[sizes.size - 1] = np.inf if above > voters else 0
        if above > voters:
            below, high = high, sizes[sizes.size - 1]
        else:
            below, high = sizes[sizes.size - 1], below


def steps(kind: str) -> Iterator[None]:
    """Compile for "float32" or "float64", or read numba's cache; a stop after each kernel, about a second of work."""
    forms: dict[str, tuple[Any, Any]] = {"float32": (float32, uint32), "float64": (float64, uint64)}
    real, bits = forms[kind]
    given, words = types.Array(real, 1, "C", readonly=True), uint64[::1]
    sizes, keys = real[::1], bits[::1]
    for kernel, takes in (
        (_ones, (uint64,)),
        (_largest, (keys, int64, int64, keys)),
        (bracket, (given, given, int64, sizes, keys, keys)),
        (sweep, (given, given, real, real, boolean, words, words, words, sizes)),
        (settle, (int64, int64, int64, int64, real, boolean, words, words, words, sizes, keys, keys)),
        (cast_ballot, (given, given, int64, words, words, words, sizes, keys, keys)),
    ):
        compiler: Any = kernel
        try:
            compiler.compile(takes)
        except OSError:  # compiled, and not kept: the disk is full, say
            compiler.compile(takes)
        yield
