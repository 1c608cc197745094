"""Where the global model went, and how well a client agreed with it (CoAst, section 4.3).

U^(t,k) = Θ^{t+k} − Θ^t is the drift of the k rounds after t. Only its sign matters, so two forms are kept:
from the votes of those rounds (integers, exact when training is in-loop) and from the models themselves.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from fedcoast.formulas.ternary import Floats, Signs

Votes = NDArray[np.int32]


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
    flat = [model.ravel() for model in models]
    with np.errstate(over="ignore"):  # the distance of two huge numbers is infinite, and its sign right
        distance = flat[-1] - flat[0]
        result = np.sign(distance).astype(np.int8)
        if ulps > 0:
            scale = np.abs(flat[0])
            for model in flat[1:]:
                np.maximum(scale, np.abs(model), out=scale)
            result[_still(np.abs(distance), scale, ulps)] = 0
    return result


def _still(distance: Floats, scale: Floats, ulps: float) -> NDArray[np.intp]:
    """Where distance ≤ ulps · spacing(scale). The spacing is dear, and never above ε · scale: few need it."""
    limits = np.finfo(scale.dtype)
    bound = np.maximum(scale * limits.eps, limits.smallest_subnormal)
    bound *= ulps
    near = np.flatnonzero(distance <= bound)
    return near[distance[near] <= ulps * np.spacing(scale[near])]


def agreement(claim: Signs, drift: Signs) -> int:
    """Σ_h claim[h]·drift[h], an exact integer: agreeing entries minus opposing ones.

    >>> agreement(np.array([1, -1, 1, 0], np.int8), np.array([1, 1, 1, -1], np.int8))
    1
    """
    return int(np.multiply(claim, drift).sum(dtype=np.int64))
