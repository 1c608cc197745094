"""Shapley values from sampled orders of joining: each player gets the mean of what it adds when it joins.

Two samplers of the field: TMC stops walking an order when what is left to gain is small (Ghorbani, Zou, ICML 2019);
GTG also lets every player come first equally often, skips games with nothing to share out, and stops when
the means have settled (Liu, Chen, Yu, Liu, Cui, ACM TIST 2022). `ask` is as in `games`.
"""

import math
from collections.abc import Sequence
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from fedcoast.methods.coalition.games import Ask, Values, everyone

Orders = Sequence[Sequence[int]]

_LAST = 10  # the running means that GTG compares


def random_orders(players: int, count: int, rng: np.random.Generator) -> Orders:
    """`count` random orders; every order once if there are no more than that.

    >>> random_orders(2, 10, np.random.default_rng(0))
    [(0, 1), (1, 0)]
    """
    if math.factorial(players) <= count:
        return list(permutations(range(players)))
    return [tuple(rng.permutation(players).tolist()) for _ in range(count)]


def guided_orders(players: int, rng: np.random.Generator) -> Orders:
    """A sweep of GTG: each player comes first once, the others after it in a random order.

    >>> [order[0] for order in guided_orders(4, np.random.default_rng(0))]
    [0, 1, 2, 3]
    """
    orders = []
    for first in range(players):
        others = [player for player in range(players) if player != first]
        orders.append((first, *rng.permutation(others).tolist()))
    return orders


def marginals(ask: Ask, players: int, orders: Orders, tolerance: float = 0.0) -> NDArray[np.float64]:
    """What each player adds in each of the orders: a row an order, a column a player.

    Where v(prefix) is within `tolerance` of v(N), the rest of the order adds nothing, and is not asked for. All orders
    are walked in step, so each step is one question about many coalitions.

    >>> from fedcoast.methods.coalition.games import lookup
    >>> marginals(lookup([0.0, 1.0, 1.5, 4.0]), 2, [(0, 1), (1, 0)]).tolist()
    [[1.0, 3.0], [2.5, 1.5]]
    """
    full, empty = ask([everyone(players), 0])
    rows = np.zeros((len(orders), players))
    reached, joined = [empty] * len(orders), [0] * len(orders)
    for place in range(players):
        walking = [row for row in range(len(orders)) if not abs(full - reached[row]) < tolerance]
        for row in walking:
            joined[row] |= 1 << orders[row][place]
        for row, worth in zip(walking, ask([joined[row] for row in walking]), strict=True):
            rows[row, orders[row][place]] = worth - reached[row]
            reached[row] = worth
    return rows


def tmc(ask: Ask, players: int, orders: Orders, tolerance: float = 0.0) -> Values:
    """TMC-Shapley: the mean marginal over these orders, each walked until v(prefix) is within the tolerance of v(N).

    >>> from fedcoast.methods.coalition.games import lookup
    >>> tmc(lookup([0.0, 1.0, 1.5, 4.0]), 2, [(0, 1), (1, 0)]).tolist()
    [1.75, 2.25]
    """
    return np.asarray(marginals(ask, players, orders, tolerance).mean(axis=0))


def settled(means: NDArray[np.float64], convergence_tol: float = 0.05) -> bool:
    """GTG's rule of convergence on the last ten running means, a row each: the distance of each from the newest,
    relative and averaged over the players, is at most `convergence_tol`.

    >>> settled(np.array([[1.01, 2.0], [1.0, 2.0]])), settled(np.array([[1.5, 2.0], [1.0, 2.0]]))
    (True, False)
    """
    newest = means[-1]
    return bool((np.abs(means - newest) / (np.abs(newest) + 1e-12)).mean(axis=1).max() <= convergence_tol)


def budget(players: int) -> tuple[int, int]:
    """The fewest and the most orders of GTG: max(30, n), and four fifths of 2ⁿ or the fewest, but never over 2ⁿ.

    >>> budget(3), budget(5), budget(10)
    ((30, 8), (30, 30), (30, 819))
    """
    fewest = max(30, players)
    return fewest, min(2**players, max(fewest, 4 * 2**players // 5))


def gtg(
    ask: Ask,
    players: int,
    rng: np.random.Generator,
    *,
    round_tol: float = 0.001,
    within_tol: float = 0.001,
    convergence_tol: float = 0.05,
    most: int | None = None,
) -> Values:
    """GTG-Shapley: the mean marginal over guided sweeps until the means settle or `most` orders were walked.

    All zero where |v(N) − v(∅)| is at most `round_tol`; an order is walked until v(prefix) is within `within_tol` of
    v(N).

    >>> from fedcoast.methods.coalition.games import lookup
    >>> gtg(lookup([0.0, 1.0, 1.5, 4.0]), 2, np.random.default_rng(0)).tolist()
    [1.75, 2.25]
    """
    full, empty = ask([everyone(players), 0])
    if abs(full - empty) <= round_tol:
        return np.zeros(players)
    fewest, usual = budget(players)
    total, count, means = np.zeros(players), 0, np.zeros((0, players))
    while count < (usual if most is None else most):
        if count > fewest and settled(means, convergence_tol):
            break
        rows = marginals(ask, players, guided_orders(players, rng), within_tol)
        sums = total + rows.cumsum(axis=0)
        means = np.concatenate([means, sums / np.arange(count + 1, count + len(rows) + 1)[:, np.newaxis]])[-_LAST:]
        total, count = sums[-1], count + len(rows)
    return np.asarray(means[-1])


def positive_part(values: Values, gain: float) -> Values:
    """GTG as its co-author's code reports it: scaled so that the non-negative values add up to the gain of the game
    (the negative ones, where it lost). It gives up that all of them add up to it.

    >>> positive_part(np.array([3.0, 1.0, -2.0]), gain=2.0).round(6).tolist()
    [1.5, 0.5, -1.0]
    """
    if gain >= 0:
        return values * (gain / (float(values[values >= 0].sum()) + 1e-9))
    return values * (gain / (float(values[values < 0].sum()) - 1e-9))
