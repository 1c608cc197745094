"""Coalition models: the global model as it would be if only some of the clients had answered.

    θ_S = Θ + Σ_{i∈S} w_i·(θ_i − Θ) / D,    D = Σ_{i∈S} w_i  ("renormalise")  or  Σ_{i∈N} w_i  ("fixed")

Renormalised, θ_S is the mean of the members' models, as a server would compute it, and a client that changes nothing
dilutes the others. With the fixed denominator such a client has no effect.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedcoast.methods.coalition.games import members

Array = NDArray[Any]
Denominator = Literal["renormalise", "fixed"]

PIECE = 1 << 13  # entries whose sums stay in the nearest cache


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

    The sum over the members runs in float64, piece by piece, and needs the memory of one model. It runs in the order
    of the members, so the result depends on the coalition alone.

    Float entries (buffers too) follow the formula; of others θ_S has the largest among the members. A coalition without
    weight leaves the model where it was.

    >>> start, local = {"w": np.zeros(2)}, [{"w": np.array([2.0, 0.0])}, {"w": np.array([0.0, 4.0])}]
    >>> [model["w"].tolist() for model in merge(start, local, [1.0, 1.0], [0b01, 0b11])]
    [[2.0, 0.0], [1.0, 2.0]]
    """
    weights = scaled(weights)
    model = {name: np.array(array, order="C") for name, array in start.items()}
    for coalition in coalitions:
        who = members(coalition)
        share = divisor(weights, coalition, denominator)
        for name, array in start.items():
            theirs = [local[player][name] for player in who]
            if _is_float(array) and who and share:
                _add_weighted(model[name], array, theirs, [weights[player] for player in who], share)
            else:
                model[name][...] = np.maximum.reduce(theirs) if who and not _is_float(array) else array
        yield model


def replay(
    origin: Mapping[str, Array],
    cohorts: Iterable[Mapping[int, tuple[float, Mapping[str, Array]]]],
    coalition: int,
    denominator: Denominator = "renormalise",
) -> dict[str, Array]:
    """θ_S after many rounds, if only S had answered, with the same updates: Θ^0 + Σ_cohorts Σ_{i∈S} w_i·D_i / D.

    A cohort stands for the rounds in which the same clients took part with the same weights w_i; D_i is the sum of
    client i's updates over them. A cohort without a member of S changes nothing.

    >>> cohort = {0: (1.0, {"w": np.array([2.0])}), 1: (1.0, {"w": np.array([4.0])})}
    >>> replay({"w": np.array([1.0])}, [cohort], 0b11)["w"].tolist()
    [4.0]
    """
    sums = _zeros(origin)
    for cohort in cohorts:
        present = [player for player in sorted(cohort) if coalition >> player & 1]
        share = math.fsum(cohort[player][0] for player in (cohort if denominator == "fixed" else present))
        for player in present if share else ():
            weight, moved = cohort[player]
            for name, update in moved.items():
                sums[name] += update * (weight / share)
    model = {name: np.array(array) for name, array in origin.items()}
    _put(model, origin, sums, 1.0)
    return model


def _put(model: dict[str, Array], start: Mapping[str, Array], sums: Mapping[str, Array], share: float) -> None:
    """Write start + sums / share into the model's own memory and types."""
    with np.errstate(over="ignore", invalid="ignore"):
        for name, array in start.items():
            if name in sums and share:
                np.add(sums[name] / share, array, out=model[name], casting="same_kind")
            else:
                model[name][...] = array


def _add_weighted(out: Array, start: Array, local: Sequence[Array], weights: Sequence[float], share: float) -> None:
    """start + Σ w·(θ − start) / share of one layer, into `out`."""
    into, base, flat = out.reshape(-1), start.reshape(-1), [one.reshape(-1) for one in local]
    room = np.empty((3, min(PIECE, into.size)))
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows makes a model no utility has a number for
        for at in range(0, into.size, PIECE):
            part = slice(at, at + PIECE)
            before, move, total = room[:, : into[part].size]
            np.copyto(before, base[part])
            for place, (one, weight) in enumerate(zip(flat, weights, strict=True)):
                np.copyto(move, one[part])
                move -= before
                move *= weight
                if place:
                    total += move
                else:
                    np.copyto(total, move)
            total /= share
            np.add(total, before, out=into[part], casting="same_kind")


def _zeros(start: Mapping[str, Array]) -> dict[str, Array]:
    return {name: np.zeros(array.shape) for name, array in start.items() if _is_float(array)}


def _is_float(array: Array) -> bool:
    return bool(np.issubdtype(array.dtype, np.floating))
