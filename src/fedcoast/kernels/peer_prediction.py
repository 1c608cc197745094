"""Peer prediction on quantised updates: what one client's codes tell about another's (Fed-PCA).

Parameters are tasks, codes x ∈ {0, …, h−1} are reports. Two clients' reports are correlated at (a, b) where
Δ(a, b) = T(a, b) − T_i(a)·T_j(b) > 0, T the joint frequency of the codes over a set of tasks. A shared task
earns a bonus where its codes are correlated; a pair of different tasks, the same way, a penalty.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from fedcoast.kernels.ballots import Floats

Codes = NDArray[np.unsignedinteger]
Places = NDArray[np.int64]
Counts = NDArray[np.int64]
Half = NDArray[np.uint8]
"""For every task, the half of the tasks it is in: 0 (A) or 1 (B)."""

CHUNK = 1 << 16


def quantise(updates: Floats, bound: float, levels: int) -> Codes:
    """min(h−1, ⌊(clip(x, ±X) + X)/(2X)·h⌋); a bound of 0, where nobody moves, gives everyone the same code.

    >>> quantise(np.array([-0.5, -0.1, 0.0, 0.1, 0.4]), bound=0.4, levels=2).tolist()
    [0, 0, 1, 1, 1]
    """
    kind = np.uint8 if levels <= 256 else np.uint16
    if bound <= 0:
        return np.full(updates.shape, levels // 2).astype(kind)
    clipped = np.clip(updates, -bound, bound) / bound
    return np.minimum(levels - 1, np.floor((clipped + 1) / 2 * levels)).astype(kind)


def largest_share(vectors: Iterable[Floats], count: int, share: float) -> float:
    """The `share` quantile of |x| over a stream of at most `count` entries, as np.quantile interpolates it.

    Only the entries above it are held. Where it is 0, because most entries are, it is the largest |x| instead.

    >>> largest_share([np.array([1.0, -3.0]), np.array([2.0, 0.0, 4.0])], count=5, share=0.5)
    2.0
    """
    room = int(np.ceil(count * (1 - share))) + 2
    largest: list[Floats] = []
    floor, num_read, holding = 0.0, 0, 0
    for vector in vectors:
        sizes = np.abs(vector)
        num_read += sizes.size
        largest.append(sizes[sizes >= floor])
        holding += largest[-1].size
        if holding > 2 * room:
            top = np.partition(np.concatenate(largest), holding - room)[holding - room :]
            largest, holding, floor = [top], room, float(top.min())
    if not num_read:
        return 0.0
    top = np.sort(np.concatenate(largest))
    place = (num_read - 1) * share
    below, above = int(np.floor(place)) - num_read, int(np.ceil(place)) - num_read
    bound = float(top[below] + (top[above] - top[below]) * (place - np.floor(place)))
    return bound if bound > 0 else float(top[-1])


def halves(size: int, rng: np.random.Generator) -> Half:
    """Split the tasks into two halves at random, A the smaller by one if their number is odd; every split alike.

    >>> np.bincount(halves(7, np.random.default_rng(0))).tolist()
    [3, 4]
    """
    half = np.unpackbits(np.frombuffer(rng.bytes(-(-size // 8)), dtype=np.uint8), count=size)
    surplus = int(half.sum(dtype=np.int64)) - (size - size // 2)
    crowded = int(surplus > 0)
    # Coins leave one side a few too many; moving as many of them at random makes all equal splits equally likely.
    while surplus:
        drawn = np.unique(rng.integers(size, size=max(8, abs(surplus))))
        moved = rng.permutation(drawn[half[drawn] == crowded])[: abs(surplus)]
        half[moved] = 1 - crowded
        surplus -= len(moved) * (1 if crowded else -1)
    return half


def joint_counts(first: Codes, second: Codes, half: Half, levels: int) -> Counts:
    """How often each pair of codes occurs, in half A and in half B: an array of 2 × h × h.

    >>> codes, half = np.array([0, 1, 1, 0], np.uint8), np.array([0, 0, 1, 1], np.uint8)
    >>> joint_counts(codes, codes, half, 2).tolist()
    [[[1, 0], [0, 1]], [[1, 0], [0, 1]]]
    """
    table = np.zeros(2 * levels**2, dtype=np.int64)
    for at in range(0, first.size, CHUNK):
        part = slice(at, at + CHUNK)
        pair = (half[part].astype(np.int64) * levels + first[part]) * levels + second[part]
        table += np.bincount(pair, minlength=table.size)
    return table.reshape(2, levels, levels)


def correlated(counts: Counts) -> NDArray[np.bool_]:
    """Sign(Δ(a, b)) of one half, from its counts: n·T(a, b) > T_i(a)·T_j(b) in integers, so free of rounding.

    >>> correlated(np.array([[2, 0], [0, 1]])).tolist(), correlated(np.array([[4, 2], [2, 1]])).any().tolist()
    ([[True, False], [False, True]], False)
    """
    by_first, by_second = counts.sum(axis=1), counts.sum(axis=0)
    return np.asarray(counts * counts.sum() > by_first[:, None] * by_second[None, :])


def exact_penalty(rule: NDArray[np.bool_], counts: Counts) -> float:
    """The mean of Sign(Δ(x_i[q], x_j[q′])) over all ordered pairs q ≠ q′ of the tasks that were counted.

    >>> exact_penalty(np.eye(2, dtype=bool), np.array([[1, 0], [0, 1]]))
    0.0
    """
    tasks = int(counts.sum())
    every = int((counts.sum(axis=1)[:, None] * counts.sum(axis=0)[None, :])[rule].sum())
    same = int(counts[rule].sum())
    return (every - same) / (tasks * (tasks - 1))


def peer_score(
    first: Codes,
    second: Codes,
    half: Half,
    bonus: Places,
    levels: int,
    penalties: tuple[Places, Places] | None = None,
    diagonal: bool = True,
) -> float:
    """(1/|M1|)·Σ_{p∈M1} Q_p of one client against one peer.

    Q_p = Sign(Δ(x_i[p], x_j[p])) − Sign(Δ(x_i[q], x_j[q′])), with Δ from the half that p is not in, so that no report
    vouches for itself. `penalties` are the q and q′ of each p; without them every Q_p has the mean over all pairs
    of its half's other tasks. Without `diagonal`, equal codes never count as correlated.

    >>> x, y = np.array([1, 0, 1, 1, 1, 0], np.uint8), np.array([1, 1, 0, 1, 1, 1], np.uint8)
    >>> half = np.array([0, 0, 0, 1, 1, 1], np.uint8)
    >>> peer_score(x, y, half, np.array([0, 3]), levels=2)
    -0.25
    """
    if first.size < levels**2:  # few tasks would leave most of the table empty: only codes that occur get a row
        used = np.unique([first, second])
        first, second = (np.searchsorted(used, codes).astype(np.uint16) for codes in (first, second))
        levels = used.size
    counts = joint_counts(first, second, half, levels)
    side = half[bonus]
    earned = _hits(counts, first[bonus], second[bonus], side, diagonal)
    if penalties is not None:
        lost: float = _hits(counts, first[penalties[0]], second[penalties[1]], side, diagonal)
        return (earned - lost) / len(bonus)
    rules = np.stack([correlated(counts[1]), correlated(counts[0])])  # for p in A the rule of B, for p in B that of A
    rules &= diagonal | ~np.eye(levels, dtype=bool)
    others = counts - joint_counts(first[bonus], second[bonus], side, levels)
    members = np.bincount(side, minlength=2)
    lost = sum(int(members[h]) * exact_penalty(rules[h], others[h]) for h in (0, 1) if members[h])
    return (earned - lost) / len(bonus)


def _hits(counts: Counts, first: Codes, second: Codes, side: Half, diagonal: bool) -> int:
    """How many of these pairs of codes are correlated by the half other than their own: `correlated`, looked up."""
    other = 1 - side
    by_first, by_second, tasks = counts.sum(axis=2), counts.sum(axis=1), counts.sum(axis=(1, 2))
    hit = counts[other, first, second] * tasks[other] > by_first[other, first] * by_second[other, second]
    return int(np.count_nonzero(hit & (diagonal | (first != second))))


def draw_pairs(half: Half, bonus: Places, rng: np.random.Generator, apart: bool = True) -> tuple[Places, Places]:
    """For each bonus task two tasks of its half that are no bonus tasks, different ones if `apart`.

    >>> half, bonus = np.array([0, 0, 0, 1, 1, 1], np.uint8), np.array([0, 3])
    >>> q, other = draw_pairs(half, bonus, np.random.default_rng(0))
    >>> sorted([int(q[0]), int(other[0])]), sorted([int(q[1]), int(other[1])])
    ([1, 2], [4, 5])
    """
    barred, side = np.sort(bonus), half[bonus]
    pairs = np.empty((2, len(bonus)), dtype=np.int64)
    for which in (0, 1):
        tasks = np.flatnonzero(side == which)
        pairs[:, tasks] = [_draw(half, which, barred, tasks.size, rng) for _ in range(2)]
    while apart and (alike := np.flatnonzero(pairs[0] == pairs[1])).size:
        for which in (0, 1):
            tasks = alike[side[alike] == which]
            pairs[1, tasks] = _draw(half, which, barred, tasks.size, rng)
    return pairs[0], pairs[1]


def _draw(half: Half, which: int, barred: Places, count: int, rng: np.random.Generator) -> Places:
    """Tasks of one half that are not barred, drawn with replacement; `barred` is sorted."""
    drawn = np.empty(0, dtype=np.int64)
    while drawn.size < count:  # by trying: listing all that may be drawn would need an index for every parameter
        tries = rng.integers(half.size, size=8 * count)
        tries = tries[half[tries] == which]
        place = np.minimum(np.searchsorted(barred, tries), barred.size - 1)
        drawn = np.concatenate([drawn, tries[barred[place] != tries]])
    return drawn[:count]


def spare_tasks(half: Half, bonus: Places) -> tuple[int, int]:
    """How many tasks of each half remain for penalties.

    >>> spare_tasks(np.array([0, 0, 0, 1, 1, 1], np.uint8), np.array([0, 3]))
    (2, 2)
    """
    in_b = int(half.sum(dtype=np.int64))
    bonus_in_b = int(half[bonus].sum(dtype=np.int64))
    return half.size - in_b - (len(bonus) - bonus_in_b), in_b - bonus_in_b


def aggregation_weights(scores: Sequence[float], sharpness: float) -> NDArray[np.float64]:
    """w_i ∝ exp(α_w·Q_i), by which Fed-PCA aggregates.

    >>> aggregation_weights([0.5, 0.25, -0.25], 10).round(6).tolist()
    [0.92367, 0.075819, 0.000511]
    """
    heights = sharpness * np.asarray(scores, dtype=np.float64)
    weights = np.exp(heights - heights.max())
    return np.asarray(weights / weights.sum())
