"""A worker process: it leaves Ctrl-C to its parent, and does not outlive it."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable

LOOKS = 0.5  # seconds between a worker's looks at whether it is still wanted


def init_worker(unwanted: Callable[[], bool] = lambda: False) -> None:
    """Called once in a new process, which ends at once when it is `unwanted` or its parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_when, args=(unwanted,), daemon=True).start()


def _leave_when(unwanted: Callable[[], bool]) -> None:
    parent = multiprocessing.parent_process()
    while not unwanted() and (parent is None or parent.is_alive()):
        time.sleep(LOOKS)
    os._exit(1)
