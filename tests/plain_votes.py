"""Votes and planes written out plainly: what the fast kernels must agree with."""

import numpy as np


def to_planes(signs):
    """The planes of one layer: the bits of the votes up and of the votes down, in 64-bit words."""
    bits = np.zeros((2, -(-signs.size // 64) * 64), np.uint8)
    bits[0, : signs.size], bits[1, : signs.size] = signs > 0, signs < 0
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)


def vote_direction(rounds):
    """sgn Σ_e V^e over the votes of these rounds."""
    return np.sign(np.sum(rounds, axis=0, dtype=np.int64)).astype(np.int8)
