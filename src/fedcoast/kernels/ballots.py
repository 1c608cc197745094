"""Ballots: the signs of the largest updates of one tensor, zero elsewhere (CoAst, section 4.2).

A ballot Δ̃ ∈ {−1, 0, 1}ⁿ keeps m = max(1, ⌊n·r⌋) entries of an update δ: those with the largest |δ|, ties
to the lower flat index. A zero never votes, so a ballot has fewer than m votes where δ has fewer non-zeros.
"""

import numpy as np
from numpy.typing import NDArray

Signs = NDArray[np.int8]
Floats = NDArray[np.floating]


def num_kept(size: int, keep: float) -> int:
    """How many of `size` entries may vote: max(1, ⌊size·keep⌋), the floor of the float product.

    >>> num_kept(25, 0.10), num_kept(4, 0.10), num_kept(0, 0.10)
    (2, 1, 0)
    """
    return min(size, max(1, int(size * keep)))


def signs(values: Floats) -> Signs:
    """sgn with sgn(0) = 0, flat.

    >>> signs(np.array([[0.5, -0.0], [-2.0, 1e-320]])).tolist()
    [1, 0, -1, 1]
    """
    return np.sign(values).astype(np.int8).ravel()


def pack(ballot: Signs) -> NDArray[np.uint8]:
    """Two bits an entry: a plane of the votes up and a plane of the votes down.

    >>> pack(np.array([1, 0, -1], np.int8)).tolist()
    [[128], [32]]
    """
    return np.packbits(np.stack([ballot > 0, ballot < 0]), axis=1)


def unpack(planes: NDArray[np.uint8], size: int) -> Signs:
    """The ballot of `size` entries that was packed.

    >>> unpack(np.array([[128], [32]], np.uint8), 3).tolist()
    [1, 0, -1]
    """
    up, down = np.unpackbits(planes, axis=1, count=size).view(np.int8)
    return np.asarray(up - down)


def ballot(update: Floats, keep: float) -> Signs:
    """The ballot of one tensor, flat.

    >>> ballot(np.array([0.3, -0.1, 0.05, 0.2]), keep=0.5).tolist()
    [1, 0, 0, 1]
    >>> ballot(np.array([2.0, -2.0, 2.0, 0.0]), keep=0.5).tolist()  # ties go to the lower index
    [1, -1, 0, 0]
    """
    flat = update.ravel()
    voters = np.argsort(-np.abs(flat), kind="stable")[: num_kept(flat.size, keep)]
    result = np.zeros(flat.size, dtype=np.int8)
    result[voters] = np.sign(flat[voters])
    return result
