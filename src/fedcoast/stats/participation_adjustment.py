"""Adjusted means: compare clients that took part in different rounds as if they had been in all.

Credits differ between rounds: they shrink as the model converges, and depend on which other clients took part. A
plain mean over a client's rounds therefore depends on which rounds those were. Here a credit is a client's part plus a
round's part, fitted by least squares to the credits there are (a two-way layout):

    p_i^t ≈ a_i + b^t        level_i = a_i + the mean of b^t over the rounds

With full participation the level is the mean. Levels are linear in the credits, so each round adds its part to them
(`parts`), as it adds a credit to a total. Where rounds multiply credits instead of adding to them, levels are biased:
an idle client that missed unusual rounds no longer has level 0.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

DIGITS = 12  # of the largest credit, of a level: clients with the same credits must have the same level
PROBES = 30


def adjusted_mean(credits: Floats) -> Floats:
    """The level of each client, from its credits (a row a round, NaN where it was absent); NaN if it was never present.

    Clients that share no rounds, even indirectly, cannot be compared: each such group is adjusted over its own rounds.

    >>> nan = float("nan")
    >>> adjusted_mean(np.array([[9.0, 8.0, nan], [nan, 2.0, 1.0]]))  # the second round gave less to every client
    array([6., 5., 4.])
    """
    came = ~np.isnan(credits).all(axis=0)
    unit = float(np.nanmax(np.abs(credits), initial=0)) or 1.0
    return np.where(came, np.round(parts(credits / unit).sum(axis=0), DIGITS) * unit, np.nan)


def parts(credits: Floats) -> Floats:
    """What each round adds to the adjusted mean of each client, even one that was absent; columns add up to it.

    >>> parts(np.array([[9.0, 8.0], [7.0, 2.0]]))  # full participation: a round adds its part of the mean
    array([[4.5, 4. ],
           [3.5, 1. ]])
    """
    present = ~np.isnan(credits)
    if not present.any():
        return np.zeros(credits.shape)
    values = np.where(present, credits, 0.0)
    wide = credits.shape[1] > credits.shape[0]  # whichever are fewer, rounds or clients, are solved for
    return _by_rounds(values, present) if wide else _by_clients(values, present)


def effective_rounds(present: Bools) -> Floats:
    """On how many rounds each level rests: (Σ w²)² / Σ w⁴ with the weights w of the rounds; NaN without any round.

    A client with many rounds rests on a single one if only that one connects it with the other clients. The weights are
    measured with tables of random signs.

    >>> there = np.ones((40, 2), dtype=bool)
    >>> effective_rounds(there).round(6).tolist()
    [40.0, 40.0]
    """
    rng = np.random.default_rng(0)
    signs = (np.where(present, rng.choice([-1.0, 1.0], present.shape), np.nan) for _ in range(PROBES))
    weights = np.mean([parts(table) ** 2 for table in signs], axis=0)
    with np.errstate(invalid="ignore"):
        return np.asarray(weights.sum(axis=0) ** 2 / (weights**2).sum(axis=0))


def comparable(present: Bools) -> Bools:
    """Which clients can be compared with most: those of the connected group that came most.

    >>> comparable(np.array([[True, True, False], [True, True, False], [False, False, True]])).tolist()
    [True, True, False]
    """
    groups = connected(present)
    came = np.bincount(groups, present.sum(axis=0), len(groups))
    return np.asarray(groups == came.argmax())


def connected(present: Bools) -> NDArray[np.intp]:
    """A number for each client, the same for those whom a chain of common rounds connects.

    >>> connected(np.array([[True, True, False, False], [False, True, True, False]])).tolist()
    [0, 0, 0, 3]
    """
    groups = np.arange(present.shape[1])
    for row in present:
        if row.any():
            met = np.isin(groups, groups[row])
            groups[met] = groups[met].min()
    return groups


def _by_clients(values: Floats, present: Bools) -> Floats:
    company = np.maximum(present.sum(axis=1), 1)
    shares = present / company[:, None]
    groups = connected(present)
    # What a client has beyond the means of its rounds is what it adds beyond what the others there add.
    own = (values - values.sum(axis=1)[:, None] * shares) @ _inverse(present, shares, groups)
    where = groups[present.argmax(axis=1)]  # a round's group
    rounds = np.bincount(where[present.any(axis=1)], minlength=len(groups))
    common = (values.sum(axis=1) / company - own @ shares.sum(axis=0)) / np.maximum(rounds[where], 1)
    return np.where(groups == where[:, None], own + common[:, None], 0.0)


def _by_rounds(values: Floats, present: Bools) -> Floats:
    counts = np.maximum(present.sum(axis=0), 1)
    shares = (present / counts).T
    beyond = np.diag(values.sum(axis=1)) - values @ shares
    common = beyond @ _inverse(present.T, shares, connected(present.T))  # adds up to 0 in each group
    return np.asarray((values - common @ present) / counts)


def _inverse(present: Bools, shares: Floats, groups: NDArray[np.intp]) -> Floats:
    """The inverse of the matrix of shared rounds, in which a constant common to a whole group is fixed at 0."""
    meetings = np.diag(present.sum(axis=0)) - present.T.astype(np.float64) @ shares
    return np.linalg.inv(meetings + (groups[:, None] == groups))
