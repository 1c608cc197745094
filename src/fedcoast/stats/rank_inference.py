"""How certain a ranking is: which clients are above which, given the luck of the rounds (`stats.bootstrap`).

`values` are the clients' values; `luck` are draws of what chance alone would have added, a row each. A column of NaN
is a client with too few rounds.
"""

from itertools import pairwise
from math import ceil, inf
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from fedcoast.stats.bootstrap import CHUNK, Bools, Floats

RANKING_DRAWS = 500  # that are enough for a quantile in the middle of the distribution


def above(values: Floats, luck: Floats) -> Floats:
    """P(row is really above column): the share of draws in which it is, ties halved; NaN where nothing is known.

    >>> above(np.array([3.0, 1.0]), np.array([[0.0, 0.0], [0.0, 3.0], [0.0, 2.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.625], [0.375, 0.5]]
    """
    drawn = np.ascontiguousarray((values + luck).T)
    balance = np.zeros((len(values), len(values)))
    for first in range(0, drawn.shape[1], CHUNK):
        part = np.ascontiguousarray(drawn[:, first : first + CHUNK])
        for row in range(len(values)):
            others = part[row + 1 :]
            balance[row, row + 1 :] += (part[row] > others).sum(axis=1) - (part[row] < others).sum(axis=1)
    result = (1 + (balance - balance.T) / drawn.shape[1]) / 2
    unknown = np.isnan(luck).any(axis=0)
    result[unknown, :] = result[:, unknown] = np.nan
    return np.asarray(result)


def comparisons(values: Floats, luck: Floats, unordered: Bools, level: float) -> tuple[Floats, Floats, float]:
    """`above`, and both results of `joint_reach`; pairs without an order are never apart. The tables are read-only."""
    chances = above(values, luck)
    reach, factor = joint_reach(luck, level)
    reach[unordered], chances[unordered] = np.inf, np.nan
    for table in (chances, reach):
        table.setflags(write=False)
    return chances, reach, factor


def joint_reach(luck: Floats, level: float) -> tuple[Floats, float]:
    """How far apart the values of each two clients must be before luck no longer explains it, for all pairs at once.

    c·σ_ij, and c itself, where c is such that for `level` of the draws no pair of clients is off by more (the joint
    confidence set of Mogstad, Romano, Shaikh, Wilhelm 2024). Infinite where nothing is known. A twin, whose
    luck is that of another client, changes nothing for the others.

    >>> noise = np.random.default_rng(0).normal(size=(2000, 3))
    >>> joint_reach(noise, 0.9)[0].round(0).tolist()
    [[0.0, 3.0, 3.0], [3.0, 0.0, 3.0], [3.0, 3.0, 0.0]]
    """
    reach = np.full((luck.shape[1], luck.shape[1]), np.inf)
    np.fill_diagonal(reach, 0.0)
    known = np.flatnonzero(~np.isnan(luck).any(axis=0))
    if not len(known):
        return reach, 0.0
    spread = _spreads(luck[:, known])
    unit = float(spread.max(initial=0)) or 1.0
    spread = np.where(spread > 1e-9 * unit, spread, 0.0)
    few = np.ascontiguousarray(luck[:RANKING_DRAWS, known].T / unit, dtype=np.float32)
    weight = np.divide(unit, spread, out=np.zeros(spread.shape), where=spread > 0).astype(np.float32)
    worst = np.zeros(few.shape[1], dtype=np.float32)
    for row in range(len(known)):
        np.maximum(worst, np.abs((few - few[row]) * weight[row][:, None]).max(axis=0), out=worst)
    factor = float(np.quantile(worst, level))
    reach[np.ix_(known, known)] = factor * spread
    return reach, factor


def rank_bounds(values: Floats, reach: Floats) -> NDArray[np.int64]:
    """The best and the worst rank that each client may really have, where values differ by luck up to `reach`.

    A client ranks below all that are surely above it and above all that are surely below (Mogstad, Romano, Shaikh,
    Wilhelm, "Inference for Ranks", Review of Economic Studies 2024). No client is surely above or below one with too
    few rounds. Ranks of the draws themselves would be too certain about clients that nearly tie.

    >>> rank_bounds(np.array([9.0, 0.5, 0.0]), np.full((3, 3), 2.0)).tolist()
    [[1, 1], [2, 3], [2, 3]]
    """
    lead = values[:, None] - values
    best, worst = 1 + (lead < -reach).sum(axis=1), len(values) - (lead > reach).sum(axis=1)
    return np.stack([best, worst], axis=1).astype(np.int64)


def groups(apart: Bools) -> list[range]:
    """Places of a ranking, cut wherever every client above the cut differs from every client below it.

    Clients that cannot be ordered are therefore in the same group. The price: the first and the last of a group may
    differ, connected by a chain of neighbours that do not.

    >>> groups(np.array([[False, True, True], [True, False, False], [True, False, False]]))
    [range(0, 1), range(1, 3)]
    """
    cuts, reach = [0], 0
    for place, row in enumerate(apart):
        reach = max(reach, int(np.flatnonzero(~row)[-1]))
        if reach == place:
            cuts.append(place + 1)
            reach += 1
    return [range(first, last) for first, last in pairwise(cuts)]


def rounds_to_settle(lead: float, spread: float, rounds: int, level: float) -> float:
    """How many more rounds until a pair probably differs; 0 if it does now, ∞ without any difference.

    A lead of d after n rounds, with standard deviation σ, becomes d·m/n after m rounds, with σ·√(m/n): it reaches z
    standard deviations at m = n·(zσ/d)². At that point the odds are even. Credits that shrink take longer.

    >>> rounds_to_settle(lead=10.0, spread=10.0, rounds=20, level=0.9)
    35.0
    """
    if lead == 0:
        return inf
    longer = NormalDist().inv_cdf((1 + level) / 2) * spread / lead
    needed = rounds * longer * longer
    return float(max(0, ceil(needed) - rounds)) if needed < inf else inf


def _spreads(luck: Floats) -> Floats:
    """The standard deviation of the difference of any two clients."""
    centred = luck - luck.mean(axis=0)
    shared = centred.T @ centred / max(1, len(luck))
    own = np.diag(shared)
    return np.asarray(np.sqrt(np.maximum(own[:, None] + own - 2 * shared, 0)))
