"""What fits on a page: the best and the worst by name, the others in groups, rounds in windows.

Nothing is omitted silently: every group and window says which clients or rounds it contains.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Places = tuple[int, ...]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Group:
    """Neighbours in the ranking that share a row; `places` count from 0, the best."""

    places: Places

    @property
    def alone(self) -> bool:
        return len(self.places) == 1


def ends(count: int, most: int) -> Places:
    """The first and the last of a ranking, `most` of them, or all.

    >>> ends(3, 4), ends(9, 4)
    ((0, 1, 2), (0, 1, 7, 8))
    """
    if count <= most:
        return tuple(range(count))
    top = (most + 1) // 2
    return (*range(top), *range(count - (most - top), count))


def groups(count: int, most: int) -> tuple[Group, ...]:
    """At most so many rows for a ranking: a third the best, a third the worst, the others between them in groups.

    >>> [group.places for group in groups(9, 5)]
    [(0,), (1,), (2, 3, 4, 5, 6), (7,), (8,)]
    """
    if count <= most:
        return tuple(Group((place,)) for place in range(count))
    end = max(1, (most + 1) // 3)
    between = np.array_split(np.arange(end, count - end), most - 2 * end)
    singles = [Group((place,)) for place in ends(count, 2 * end)]
    return (*singles[:end], *(Group(tuple(part.tolist())) for part in between), *singles[end:])


def windows(numbers: Sequence[int], most: int) -> tuple[Places, ...]:
    """At most so many columns for the rounds: windows of one width, the last perhaps shorter; places, not numbers.

    >>> windows([1, 2, 3, 5, 8], 3)
    ((0, 1), (2, 3), (4,))
    """
    width = max(1, -(-len(numbers) // most))
    return tuple(tuple(range(at, min(at + width, len(numbers)))) for at in range(0, len(numbers), width))


def means(table: Floats, rows: Sequence[Places], columns: Sequence[Places]) -> Floats:
    """The mean of what is known in each block; NaN where nothing is.

    >>> means(np.array([[1.0, np.nan, 3.0], [5.0, np.nan, np.nan]]), [(0, 1)], [(0,), (1,), (1, 2)]).tolist()
    [[3.0, nan, 3.0]]
    """
    known = np.isfinite(table)
    sums, counts = (_blocks(part, rows, columns) for part in (np.where(known, table, 0.0), known.astype(np.float64)))
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def _blocks(table: Floats, rows: Sequence[Places], columns: Sequence[Places]) -> Floats:
    across = np.stack([table[:, list(block)].sum(axis=1) for block in columns], axis=1)
    return np.stack([across[list(block)].sum(axis=0) for block in rows])
