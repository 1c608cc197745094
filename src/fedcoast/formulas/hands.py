"""Threads for the length of one round; results never depend on how many there are."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Hands:
    """So many threads; a single one is the caller's own. To be used in a `with`, which ends them."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads, "fedcoast") if threads > 1 else None

    def __enter__(self) -> "Hands":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Do them all; the results in order. What one of them raises is raised."""
        return list(map(work, items) if self._pool is None else self._pool.map(work, items))


ALONE = Hands()
