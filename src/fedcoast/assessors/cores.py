"""Work on the layers of a large model, spread over the cores: NumPy lets go of Python's lock on large arrays."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

LARGE = 1_000_000
"""Parameters above which threads cost less than they save."""


@contextmanager
def spread_over_cores(parameters: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """A `map`: over threads for a large model, in this one for others. The results and their order are the same."""
    cores = os.cpu_count() or 1
    if parameters < LARGE or cores == 1:
        yield map
        return
    with ThreadPoolExecutor(cores, "fedcoast-layers") as pool:
        yield pool.map
