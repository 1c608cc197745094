"""Votes counted in planes: the k-th plane holds the bit worth 2^k of every entry's count.

Adding a ballot is an addition with carry on all entries of a word at once. Entries without votes are not written, and a
round of N clients needs 2·⌈log₂(N+1)⌉ bits an entry, half for the votes up, half for the votes down.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedcoast.kernels.bit_planes import SPAN, Planes, Words

VoteCounts = NDArray[np.uint64]
"""Up and down, each in planes of rising worth: shape (2, planes, words)."""

_PIECE = SPAN // 4  # words; several planes of them stay in the cache


def no_votes(words: int, clients: int) -> VoteCounts:
    """Zero votes for every entry, with room for the votes of this many clients."""
    return np.zeros((2, max(1, clients.bit_length()), words), np.uint64)


def count(votes: VoteCounts, ballot: Planes) -> None:
    """Add one ballot.

    >>> votes = no_votes(words=1, clients=2)
    >>> for _ in range(2):
    ...     count(votes, np.array([[0b01], [0b10]], np.uint64))
    >>> votes.tolist()
    [[[0], [1]], [[0], [2]]]
    """
    carry, onward = np.empty((2, min(_PIECE, ballot.shape[1])), np.uint64)
    for side, row in zip(votes, ballot, strict=True):
        for at in range(0, row.size, _PIECE):
            added = row[at : at + _PIECE]
            here, there = carry[: added.size], onward[: added.size]
            for plane in side[:, at : at + _PIECE]:
                np.bitwise_and(plane, added, out=there)
                np.bitwise_xor(plane, added, out=plane)
                if not there.any():
                    break
                added, here, there = there, there, here


def majority_sign(rounds: Sequence[VoteCounts]) -> Planes:
    """sgn Σ_e V^e: where the votes up of all these rounds together outnumber those down, and where the reverse.

    >>> votes = no_votes(words=1, clients=1)
    >>> count(votes, np.array([[0b01], [0b10]], np.uint64))
    >>> majority_sign([votes, votes]).tolist()
    [[1], [2]]
    """
    words = rounds[0].shape[2]
    result = np.empty((2, words), np.uint64)
    for at in range(0, words, _PIECE):
        up, down = (_sum([votes[side, :, at : at + _PIECE] for votes in rounds]) for side in (0, 1))
        more = less = np.zeros(up[0].size, np.uint64)
        for high, low in zip(reversed(up), reversed(down), strict=True):
            undecided = ~(more | less)
            more = more | (undecided & high & ~low)
            less = less | (undecided & low & ~high)
        result[:, at : at + _PIECE] = more, less
    return result


def _sum(numbers: Sequence[Words]) -> list[Words]:
    """Numbers in planes of rising worth, added up."""
    width = max(number.shape[0] for number in numbers) + (len(numbers) - 1).bit_length()
    total = [np.zeros(numbers[0].shape[1], np.uint64) for _ in range(width)]
    for number in numbers:
        carry = np.zeros_like(total[0])
        for place in range(width):
            before, added = total[place], number[place] if place < number.shape[0] else np.zeros_like(carry)
            total[place] = before ^ added ^ carry
            carry = (before & added) | (carry & (before ^ added))
    return total
