"""Where the global model went, and how well a client agreed with it (CoAst, section 4.3).

U^(t,k) = Θ^{t+k} − Θ^t is the drift of the k rounds after t. Only its sign matters, so two forms are kept:
from the votes of those rounds (integers, exact when training is in-loop) and from the models themselves.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from fedcoast.formulas.hands import ALONE, Hands
from fedcoast.formulas.planes import Planes, Seating, write_bits
from fedcoast.formulas.ternary import Floats, Signs

Votes = NDArray[np.int32]

_PIECE = 1 << 15  # entries of which several intermediate results stay in the cache


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


def vote_drift(rounds: Sequence[Votes]) -> Signs:
    """sgn Σ_e V^e over the rounds of the window.

    >>> vote_drift([np.array([2, -1, 0], np.int32), np.array([-2, -1, 3], np.int32)]).tolist()
    [0, -1, 1]
    """
    return np.sign(np.sum(rounds, axis=0, dtype=np.int64)).astype(np.int8)


def movement(models: Sequence[Floats], ulps: float) -> Signs:
    """sgn(Θ^{t+k} − Θ^t), blind to float rounding; `models` are Θ^t, Θ^{t+1}, …, Θ^{t+k} of one tensor.

    Averaging N equal numbers need not return the number, and moves that cancel leave a residue. Neither is
    movement: what differs by at most `ulps` units in the last place of the largest value that the entry had
    in the window counts as standing still.

    >>> theta = np.float32([0.1, 0.1])
    >>> moved = theta + np.float32([0.01, 2 * np.spacing(np.float32(0.1))])
    >>> movement([theta, moved], ulps=4).tolist(), movement([theta, moved], ulps=0).tolist()
    ([1, 0], [1, 1])
    """
    up, down = _moved([model.ravel() for model in models], ulps)
    return np.asarray(up.view(np.int8) - down.view(np.int8))


def movement_planes(models: Sequence[Sequence[Floats]], ulps: float, seating: Seating, hands: Hands = ALONE) -> Planes:
    """The movement of every layer; `models` are whole models, each a list of its layers."""
    planes = seating.silence()
    pieces = [
        ([layer.reshape(-1)[at : at + _PIECE] for layer in layers], at, into)
        for layers, into in zip(zip(*models, strict=True), seating.layers(planes), strict=True)
        for at in range(0, layers[0].size, _PIECE)
    ]

    def write(part: int) -> None:
        for window, at, (up, down) in pieces[part :: hands.threads]:
            rises, falls = _moved(window, ulps)
            write_bits(up, at, rises)
            write_bits(down, at, falls)

    hands.map(write, range(hands.threads))
    return planes


def _moved(window: Sequence[Floats], ulps: float) -> tuple[NDArray[np.bool], NDArray[np.bool]]:
    """Where an entry rose, and where it fell."""
    with np.errstate(over="ignore"):  # the distance of two huge numbers is infinite, and its sign right
        distance = window[-1] - window[0]
        if ulps == 0:
            return distance > 0, distance < 0
        scale = np.abs(window[0])
        size = np.empty_like(scale)
        for model in window[1:]:
            np.maximum(scale, np.abs(model, out=size), out=scale)
        # The spacing is dear, and never above ε · scale: few need it.
        limits = np.finfo(scale.dtype)
        bound = np.multiply(scale, limits.eps, out=size)
        np.maximum(bound, limits.smallest_subnormal, out=bound)
        bound *= ulps
        up, down = distance > bound, distance < np.negative(bound, out=bound)
        near = np.flatnonzero((distance != 0) & ~up & ~down)
        moving = near[np.abs(distance[near]) > ulps * np.spacing(scale[near])]
        up[moving], down[moving] = distance[moving] > 0, distance[moving] < 0
    return up, down


def agreement(claim: Signs, drift: Signs) -> int:
    """Σ_h claim[h]·drift[h], an exact integer: agreeing entries minus opposing ones.

    >>> agreement(np.array([1, -1, 1, 0], np.int8), np.array([1, 1, 1, -1], np.int8))
    1
    """
    return int(np.multiply(claim, drift).sum(dtype=np.int64))
