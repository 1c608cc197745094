"""Candidates for the next default: scores from the agreement of each client's ballots with the other clients' ballots.

All that such a score needs is one table for a run, computed from pairs of rounds that follow each other:

    C[i, j] = Σ_t w_t · ⟨ballot of i in round t, ballot of j in round t + 1⟩,  i ≠ j
    w_t     = the mean of these products over all pairs i ≠ j, or 0 if that is negative

The weight w_t makes rounds count in which the clients still learn something in common. From C follow

    agreement_i = Σ_j C[i, j]              how well client i points to where the others go next
    lead_i      = Σ_j C[i, j] − C[j, i]    how much it is ahead of the others rather than behind them
    spread      = how badly C fits one shared direction: the relative misfit of C[i, j] ≈ q_i · q_j

Where clients share one direction and differ in how clearly they show it (noise, fewer samples, wrong labels), agreement
ranks them. Where they differ in direction (blur), the one in the middle agrees most, and lead ranks them. The score is
agreement + gain · spread^power · lead, relative to the mean agreement. A client's own ballots are never compared.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ITERATIONS = 30


def agreement_table(agreement: NDArray[np.int32]) -> Floats:
    """C of the run, from `agreement[group, t, lag, i, j]` of the bank."""
    pairs = agreement.sum(axis=0, dtype=np.int64)[:-1, 1].astype(np.float64)
    others = ~np.eye(pairs.shape[-1], dtype=bool)
    weights = np.maximum(pairs[:, others].mean(axis=1), 0.0)
    table: Floats = np.tensordot(weights, pairs, axes=1)
    np.fill_diagonal(table, 0.0)
    return table


def spread(table: Floats) -> float:
    """The misfit of one shared direction, between 0 (fits exactly) and about 1.

    >>> q = np.array([3.0, 2.0, 1.0, 0.5])
    >>> round(spread(np.outer(q, q) - np.diag(q * q)), 4)
    0.0
    """
    symmetric = (table + table.T) / 2
    others = ~np.eye(len(table), dtype=bool)
    size = (symmetric[others] ** 2).mean()
    if size == 0:
        return 0.0
    misfit = symmetric - np.outer(*[_common_factor(symmetric)] * 2)
    return float(np.sqrt((misfit[others] ** 2).mean() / size))


def _common_factor(symmetric: Floats) -> Floats:
    """The q of the best fit q_i · q_j outside the diagonal, by alternating least squares."""
    factor = np.full(len(symmetric), np.sqrt(max(symmetric.sum() / (len(symmetric) * (len(symmetric) - 1)), 1e-12)))
    for _ in range(ITERATIONS):
        for client in range(len(symmetric)):
            rest = np.delete(factor, client)
            factor[client] = np.delete(symmetric[client], client) @ rest / max(rest @ rest, 1e-12)
    return factor


def peer_score(table: Floats, gain: float, power: float) -> Floats:
    """Agreement and lead, mixed by the spread; relative to the mean agreement."""
    agreement = table.sum(axis=1)
    lead = agreement - table.sum(axis=0)
    scale = agreement.mean()
    if scale <= 0:
        return np.zeros(len(table))
    mixed: Floats = (agreement + gain * spread(table) ** power * lead) / scale
    return mixed


CANDIDATES: dict[str, Callable[[Floats], Floats]] = {
    "agreement with the others' next round": lambda table: peer_score(table, 0, 1),
    "lead alone": lambda table: table.sum(axis=1) - table.sum(axis=0),
    "agreement + 50 spread² lead": lambda table: peer_score(table, 50, 2),
    "agreement + 100 spread² lead": lambda table: peer_score(table, 100, 2),
    "agreement + 200 spread³ lead": lambda table: peer_score(table, 200, 3),
    "agreement + 400 spread³ lead": lambda table: peer_score(table, 400, 3),
}
