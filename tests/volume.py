"""What data are worth by how much of the feature space they cover: robust volume and information gain.

Both need the clients' data, or features of a frozen extractor, and so are formulas here and no assessors: an assessor
sees what a server sees. They are games: the worth of a coalition is that of all its members' data together, and
`games.shapley` shares it out. Neither looks at labels.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]

_GUARD = 1e-8  # inside the square root: data of fewer directions than dimensions have a volume near 0, not 0


def pooled(data: Sequence[Points], coalition: int) -> Points:
    """The points of a coalition's members, one below the other.

    >>> pooled([np.zeros((2, 3)), np.ones((1, 3)), np.ones((4, 3))], 0b101).shape
    (6, 3)
    """
    dimensions = data[0].shape[1]
    members = [points for player, points in enumerate(data) if coalition >> player & 1]
    return np.concatenate(members) if members else np.zeros((0, dimensions))


def log_robust_volume(points: Points, cell: float = 0.1) -> float:
    """ln of the robust volume (Xu, Wu, Foo, Low, NeurIPS 2021): −∞ for no points.

    A grid of cells of side ω begins at the smallest value of each column. With X̃ the means of the cells, c the
    points in a cell and a = 1 / (10 · cells), the volume is √(det X̃ᵀX̃ + 1e-8) · Π_cells (1 − a^{c+1}) / (1 − a):
    copies of a point add next to nothing. Points are taken as they are; standardise features first, by statistics
    all clients share. Unlike the authors' code, nothing is rounded. In more than ten dimensions volumes explode:
    play the game of their logarithms.

    >>> round(float(np.exp(log_robust_volume(np.full((3, 2), 0.5), cell=0.5))), 10)
    0.0001111
    """
    if not len(points):
        return -np.inf
    places = np.floor((points - points.min(axis=0)) / cell).astype(np.int64)
    _, cell_of, counts = np.unique(places, axis=0, return_inverse=True, return_counts=True)
    sums = np.zeros((len(counts), points.shape[1]))
    np.add.at(sums, cell_of.ravel(), points)
    means = sums / counts[:, np.newaxis]
    _, log_determinant = np.linalg.slogdet(means.T @ means)
    share = 1 / (10 * len(counts))
    crowding = np.log1p(-(share ** (counts + 1.0))) - np.log1p(-share)
    return float(0.5 * np.logaddexp(log_determinant, np.log(_GUARD)) + crowding.sum())


def robust_volume(points: Points, cell: float = 0.1) -> float:
    """The robust volume; 0 for no points."""
    return float(np.exp(log_robust_volume(points, cell)))


def information_gain(points: Points, prior: float = 1.0, noise: float = 1.0) -> float:
    """½·log det(I + (τ²/σ²)·XᵀX): what the points tell a Bayesian linear model about its weights, in nats.

    Sim, Zhang, Chan, Low, ICML 2020; τ² is the prior variance of a weight, σ² that of the noise.

    >>> round(information_gain(np.array([[1.0]])), 6)  # ½·ln 2
    0.346574
    """
    _, log_determinant = np.linalg.slogdet(np.eye(points.shape[1]) + prior / noise * points.T @ points)
    return float(0.5 * log_determinant)


def rho_rewards(values: NDArray[np.float64], total: float, rho: float) -> NDArray[np.float64]:
    """(φ_i / max φ)^ρ · v(N): the best client is given everything, ρ < 1 gives the others more than their share.

    >>> rho_rewards(np.array([4.0, 1.0]), total=10.0, rho=0.5).tolist()
    [10.0, 5.0]
    """
    return np.asarray((values / values.max()) ** rho * total)
