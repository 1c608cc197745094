"""Clients that took part in different rounds, compared as if they had been in all.

Credits differ between rounds: they shrink as the model settles, and depend on who else was there. A plain mean over
the rounds that a client was in therefore depends on which rounds those were. Here a credit is a client's part plus a
round's part, fitted by least squares to the credits there are (a two-way layout):

    p_i^t ≈ a_i + b^t        level_i = a_i + the mean of b^t over the rounds

Where everybody takes part in every round, the level is the mean.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def evened(credits: Floats) -> Floats:
    """The level of each client, from its credits (a row a round, NaN where it was absent); NaN if it never came.

    Clients that no chain of common rounds connects cannot be compared: each such group is evened out over its own
    rounds alone.

    >>> nan = float("nan")
    >>> evened(np.array([[9.0, 8.0, nan], [nan, 2.0, 1.0]]))  # the second round gave less to everybody
    array([6., 5., 4.])
    """
    present = ~np.isnan(credits)
    if not present.any():
        return np.full(credits.shape[1], np.nan)
    met = present.any(axis=1)  # a round without anybody says nothing
    credits, present = credits[met], present[met]
    wide = credits.shape[1] > credits.shape[0]
    rounds, clients = _fitted(credits.T) if wide else _fitted(credits)[::-1]  # whichever are fewer are solved for
    groups = _groups(present)
    where = groups[present.argmax(axis=1)]
    counts = np.bincount(where, minlength=len(groups))
    means = np.bincount(where, rounds, len(groups)) / np.maximum(counts, 1)
    return np.where(present.any(axis=0), clients + means[groups], np.nan)


def _fitted(table: Floats) -> tuple[Floats, Floats]:
    """What each column and each row adds to the entries of a table, by least squares over those there are."""
    present = ~np.isnan(table)
    given = np.where(present, table, 0.0)
    company = np.maximum(present.sum(axis=1), 1)
    shares = present / company[:, None]
    # What a column has beyond the means of the rows it is in is what it adds beyond what the others there add.
    beyond = given.sum(axis=0) - given.sum(axis=1) @ shares
    meetings = np.diag(present.sum(axis=0)) - present.T.astype(np.float64) @ shares
    groups = _groups(present)
    together = (groups[:, None] == groups[None, :]).astype(np.float64)  # fixes what all of a group may add in common
    columns = np.linalg.solve(meetings + together, beyond)
    return columns, (given.sum(axis=1) - present @ columns) / company


def _groups(present: NDArray[np.bool_]) -> NDArray[np.intp]:
    """A number for each column, the same for those whom common rows connect."""
    groups = np.arange(present.shape[1])
    for row in present:
        if row.any():
            met = np.isin(groups, groups[row])
            groups[met] = groups[met].min()
    return groups
