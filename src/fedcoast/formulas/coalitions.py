"""Coalition models: what the global model would have become, had only some of the clients answered.

    θ_S = Θ + Σ_{i∈S} w_i·(θ_i − Θ) / D,    D = Σ_{i∈S} w_i  ("renormalise")  or  Σ_{i∈N} w_i  ("fixed")

Renormalised, θ_S is the mean of the members' models, as a server would have taken it, and a client that changes nothing
waters the others down. With the fixed denominator it has no effect at all.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedcoast.formulas.games import members

Array = NDArray[Any]
Denominator = Literal["renormalise", "fixed"]


def neighbours_first(coalitions: Iterable[int]) -> list[int]:
    """In an order in which each coalition has much of the one before: that of the tuples of members.

    >>> neighbours_first([0b110, 0b001, 0b111, 0b011])
    [1, 3, 7, 6]
    """
    return sorted(coalitions, key=members)


def divisor(weights: Sequence[float], coalition: int, denominator: Denominator) -> float:
    """D, for weights of which the largest is 1.

    >>> divisor([1.0, 0.5], 0b10, "renormalise"), divisor([1.0, 0.5], 0b10, "fixed")
    (0.5, 1.5)
    """
    whose = range(len(weights)) if denominator == "fixed" else members(coalition)
    return math.fsum(weights[player] for player in whose)


def scaled(weights: Sequence[float]) -> list[float]:
    """The weights with the largest at 1; only their ratios matter.

    >>> scaled([4, 3, 1])
    [1.0, 0.75, 0.25]
    """
    largest = max(weights, default=0.0)
    return [float(weight / largest) if largest else 0.0 for weight in weights]


def merge(
    start: Mapping[str, Array],
    local: Sequence[Mapping[str, Array]],
    weights: Sequence[float],
    coalitions: Iterable[int],
    denominator: Denominator = "renormalise",
) -> Iterator[dict[str, Array]]:
    """θ_S of each of these coalitions, one after the other, **in the same memory**: use it before asking for the next.

    The weighted sum of a coalition's first k members is kept for each k, and the next coalition adds only what it does
    not share with the one before: in the order of `neighbours_first` all 2ᴺ of them cost as many additions of one
    update, N sums and one model. A sum always runs in float64 over the members in order, so the result depends on the
    coalition alone, whatever was asked before and whoever asks.

    Float entries (buffers too) follow the formula; of others θ_S has the largest among the members. A coalition without
    weight leaves the model where it was.

    >>> start, local = {"w": np.zeros(2)}, [{"w": np.array([2.0, 0.0])}, {"w": np.array([0.0, 4.0])}]
    >>> [model["w"].tolist() for model in merge(start, local, [1.0, 1.0], [0b01, 0b11])]
    [[2.0, 0.0], [1.0, 2.0]]
    """
    weights = scaled(weights)
    model = {name: np.array(array) for name, array in start.items()}
    counters = [name for name, array in start.items() if not _is_float(array)]
    sums: list[dict[str, Array]] = []  # of the first member, the first two, …
    before: tuple[int, ...] = ()
    for coalition in coalitions:
        now = members(coalition)
        shared = _shared(before, now)
        for place in range(shared, len(now)):
            if place == len(sums):
                sums.append(_zeros(start))
            _add(sums, place, start, local[now[place]], weights[now[place]])
        before = now
        _put(model, start, sums[len(now) - 1] if now else {}, divisor(weights, coalition, denominator))
        for name in counters if now else ():
            model[name][...] = np.maximum.reduce([local[player][name] for player in now])
        yield model


def replay(
    origin: Mapping[str, Array],
    legs: Iterable[Mapping[int, tuple[float, Mapping[str, Array]]]],
    coalition: int,
    denominator: Denominator = "renormalise",
) -> dict[str, Array]:
    """θ_S after many rounds, had only S answered and done what it did: Θ^0 + Σ_legs Σ_{i∈S} w_i·D_i / D.

    A leg is rounds in which the same clients took part with the same weights w_i; D_i is the sum of client i's updates
    over them. What a leg's clients do not move stays, and so does everything in a leg with no member.

    >>> leg = {0: (1.0, {"w": np.array([2.0])}), 1: (1.0, {"w": np.array([4.0])})}
    >>> replay({"w": np.array([1.0])}, [leg], 0b11)["w"].tolist()
    [4.0]
    """
    sums = _zeros(origin)
    for leg in legs:
        present = [player for player in sorted(leg) if coalition >> player & 1]
        share = math.fsum(leg[player][0] for player in (leg if denominator == "fixed" else present))
        for player in present if share else ():
            weight, moved = leg[player]
            for name, update in moved.items():
                sums[name] += update * (weight / share)
    model = {name: np.array(array) for name, array in origin.items()}
    _put(model, origin, sums, 1.0)
    return model


def _put(model: dict[str, Array], start: Mapping[str, Array], sums: Mapping[str, Array], share: float) -> None:
    """start + sums / share into the model's own memory and types."""
    with np.errstate(over="ignore", invalid="ignore"):
        for name, array in start.items():
            if name in sums and share:
                np.add(sums[name] / share, array, out=model[name], casting="same_kind")
            else:
                model[name][...] = array


def _add(sums: list[dict[str, Array]], place: int, start: Mapping[str, Array], local: Any, weight: float) -> None:
    """sums[place] = sums[place − 1] + w·(θ − Θ)"""
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows makes a model no utility has a number for
        for name, total in sums[place].items():
            np.subtract(local[name], start[name], out=total, dtype=np.float64)
            total *= weight
            if place:
                total += sums[place - 1][name]


def _zeros(start: Mapping[str, Array]) -> dict[str, Array]:
    return {name: np.zeros(array.shape) for name, array in start.items() if _is_float(array)}


def _shared(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    """How many members at the beginning are the same."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


def _is_float(array: Array) -> bool:
    return bool(np.issubdtype(array.dtype, np.floating))
