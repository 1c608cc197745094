"""Where the global model went, and how well a client agreed with it (CoAst, section 4.3).

U^(t,k) = Θ^{t+k} − Θ^t is the movement of the k rounds after t. Only its sign matters, so there are two forms:
from the votes of those rounds (integers, exact when training is in-loop) and from the models themselves.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedcoast.kernels.ballots import Floats, Signs
from fedcoast.kernels.bit_planes import PIECE, PlaneLayout, Planes, clear_bits, flat, set_bits, write_bits
from fedcoast.kernels.compiling import WORTHWHILE, kernels
from fedcoast.kernels.threads import ALONE, ThreadPool

Votes = NDArray[np.int32]

_PIECE = 1 << 18  # entries, a multiple of 64


def votes(ballots: Iterable[Signs]) -> Votes:
    """V = Σ_i Δ̃_i, the integer votes of one round; at least one ballot.

    >>> votes([np.array([1, 0, -1], np.int8), np.array([1, -1, 1], np.int8)]).tolist()
    [2, -1, 0]
    """
    rest = iter(ballots)
    total = next(rest).astype(np.int32)
    for one in rest:
        total += one
    return total


def movement(models: Sequence[Floats], ulps: float) -> Signs:
    """sgn(Θ^{t+k} − Θ^t), ignoring float rounding; `models` are Θ^t, Θ^{t+1}, …, Θ^{t+k} of one tensor.

    Averaging N equal numbers need not return the number, and moves that cancel leave a residue. Neither is
    movement: what differs by at most `ulps` units in the last place of the largest value that the entry had
    in the window counts as standing still.

    >>> theta = np.float32([0.1, 0.1])
    >>> moved = theta + np.float32([0.01, 2 * np.spacing(np.float32(0.1))])
    >>> movement([theta, moved], ulps=4).tolist(), movement([theta, moved], ulps=0).tolist()
    ([1, 0], [1, 1])
    """
    window = [model.ravel() for model in models]
    with np.errstate(over="ignore"):  # the distance of two huge numbers is infinite, and its sign right
        result = np.sign(window[-1] - window[0]).astype(np.int8)
    if ulps > 0:
        result[_still(window, ulps)] = 0
    return result


def movement_planes(
    models: Sequence[Sequence[Floats]],
    ulps: float,
    plane_layout: PlaneLayout,
    threads: ThreadPool = ALONE,
    extents: Sequence[Sequence[float]] | None = None,
) -> Planes:
    """The movement of every layer; `models` are whole models, each a list of its layers, with their extents if known.

    A unit in the last place grows with the number: what moves by more than those of the largest number of the layer
    has moved, and only the few that move by less need units of their own.
    """
    planes = plane_layout.empty_planes()
    largest = np.max([extent(model) for model in models] if extents is None else extents, axis=0)
    large = sum(plane_layout.sizes) >= WORTHWHILE
    pieces = [
        ([flat(layer)[at : at + _PIECE] for layer in layers], into[:, at // 64 : (at + _PIECE) // 64], most)
        for layers, into, most in zip(zip(*models, strict=True), plane_layout.layers(planes), largest, strict=True)
        for at in range(0, layers[0].size, _PIECE)
    ]

    def write(part: int) -> None:
        for window, into, most in pieces[part :: threads.threads]:
            number = window[0].dtype.type
            with np.errstate(over="ignore"):
                unit = number(ulps * _unit(np.array(most, number)))
            near = _step(window[-1], window[0], unit, into, kernels(number.__name__) if large else None)
            if near.size:
                still = near[_still([model[near] for model in window], ulps)]
                clear_bits(into[0], still)
                clear_bits(into[1], still)

    threads.map(write, range(threads.threads))
    return planes


def extent(model: Sequence[Floats]) -> list[float]:
    """The largest |Θ| of each layer."""
    pieces = ((layer.reshape(-1)[at : at + PIECE] for at in range(0, layer.size, PIECE)) for layer in model)
    return [float(max(max(piece.max(), -piece.min()) for piece in of_layer)) for of_layer in pieces]


def _step(last: Floats, first: Floats, unit: Any, into: Planes, code: Any) -> NDArray[np.intp]:
    """Write the signs of last − first, and return where it is not zero and not above `unit`."""
    up, down = into
    if code is not None:
        near = np.empty_like(up)
        _, some = code.sweep(last, first, unit.dtype.type(0), unit, False, up, down, near, np.empty(0, last.dtype))
        return set_bits(near) if some else np.empty(0, np.intp)
    with np.errstate(over="ignore"):
        distance = last - first
    rises, falls = distance > 0, distance < 0
    write_bits(up, 0, rises)
    write_bits(down, 0, falls)
    return np.flatnonzero((rises | falls) & (np.abs(distance) <= unit))


def _still(window: Sequence[Floats], ulps: float) -> NDArray[np.bool]:
    """Which entries move by at most `ulps` units in the last place of the largest value that they had."""
    with np.errstate(over="ignore"):
        scale = np.max([np.abs(model) for model in window], axis=0)
        return np.asarray(np.abs(window[-1] - window[0]) <= ulps * _unit(scale))


def _unit(values: Floats) -> Floats:
    """The unit in the last place; NumPy has an infinite one for the largest of all numbers."""
    return np.asarray(np.spacing(np.minimum(values, np.nextafter(np.finfo(values.dtype).max, values.dtype.type(0)))))


def agreement(signal: Signs, reference: Signs) -> int:
    """Σ_h signal[h]·reference[h], an exact integer: agreeing entries minus opposing ones.

    >>> agreement(np.array([1, -1, 1, 0], np.int8), np.array([1, 1, 1, -1], np.int8))
    1
    """
    return int(np.multiply(signal, reference).sum(dtype=np.int64))
