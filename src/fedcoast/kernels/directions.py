"""Directions of updates compared: dot products, lengths and cosines, and the game that cosines make.

A vector is a stream of float64 pieces, as `chunks` cuts it from the layers of a model: sums are taken in float64
whatever the model's own type, and nothing larger than a piece is ever made. The cosine with a zero vector is 0.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from fedcoast.kernels.ballots import Floats

Doubles = NDArray[np.float64]

CHUNK = 8192  # below the length from which BLAS uses threads, whose number must not change a score
LARGEST = 1e140  # what is larger counts as this: its square, summed, must stay a number


def chunks(layers: Sequence[Floats], start: Sequence[Floats] | None = None) -> Iterator[Doubles]:
    """The layers, or their difference from `start`, flat, one piece at a time, **in the same memory**: use a piece
    before the next.

    >>> [piece.tolist() for piece in chunks([np.float32([3, 1]), np.float32([[5]])], [np.ones(2), np.ones((1, 1))])]
    [[2.0, 0.0], [4.0]]
    """
    pieces, below = np.empty((2, CHUNK))
    for place, layer in enumerate(layers):
        flat = layer.reshape(-1)
        base = None if start is None else start[place].reshape(-1)
        wide = flat.dtype == np.float64 or (base is not None and base.dtype == np.float64)
        for at in range(0, flat.size, CHUNK):
            part = slice(at, at + CHUNK)
            piece = pieces[: flat[part].size]
            np.copyto(piece, flat[part])
            if base is not None:  # both in float64 first: NumPy subtracts mixed types three times slower
                np.copyto(below[: piece.size], base[part])
                with np.errstate(over="ignore") if wide else nullcontext():
                    np.subtract(piece, below[: piece.size], out=piece)
            yield np.clip(piece, -LARGEST, LARGEST, out=piece) if wide else piece


def dot(first: Iterable[Doubles], second: Iterable[Doubles]) -> float:
    """⟨a, b⟩ of two vectors cut alike.

    >>> dot(chunks([np.array([1.0, 2.0])]), chunks([np.array([3.0, 4.0])]))
    11.0
    """
    return sum((float(a @ b) for a, b in zip(first, second, strict=True)), start=0.0)


def norm(vector: Iterable[Doubles]) -> float:
    """‖a‖₂.

    >>> norm(chunks([np.array([3.0]), np.array([[4.0]])]))
    5.0
    """
    return sqrt(sum((float(piece @ piece) for piece in vector), start=0.0))


def cosine(
    first: Iterable[Doubles], second: Iterable[Doubles], own: float | None = None, other: float | None = None
) -> float:
    """⟨a, b⟩ / (‖a‖·‖b‖), and 0 where one of them is zero; `own` and `other` are ‖a‖ and ‖b‖, where they are known.

    >>> cosine(chunks([np.array([1.0, 0.0])]), chunks([np.array([-2.0, 0.0])]))
    -1.0
    >>> cosine(chunks([np.array([1.0, 0.0])]), chunks([np.zeros(2)]))
    0.0
    """
    both = squares = other_squares = 0.0
    for a, b in zip(first, second, strict=True):
        both += float(a @ b)
        squares += float(a @ a) if own is None else 0.0
        other_squares += float(b @ b) if other is None else 0.0
    return _ratio(both, (sqrt(squares) if own is None else own) * (sqrt(other_squares) if other is None else other))


def accumulate(total: Sequence[Doubles], vector: Iterable[Doubles], factor: float) -> None:
    """Add factor·vector to the layers of `total`, in place.

    >>> total = [np.zeros(2), np.zeros((1, 1))]
    >>> accumulate(total, chunks([np.array([1.0, 2.0]), np.array([[3.0]])]), 0.5)
    >>> total[0].tolist(), total[1].tolist()
    ([0.5, 1.0], [[1.5]])
    """
    pieces, product = iter(vector), np.empty(CHUNK)
    for layer in total:
        flat = layer.reshape(-1)
        for at in range(0, flat.size, CHUNK):
            piece = next(pieces)
            flat[at : at + CHUNK] += np.multiply(factor, piece, out=product[: piece.size])


def row_cosines(rows: Doubles, reference: Doubles) -> Doubles:
    """The cosine of each row of a matrix with the same row of another.

    >>> row_cosines(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[3.0, 4.0], [1.0, 1.0]])).tolist()
    [0.6, 0.0]
    """
    both = (rows * reference).sum(axis=1)
    lengths = np.sqrt((rows**2).sum(axis=1)) * np.sqrt((reference**2).sum(axis=1))
    return np.array([_ratio(float(a), float(b)) for a, b in zip(both, lengths, strict=True)])


def gram(vectors: Sequence[Iterable[Doubles]]) -> Doubles:
    """All dot products ⟨u_i, u_j⟩ in one pass over the vectors side by side.

    >>> gram([chunks([np.array([1.0, 2.0])]), chunks([np.array([0.0, 1.0])])]).tolist()
    [[5.0, 2.0], [2.0, 1.0]]
    """
    table = np.zeros((len(vectors), len(vectors)))
    for pieces in zip(*vectors, strict=True):
        for i, a in enumerate(pieces):
            for j in range(i + 1):
                table[i, j] += float(a @ pieces[j])
    return np.tril(table) + np.tril(table, -1).T


def cosine_game(products: Doubles, weights: Sequence[float]) -> Doubles:
    """The Shapley values of v(S) = cos(u_S, u_N), u_S = Σ_{i∈S} a_i u_i, from the dot products of the u_i.

    All 2^N coalitions, as bit masks: that of S and client i is that of S with bit i set. (CGSV, its definition.)

    >>> cosine_game(np.eye(2), [0.5, 0.5]).round(6).tolist()
    [0.5, 0.5]
    """
    count = len(weights)
    share = np.asarray(weights, dtype=np.float64)
    scaled = products * share[:, None] * share[None, :]
    masks = np.arange(1 << count)
    members = (masks[:, None] >> np.arange(count)) & 1
    with_all = members @ scaled.sum(axis=1)
    squares = ((members @ scaled) * members).sum(axis=1)
    spread = members @ np.sqrt(np.maximum(np.diag(scaled), 0))
    squares[squares <= 1e-12 * spread**2] = 0  # what is left where members cancel is rounding, and has no direction
    lengths = np.sqrt(squares) * np.sqrt(squares[-1])
    value = np.divide(with_all, lengths, out=np.zeros(len(masks)), where=lengths > 0).clip(-1, 1)
    size = members.sum(axis=1)
    by_size = _shapley_weights(count)
    return np.array(
        [
            float(by_size[size[without]] @ (value[without | 1 << i] - value[without]))
            for i in range(count)
            for without in [masks[members[:, i] == 0]]
        ]
    )


def sparsity(reputations: Sequence[float], altruism: float) -> Doubles:
    """q_i = tanh(β·r_i) / max_j tanh(β·r_j): the share of the common update that CGSV gives client i back.

    >>> sparsity([0.5, 0.25], 1.0).round(6).tolist()
    [1.0, 0.529993]
    """
    bent = np.tanh(altruism * np.asarray(reputations, dtype=np.float64))
    return np.asarray(bent / bent.max()) if bent.max() > 0 else np.zeros(len(bent))


def sparsified(update: Floats, share: float) -> Floats:
    """One tensor of CGSV's reward: the entries at least as large as the c-th largest, c = min(⌈s·q⌉, s); others 0.

    >>> sparsified(np.array([0.3, -0.1, 0.2, 0.05]), 0.5).tolist()
    [0.3, 0.0, 0.2, 0.0]
    """
    sizes = np.abs(update).ravel()
    count = min(int(np.ceil(sizes.size * share)), sizes.size)
    if count <= 0:
        return np.zeros_like(update)
    least = np.partition(sizes, sizes.size - count)[sizes.size - count]
    return np.where(np.abs(update) >= least, update, 0).astype(update.dtype)


def _shapley_weights(count: int) -> Doubles:
    """|S|!·(N−|S|−1)!/N! by the size of S."""
    weights = np.empty(count)
    weights[0] = 1 / count
    for size in range(1, count):
        weights[size] = weights[size - 1] * size / (count - size)
    return weights


def _ratio(both: float, lengths: float) -> float:
    return max(-1.0, min(1.0, both / lengths)) if lengths > 0 else 0.0
