"""Ranks, and how well two rankings agree."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def paper_ranks(scores: Sequence[float]) -> list[int]:
    """r_i = |{j : p_j ≥ p_i}|: the best has 1, tied clients all have the worst rank of their tie; NaN is worst.

    >>> paper_ranks([0.9, 0.7, 0.7, 0.1, 0.3])
    [1, 3, 3, 5, 4]
    """
    values = _comparable(scores)
    ordered = np.sort(values)
    return [len(values) - int(below) for below in np.searchsorted(ordered, values, side="left")]


def average_ranks(scores: Sequence[float]) -> NDArray[np.float64]:
    """Ranks from the best (1) down; tied clients share the mean of the ranks they cover; NaN is worst.

    >>> average_ranks([0.9, 0.7, 0.7, 0.1, 0.3]).tolist()
    [1.0, 2.5, 2.5, 5.0, 4.0]
    """
    values = _comparable(scores)
    ordered = np.sort(values)
    below = np.searchsorted(ordered, values, side="left")
    below_or_equal = np.searchsorted(ordered, values, side="right")
    return len(values) - (below + below_or_equal - 1) / 2


def _comparable(scores: Sequence[float]) -> NDArray[np.float64]:
    values = np.asarray(scores, dtype=np.float64)
    return np.where(np.isnan(values), -np.inf, values)


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's ρ: Pearson's correlation of the average ranks; NaN where one side is constant or has a NaN.

    >>> round(spearman([5, 4, 3, 2, 1], [0.9, 0.7, 0.7, 0.1, 0.3]), 6)
    0.872082
    """
    if len(first) != len(second):
        raise ValueError(f"two rankings of the same clients are wanted; got {len(first)} and {len(second)}")
    middle = (len(first) + 1) / 2  # the mean of average ranks, exactly
    a, b = average_ranks(first) - middle, average_ranks(second) - middle
    length = np.sqrt((a @ a) * (b @ b))
    unknown = np.isnan([*first, *second]).any()
    return float(a @ b / length) if length > 0 and not unknown else float("nan")


def kendall(first: Sequence[float], second: Sequence[float]) -> float:
    """Kendall's τ_b: pairs in the same order less pairs in the opposite one, over √(untied pairs of each, multiplied).

    NaN where one side is constant or has a NaN.

    >>> round(kendall([5, 4, 3, 2, 1], [0.9, 0.7, 0.7, 0.1, 0.3]), 6)
    0.737865
    """
    if len(first) != len(second):
        raise ValueError(f"two rankings of the same clients are wanted; got {len(first)} and {len(second)}")
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if np.isnan(a).any() or np.isnan(b).any():
        return float("nan")
    agreeing, untied = 0, [0, 0]
    for place in range(len(a) - 1):  # a row of the table of pairs at a time: many clients need no table of all
        ways = [(x[place + 1 :] > x[place]).astype(np.int8) - (x[place + 1 :] < x[place]) for x in (a, b)]
        agreeing += int(ways[0] @ ways[1].astype(np.int64))
        untied = [count + int(np.count_nonzero(way)) for count, way in zip(untied, ways, strict=True)]
    return agreeing / float(np.sqrt(untied[0]) * np.sqrt(untied[1])) if all(untied) else float("nan")
