"""The same ballot as `ternary.ballot`, bit for bit, without sorting: selection instead, a few passes over the data."""

import numpy as np

from fedcoast.formulas.ternary import Floats, Signs, kept


def quick_ballot(update: Floats, keep: float) -> Signs:
    """The ballot of one tensor, flat: entries above the m-th largest |δ| vote, then ties from the lowest index up.

    >>> quick_ballot(np.array([2.0, -2.0, 2.0, 0.0]), keep=0.5).tolist()
    [1, -1, 0, 0]
    """
    flat = update.ravel()
    size = np.abs(flat)
    # Zeros never vote, and NumPy's selection is slow on arrays that are mostly zero: leave them out first.
    candidates = size[size > 0] if np.count_nonzero(size) < flat.size else size
    voters = kept(flat.size, keep)
    if candidates.size <= voters:
        return np.sign(flat).astype(np.int8)
    threshold = np.partition(candidates, candidates.size - voters)[candidates.size - voters]
    result = np.zeros(flat.size, dtype=np.int8)
    result[flat > threshold] = 1
    result[flat < -threshold] = -1
    missing = voters - int(np.count_nonzero(result))
    if missing:
        tied = np.flatnonzero(size == threshold)[:missing]
        result[tied] = np.sign(flat[tied])
    return result
