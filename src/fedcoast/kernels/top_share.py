"""The same ballot as `ballots.ballot`, bit for bit, by selection instead of sorting: a few passes over the data."""

import numpy as np

from fedcoast.kernels.ballots import Floats, Signs, num_kept
from fedcoast.kernels.bit_planes import PIECE, Planes, to_signs, write_bits


def quick_ballot(update: Floats, keep: float) -> Signs:
    """The ballot of one tensor, flat.

    >>> quick_ballot(np.array([2.0, -2.0, 2.0, 0.0]), keep=0.5).tolist()
    [1, -1, 0, 0]
    """
    flat = update.reshape(-1)
    planes = np.zeros((2, -(-flat.size // 64)), np.uint64)
    cast_ballot(flat, None, num_kept(flat.size, keep), planes, np.empty_like(flat))
    return to_signs(planes, flat.size)


def cast_ballot(local: Floats, start: Floats | None, voters: int, planes: Planes, sizes: Floats) -> None:
    """The ballot of local − start into zeroed planes; `sizes` is scratch of the tensor's size and type.

    Entries above the m-th largest |δ| vote, then ties from the lowest index up. Nothing of the tensor's size is
    allocated: the difference is taken twice, in pieces that stay in the cache.
    """
    piece = np.empty(min(PIECE, local.size), local.dtype)
    count = 0
    for at in range(0, local.size, PIECE):
        update = np.abs(_update(local, start, at, piece), out=piece[: local.size - at])
        # Zeros never vote, and NumPy's selection is slow on arrays that are mostly zero: leave them out first.
        nonzero = int(np.count_nonzero(update))
        sizes[count : count + nonzero] = update if nonzero == update.size else update[update != 0]
        count += nonzero
    threshold, ties = sizes.dtype.type(0), 0
    if count > voters:
        found = sizes[:count]
        found.partition(count - voters)
        threshold = found[count - voters]
        ties = voters - int(np.count_nonzero(found[count - voters :] > threshold))
    for at in range(0, local.size, PIECE):
        update = _update(local, start, at, piece)
        up, down = update > threshold, update < -threshold
        if ties:
            tied = np.flatnonzero(np.abs(update) == threshold)[:ties]
            up[tied], down[tied] = update[tied] > 0, update[tied] < 0
            ties -= tied.size
        write_bits(planes[0], at, up)
        write_bits(planes[1], at, down)


def _update(local: Floats, start: Floats | None, at: int, out: Floats) -> Floats:
    part = local[at : at + PIECE]
    if start is None:
        return part
    with np.errstate(over="ignore"):  # the difference of two huge numbers is infinite, and its sign right
        return np.subtract(part, start[at : at + PIECE], out=out[: part.size])
