"""Thread pool scoped to one round; results do not depend on its size."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from fedcoast.errors import BadSetting

T = TypeVar("T")
R = TypeVar("R")


class ThreadPool:
    """A fixed number of threads; a single one is the caller's own. Use it in a `with`, which ends them."""

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads, "fedcoast") if threads > 1 else None

    def __enter__(self) -> "ThreadPool":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """The function of every item, in order; an exception is passed on."""
        return list(map(work, items) if self._pool is None else self._pool.map(work, items))


ALONE = ThreadPool()


def threads_for(wanted: int | None) -> int:
    """The requested number; by default one for each core that this process may use, eight at most.

    The work waits for memory more than for cores.
    """
    if wanted is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min(cores, 8)
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
        raise BadSetting(f"num_threads must be an integer of at least 1, or None for all cores; got {wanted!r}")
    return wanted
