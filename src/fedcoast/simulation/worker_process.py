"""Worker processes: they leave Ctrl-C to their parent and never outlive it."""

import ctypes
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable

CHECK_INTERVAL = 0.5  # seconds

# glibc's mallopt parameters, and the values they get, in bytes.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
KEPT_FREE, LARGEST_FROM_HEAP = 256 * 2**20, 32 * 2**20


def init_worker(should_stop: Callable[[], bool] = lambda: False) -> None:
    """Call once in a new process; it exits when `should_stop` returns True or its parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_when, args=(should_stop,), daemon=True).start()


def _exit_when(should_stop: Callable[[], bool]) -> None:
    parent = multiprocessing.parent_process()
    while not should_stop() and (parent is None or parent.is_alive()):
        time.sleep(CHECK_INTERVAL)
    os._exit(1)


def reuse_freed_memory() -> bool:
    """Keep freed memory in this process instead of returning it to the system; False where glibc is not in use.

    Training allocates and frees the same activations in every step. Without this each step pays for fresh pages, about
    a seventh of the time of TinyResNet. Up to 256 MB stay with the process.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # another C library or system
        return False
    return bool(mallopt(MMAP_THRESHOLD, LARGEST_FROM_HEAP) and mallopt(TRIM_THRESHOLD, KEPT_FREE))
