"""Cooperative games and the values of their players.

A game of n players says what every coalition S is worth, v(S). A coalition is an integer whose bits are its members:
5 = 0b101 is players 0 and 2, 0 is the empty coalition, 2ⁿ − 1 the full one. A game has one of two forms:

    table   the 2ⁿ worths, in the order of the integers
    ask     a function from several coalitions to their worths, which it may compute together and cache

Values here are sums of marginals v(S∪i) − v(S), weighted by the size of S (semivalues): Shapley gives
every size the same weight, Banzhaf every coalition. Sums are exactly rounded, so players that add the same have the
same value, bit for bit.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedcoast.errors import BadSetting

Values = NDArray[np.float64]
Ask = Callable[[Sequence[int]], Sequence[float]]
Baseline = Literal["idle", "none"]


def everyone(players: int) -> int:
    """The coalition of all.

    >>> bin(everyone(3))
    '0b111'
    """
    return (1 << players) - 1


def members(coalition: int) -> tuple[int, ...]:
    """The members of a coalition, in order.

    >>> members(0b1011)
    (0, 1, 3)
    """
    return tuple(player for player in range(coalition.bit_length()) if coalition >> player & 1)


def players_of(table: ArrayLike) -> int:
    """How many players a table has.

    >>> players_of([0, 1, 1, 2])
    2
    """
    count = np.size(table)
    if np.ndim(table) != 1 or count.bit_count() != 1:
        raise BadSetting(f"a game of n players is a list of 2**n worths; got an array of shape {np.shape(table)}")
    return count.bit_length() - 1


def lookup(table: ArrayLike) -> Ask:
    """A table as a function to ask.

    >>> lookup([0.0, 1.0, 1.5, 4.0])([3, 1])
    [4.0, 1.0]
    """
    worths = np.asarray(table, dtype=np.float64)
    return lambda coalitions: [float(worths[coalition]) for coalition in coalitions]


def tabulate(ask: Ask, players: int) -> Values:
    """All 2ⁿ worths, asked for at once.

    >>> tabulate(lambda coalitions: [c.bit_count() ** 2 for c in coalitions], 2).tolist()
    [0.0, 1.0, 1.0, 4.0]
    """
    return np.asarray(ask(range(1 << players)), dtype=np.float64)


def semivalue(table: ArrayLike, weights: Sequence[float]) -> Values:
    """φ_i = Σ_{S∌i} p(|S|)·[v(S∪i) − v(S)] with the weights p(0), …, p(n−1).

    >>> semivalue([0.0, 1.0, 1.5, 4.0], weights=[1.0, 0.0]).tolist()  # what each is worth alone
    [1.0, 1.5]
    """
    worths = np.asarray(table, dtype=np.float64)
    players = players_of(worths)
    coalitions = np.arange(len(worths))
    weight = np.asarray(weights, dtype=np.float64)[np.bitwise_count(coalitions[: len(worths) // 2])]
    values = np.zeros(players)
    for player in range(players):
        without = _without(coalitions, player)
        marginals = worths[without | 1 << player] - worths[without]
        values[player] = math.fsum(weight * marginals)
    return values


def _without(coalitions: NDArray[np.int64], player: int) -> NDArray[np.int64]:
    """The coalitions without a player, listed as those of the other players would be: sizes stand in one order."""
    others = coalitions[: len(coalitions) // 2]
    low = others & ((1 << player) - 1)
    return (others ^ low) << 1 | low


def shapley(table: ArrayLike) -> Values:
    """Shapley's value: p(k) = 1 / (n·C(n−1, k)), equal weights for every place in the order. It sums to v(N) − v(∅).

    >>> shapley([0.0, 1.0, 1.5, 4.0]).tolist()
    [1.75, 2.25]
    """
    players = players_of(table)
    return semivalue(table, [1 / (players * math.comb(players - 1, size)) for size in range(players)])


def banzhaf(table: ArrayLike) -> Values:
    """Banzhaf's value: p(k) = 2^{−(n−1)}, equal weights for all coalitions (Wang, Jia, "Data Banzhaf", AISTATS 2023).

    >>> banzhaf([0.0, 1.0, 1.5, 4.0]).tolist()
    [1.75, 2.25]
    """
    players = players_of(table)
    return semivalue(table, [0.5 ** (players - 1)] * players)


def beta_weights(players: int, alpha: float, beta: float) -> list[float]:
    """p(k) = B(k+β, n−k−1+α) / B(α, β); Σ_k C(n−1, k)·p(k) = 1, and α > β favours small coalitions.

    >>> [round(weight, 6) for weight in beta_weights(3, alpha=4, beta=1)]
    [0.666667, 0.133333, 0.066667]
    """
    return [
        math.exp(_log_beta(size + beta, players - size - 1 + alpha) - _log_beta(alpha, beta)) for size in range(players)
    ]


def beta_shapley(table: ArrayLike, alpha: float, beta: float) -> Values:
    """Beta Shapley (Kwon, Zou, AISTATS 2022); (1, 1) is Shapley's value.

    >>> beta_shapley([0.0, 1.0, 1.5, 4.0], alpha=1, beta=1).round(12).tolist()
    [1.75, 2.25]
    """
    return semivalue(table, beta_weights(players_of(table), alpha, beta))


def leave_one_out(ask: Ask, players: int) -> Values:
    """φ_i = v(N) − v(N∖i).

    >>> leave_one_out(lookup([0.0, 1.0, 1.5, 4.0]), 2).tolist()
    [2.5, 3.0]
    """
    full = everyone(players)
    worths = ask([full, *(full ^ 1 << player for player in range(players))])
    return worths[0] - np.asarray(worths[1:], dtype=np.float64)


def individual(ask: Ask, players: int, baseline: Baseline = "idle") -> Values:
    """φ_i = v({i}) − v(∅), or v({i}) itself without the baseline.

    >>> individual(lookup([0.5, 1.0, 1.5, 4.0]), 2).tolist()
    [0.5, 1.0]
    """
    alone = [1 << player for player in range(players)]
    if baseline == "none":
        return np.asarray(ask(alone), dtype=np.float64)
    worths = ask([0, *alone])
    return np.asarray(worths[1:], dtype=np.float64) - worths[0]


def random_coalitions(players: int, count: int, rng: np.random.Generator) -> list[int]:
    """`count` of the 2ⁿ coalitions, each player in or out by the toss of a coin.

    >>> sorted(set(random_coalitions(2, 100, np.random.default_rng(0))))
    [0, 1, 2, 3]
    """
    tosses = rng.integers(2, size=(count, players)).tolist()
    return [sum(side << player for player, side in enumerate(row)) for row in tosses]


def banzhaf_reuse(ask: Ask, players: int, drawn: Sequence[int]) -> Values:
    """Banzhaf's value from coalitions drawn uniformly, each used for every player (maximum sample reuse).

    φ̂_i = mean of v(S) with i − mean of v(S) without i; NaN where one side was not drawn.

    >>> banzhaf_reuse(lookup([0.0, 1.0, 1.5, 4.0]), 2, drawn=[0, 1, 2, 3]).tolist()
    [1.75, 2.25]
    """
    worths = np.asarray(ask(drawn), dtype=np.float64)
    values = np.full(players, np.nan)
    for player in range(players):
        inside = np.array([coalition >> player & 1 for coalition in drawn], dtype=bool)
        if inside.any() and not inside.all():
            values[player] = worths[inside].mean() - worths[~inside].mean()
    return values


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
