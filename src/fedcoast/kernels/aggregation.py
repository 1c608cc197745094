"""How a server may aggregate one tensor of several clients: the mean, CoAst's pruned mean, and a sparse mean.

Pruned (in-loop) aggregation is the paper's training rule: Θ^t = Θ^{t−1} + (α/N)·V^t with the integer votes
V^t of the round. An entry without votes keeps its exact value.
"""

import sys
from collections.abc import Sequence
from typing import Literal

import numpy as np

from fedcoast.kernels.ballots import Floats
from fedcoast.kernels.movement import votes
from fedcoast.kernels.top_share import quick_ballot

Step = float | Literal["avg"]


def mean(tensors: Sequence[Floats], weights: Sequence[float] | None = None) -> Floats:
    """Σ_i w_i θ_i / Σ_i w_i in float64, given back in the tensors' own type; uniform without weights.

    >>> mean([np.float32([1, 2]), np.float32([3, 6])], weights=[3, 1]).tolist()
    [1.5, 3.0]
    """
    shares = np.ones(len(tensors)) if weights is None else np.asarray(weights, dtype=np.float64)
    total = np.zeros(tensors[0].shape, dtype=np.float64)
    for tensor, share in zip(tensors, shares / shares.sum(), strict=True):
        total += tensor * np.float64(share)
    return total.astype(tensors[0].dtype)


def adaptive_step(update: Floats, keep: float) -> float:
    """α of the paper's "avg" ablation: the mean |δ| over the entries of this tensor that vote.

    >>> adaptive_step(np.array([0.3, -0.1, 0.0, 0.0]), keep=0.5)
    0.2
    """
    return mean_size(update.ravel()[quick_ballot(update, keep) != 0])


def mean_size(voting: Floats) -> float:
    """The mean |δ| of these updates, 0 if there are none.

    >>> mean_size(np.array([0.3, -0.1]))
    0.2
    """
    with np.errstate(over="ignore"):
        step = float(np.abs(voting).mean(dtype=np.float64)) if voting.size else 0.0
    return min(step, sys.float_info.max)  # an infinite step times an entry that does not vote would be NaN


def pruned_mean(start: Floats, updates: Sequence[Floats], keep: float, step: Step) -> Floats:
    """Θ^t of one tensor: start + (α/N)·Σ_i Δ̃_i, or with each client's own α for "avg".

    >>> pruned_mean(np.array([0.5, 0.5]), [np.array([0.3, 0.1]), np.array([0.2, -0.9])], 0.5, 0.02).tolist()
    [0.51, 0.49]
    """
    ballots = [quick_ballot(update, keep) for update in updates]
    if step == "avg":
        sizes = [adaptive_step(update, keep) for update in updates]
        move = mean([size * one for size, one in zip(sizes, ballots, strict=True)])
    else:
        move = votes(ballots) * (step / len(updates))
    moved = start.ravel() + move.astype(start.dtype)
    return np.where(move == 0, start.ravel(), moved).reshape(start.shape)  # −0.0 + 0.0 would be +0.0


def sparse_upload(start: Floats, local: Floats, keep: float) -> Floats:
    """The upload where its largest updates are, the start model elsewhere: pruned, but not clipped to a step.

    >>> sparse_upload(np.array([0.5, 0.5]), np.array([0.8, 0.6]), keep=0.5).tolist()
    [0.8, 0.5]
    """
    with np.errstate(over="ignore"):
        chosen = quick_ballot(local - start, keep) != 0
    return np.where(chosen.reshape(start.shape), local, start)


def sparse_mean(start: Floats, tensors: Sequence[Floats], keep: float) -> Floats:
    """Θ^t of one tensor: the mean of the sparse uploads; an entry in no upload keeps its exact value.

    >>> sparse_mean(np.array([0.5, 0.5]), [np.array([0.8, 0.6]), np.array([0.5, 0.25])], 0.5).tolist()
    [0.65, 0.375]
    """
    uploads = [sparse_upload(start, tensor, keep) for tensor in tensors]
    untouched = np.logical_and.reduce([upload == start for upload in uploads])
    return np.where(untouched, start, mean(uploads))
