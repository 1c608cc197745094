"""From scores to shares that add up to exactly 1, and from shares to whole cents that add up to a budget.

Scores become weights (a rule), weights become shares (`split`, exact fractions), shares become whole units
(`apportion`). Everything after the weights is integer arithmetic: no cent is lost to rounding or invented by it, and
the same scores give the same cents on every machine.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from fractions import Fraction

from fedcoast.errors import BadSetting
from fedcoast.stats.ranking import average_ranks


def proportional(scores: Sequence[Fraction]) -> list[Fraction]:
    """w_i = max(0, p_i).

    >>> proportional([Fraction(3), Fraction(-1), Fraction(1)]) == [3, 0, 1]
    True
    """
    return [max(Fraction(0), score) for score in scores]


def softmax(scores: Sequence[Fraction], temperature: float) -> list[Fraction]:
    """w_i = exp(p_i / (T·max|p|)): the best client's weight is e^(1/T) times that of a client with score 0.

    Scores are measured in units of the largest, so that T means the same for every method. A small T gives nearly
    all to the best, a large one pays all equally.

    >>> [float(weight) for weight in softmax([Fraction(1000), Fraction(0)], temperature=math.inf)]
    [1.0, 1.0]
    """
    largest = max(map(abs, scores), default=Fraction(0)) or Fraction(1)
    best = max(scores, default=Fraction(0))
    return [Fraction(math.exp(float((score - best) / largest) / temperature)) for score in scores]


def by_rank(scores: Sequence[Fraction]) -> list[Fraction]:
    """w_i = N + 1 − r_i: the worst of N weighs 1, the best N; who ties shares the mean.

    >>> by_rank([Fraction(7), Fraction(5), Fraction(5)]) == [3, Fraction(3, 2), Fraction(3, 2)]
    True
    """
    order = {score: place for place, score in enumerate(sorted(set(scores)))}  # exact, unlike the scores as floats
    ranks = average_ranks([float(order[score]) for score in scores])
    return [len(scores) + 1 - Fraction(float(rank)) for rank in ranks]


def split(weights: Sequence[Fraction], floor: Fraction, cap: Fraction) -> list[Fraction]:
    """Shares s_i = min(cap, max(floor, λ·w_i)) with the one λ for which they add up to exactly 1.

    What a cap takes goes to the others in proportion to their weights, and so does what a floor costs them. Where all
    who have a weight stand at the cap, the rest is for those without, in equal parts.

    >>> [str(share) for share in split([Fraction(8), Fraction(1), Fraction(1)], Fraction(0), Fraction(1, 2))]
    ['1/2', '1/4', '1/4']
    """
    _check_bounds(len(weights), floor, cap)
    # Σ s(λ) grows with λ in straight pieces; its corners are where a client leaves its floor or meets its cap.
    corners = sorted({bound / weight for weight in weights if weight for bound in (floor, cap)} | {Fraction(0)})
    last = bisect_left(
        corners, Fraction(1), hi=len(corners) - 1, key=lambda rate: _added(_bounded(weights, rate, floor, cap))
    )
    rate = corners[last]
    shares = _bounded(weights, rate, floor, cap)
    short = 1 - _added(shares)
    if short > 0:
        idle = weights.count(Fraction(0))
        return [share if weight else share + short / idle for share, weight in zip(shares, weights, strict=True)]
    rising = [floor < rate * weight <= cap for weight in weights]  # on the piece that ends at this corner
    free = _added(weight for weight, rises in zip(weights, rising, strict=True) if rises)
    slope = -short / free if free else Fraction(0)
    return [
        share - slope * weight if rises else share for share, weight, rises in zip(shares, weights, rising, strict=True)
    ]


def apportion(shares: Sequence[Fraction], units: int) -> list[int]:
    """Whole units that add up to exactly `units`: ⌊s_i·units⌋, and what is left to the largest remainders, one each.

    Equal remainders go by place, the first first; so two clients with equal shares may differ by one unit.

    >>> apportion([Fraction(1, 3)] * 3, 100)
    [34, 33, 33]
    """
    if _added(shares) != 1:
        raise BadSetting(f"shares must add up to exactly 1; got {_added(shares)}")
    exact = [share * units for share in shares]
    whole = [math.floor(value) for value in exact]
    left = units - sum(whole)
    for place in sorted(range(len(shares)), key=lambda place: (whole[place] - exact[place], place))[:left]:
        whole[place] += 1
    return whole


def _check_bounds(count: int, floor: Fraction, cap: Fraction) -> None:
    if count < 1:
        raise BadSetting("there are no clients to share among; shares need at least one")
    if not 0 <= floor <= Fraction(1, count):
        raise BadSetting(f"floor must lie between 0 and 1/{count}, an equal share of {count}; got {float(floor):g}")
    if not Fraction(1, count) <= cap:
        raise BadSetting(f"cap must be at least 1/{count}, or {count} clients leave some; got {float(cap):g}")


def _added(parts: Iterable[Fraction]) -> Fraction:
    return sum(parts, Fraction(0))


def _bounded(weights: Sequence[Fraction], rate: Fraction, floor: Fraction, cap: Fraction) -> list[Fraction]:
    return [min(cap, max(floor, rate * weight)) for weight in weights]
