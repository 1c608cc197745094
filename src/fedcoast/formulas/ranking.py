"""Ranks, and how well two rankings agree."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def paper_ranks(scores: Sequence[float]) -> list[int]:
    """r_i = |{j : p_j ≥ p_i}|: the best has 1, tied clients all have the worst rank of their tie.

    >>> paper_ranks([0.9, 0.7, 0.7, 0.1, 0.3])
    [1, 3, 3, 5, 4]
    """
    values = np.asarray(scores, dtype=np.float64)
    ordered = np.sort(values)
    return [len(values) - int(below) for below in np.searchsorted(ordered, values, side="left")]


def average_ranks(scores: Sequence[float]) -> NDArray[np.float64]:
    """Ranks from the best (1) down; tied clients share the mean of the ranks they cover.

    >>> average_ranks([0.9, 0.7, 0.7, 0.1, 0.3]).tolist()
    [1.0, 2.5, 2.5, 5.0, 4.0]
    """
    values = np.asarray(scores, dtype=np.float64)
    ordered = np.sort(values)
    below = np.searchsorted(ordered, values, side="left")
    below_or_equal = np.searchsorted(ordered, values, side="right")
    return len(values) - (below + below_or_equal - 1) / 2


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's ρ: Pearson's correlation of the average ranks; NaN where one side is constant.

    >>> round(spearman([5, 4, 3, 2, 1], [0.9, 0.7, 0.7, 0.1, 0.3]), 6)
    0.872082
    """
    if len(first) != len(second):
        raise ValueError(f"two rankings of the same clients are wanted; got {len(first)} and {len(second)}")
    a, b = average_ranks(first), average_ranks(second)
    a, b = a - a.mean(), b - b.mean()
    length = np.sqrt((a @ a) * (b @ b)) if len(a) else 0.0
    return float(a @ b / length) if length > 0 else float("nan")
