"""What CoAst is timed against: the limit of the machine, the server's own work, other methods, and the naive way.

Models are lists of flat float32 layers. What says "in place" makes nothing as large as a layer; the naive ones are
written as one would first write them, allocations and all.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Layers = Sequence[NDArray[np.float32]]

PIECE = 1 << 15
KEEP = 0.10


@cache
def _one_pass() -> Callable[..., float]:
    import numba

    @numba.njit(fastmath=True)  # without it the sum cannot be vectorised, and every ratio would look four times better
    def one_pass(local: Any, start: Any) -> Any:
        total = np.float32(0)
        for place in range(local.size):
            total += abs(local[place] - start[place])
        return total

    return one_pass  # type: ignore[no-any-return]


def limit(start: Layers, local: Layers) -> float:
    """One pass over start and upload: Σ|θ − Θ|, 8 bytes a parameter. Nothing that looks at both can be faster."""
    return sum(_one_pass()(after, before) for before, after in zip(start, local, strict=True))


def fedavg(total: Layers, local: Layers, weight: float) -> None:
    """total += weight · θ, in place: what a server does with an upload anyway."""
    product, share = np.empty(PIECE, np.float32), np.float32(weight)
    for into, layer in zip(total, local, strict=True):
        for at in range(0, layer.size, PIECE):
            piece = layer[at : at + PIECE]
            into[at : at + PIECE] += np.multiply(piece, share, out=product[: piece.size])


def cgsv(total: Layers, start: Layers, local: Layers) -> float:
    """CGSV's three looks at an upload, in place, in float32: its length, its part of the mean, its cosine with it."""
    move, product = np.empty((2, PIECE), np.float32)
    squares = both = 0.0
    for look in range(3):
        factor = np.float32(0.5 / (squares**0.5 + 1e-7))
        for into, before, after in zip(total, start, local, strict=True):
            for at in range(0, after.size, PIECE):
                part = slice(at, at + PIECE)
                update = np.subtract(after[part], before[part], out=move[: after[part].size])
                if look == 0:
                    squares += float(update @ update)
                elif look == 1:
                    into[part] += np.multiply(update, factor, out=product[: update.size])
                else:
                    both += float(update @ into[part])
    return both / (squares**0.5 + 1e-7)


def naive_numpy(start: Layers, local: Layers) -> list[NDArray[np.int8]]:
    ballots = []
    for before, after in zip(start, local, strict=True):
        update = after - before
        voters = max(1, int(update.size * KEEP))
        threshold = np.partition(np.abs(update), update.size - voters)[update.size - voters]
        ballots.append(np.where(np.abs(update) >= threshold, np.sign(update), 0).astype(np.int8))
    return ballots


def naive_topk(start: Sequence[Any], local: Sequence[Any]) -> list[Any]:
    import torch

    ballots = []
    for before, after in zip(start, local, strict=True):
        update = after - before
        top = torch.topk(update.abs(), max(1, int(update.numel() * KEEP))).indices
        ballot = torch.zeros(update.numel(), dtype=torch.int8)
        ballot[top] = torch.sign(update[top]).to(torch.int8)
        ballots.append(ballot)
    return ballots


def naive_kthvalue(start: Sequence[Any], local: Sequence[Any]) -> list[Any]:
    import torch

    ballots = []
    for before, after in zip(start, local, strict=True):
        update = after - before
        voters = max(1, int(update.numel() * KEEP))
        threshold = torch.kthvalue(update.abs(), update.numel() - voters + 1).values
        ballots.append(torch.where(update.abs() >= threshold, torch.sign(update), 0).to(torch.int8))
    return ballots
