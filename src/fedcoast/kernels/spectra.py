"""The spread of a matrix over its directions, and a filter that merges two noisy measurements.

Von Neumann entropy treats the squared singular values of a matrix as probabilities:

    p_j = σ_j² / Σ σ²,    S = −Σ p_j·ln p_j / ln rank,    in [0, 1]; 0 for a matrix of rank 0 or 1
"""

from math import log

import numpy as np

from fedcoast.kernels.directions import Doubles


def spectral_entropy(matrix: Doubles) -> float:
    """How evenly a matrix uses its directions: 1 all alike, 0 one alone.

    >>> round(spectral_entropy(np.eye(3)), 6), spectral_entropy(np.ones((3, 2))), spectral_entropy(np.zeros((2, 2)))
    (1.0, 0.0, 0.0)
    """
    largest = float(np.abs(matrix).max(initial=0))
    if largest == 0:
        return 0.0
    values = np.linalg.svd(matrix / largest, compute_uv=False)
    rank = int(np.count_nonzero(values > values.max() * max(matrix.shape) * np.finfo(np.float64).eps))
    if rank < 2:
        return 0.0
    shares = values[:rank] ** 2 / float((values[:rank] ** 2).sum())
    shares = shares[shares > 0]
    return float(min(1.0, max(0.0, -float(shares @ np.log(shares)) / log(rank))))


def fuse(
    state: Doubles, variance: Doubles, first: Doubles, second: Doubles, noise: tuple[float, float]
) -> tuple[Doubles, Doubles]:
    """One step of a scalar Kalman filter for each client, with two measurements of the variances `noise`.

    With H = [1, 1]ᵀ and R = diag(v₁, v₂) the gain is P/det · [v₂, v₁], det = (P + v₁)(P + v₂) − P².

    >>> state, variance = fuse(np.array([0.0]), np.array([1.0]), np.array([1.0]), np.array([1.0]), (1.0, 1.0))
    >>> round(float(state[0]), 4), round(float(variance[0]), 4)
    (0.6667, 0.3333)
    """
    first_noise, second_noise = noise
    factor = variance / ((variance + first_noise) * (variance + second_noise) - variance**2)
    gains = factor * second_noise, factor * first_noise
    moved = state + gains[0] * (first - state) + gains[1] * (second - state)
    return moved, np.clip(variance * (1 - gains[0] - gains[1]), 1e-8, 1e6)
