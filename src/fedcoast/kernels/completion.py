"""Low-rank completion: estimate the entries of a matrix that were not observed from those that were.

    minimise  Σ_{observed} (M_tc − w_t·h_c)²  +  λ·(‖W‖² + ‖H‖²)

by alternating least squares: each half of the factors is solved for exactly while the other is fixed.
"""

import numpy as np
from numpy.typing import NDArray

from fedcoast.errors import BadSetting

Matrix = NDArray[np.float64]

_STILL = 1e-14  # relative: factors that move less than this have arrived


def complete(observed: Matrix, rank: int, ridge: float, sweeps: int = 500) -> Matrix:
    """The matrix of this rank nearest to the entries that are not NaN, ridge-regularised, in all its entries.

    Rows start from positive factors and columns are solved first: from factors of random sign, a small ridge lets
    unobserved entries diverge. Each column must have been observed somewhere.

    >>> known = np.array([[2.0, 4.0, 6.0], [1.0, 2.0, np.nan]])
    >>> complete(known, rank=1, ridge=1e-9).round(4).tolist()
    [[2.0, 4.0, 6.0], [1.0, 2.0, 3.0]]
    """
    is_known = ~np.isnan(observed)
    if not is_known.any(axis=0).all():
        blank = int(np.argmin(is_known.any(axis=0)))
        raise BadSetting(f"every column must be observed at least once; column {blank} never was")
    known = np.where(is_known, observed, 0.0)
    if not known.any():
        return np.zeros(observed.shape)
    # Always the same numbers: the start is part of the method, not of the chance in the data.
    rows = (
        np.random.default_rng(0).uniform(0.5, 1.5, size=(len(observed), rank)) if rank > 1 else np.ones((len(known), 1))
    )
    columns = _solve(rows, known.T, is_known.T, ridge)
    for _ in range(sweeps):
        rows = _solve(columns, known, is_known, ridge)
        before, columns = columns, _solve(rows, known.T, is_known.T, ridge)
        if np.abs(columns - before).max() <= _STILL * np.abs(columns).max():
            break
    return np.asarray(rows @ columns.T)


def _solve(factors: Matrix, known: Matrix, is_known: NDArray[np.bool_], ridge: float) -> Matrix:
    """One row of factors for each row of `known`, given those of its columns."""
    rank = factors.shape[1]
    squares = (factors[:, :, np.newaxis] * factors[:, np.newaxis, :]).reshape(-1, rank * rank)
    grams = (is_known @ squares).reshape(-1, rank, rank) + ridge * np.eye(rank)
    return np.asarray(np.linalg.solve(grams, (known @ factors)[:, :, np.newaxis])[:, :, 0])
