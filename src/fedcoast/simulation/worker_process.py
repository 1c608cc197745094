"""Worker processes: they leave Ctrl-C to their parent and never outlive it."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable

CHECK_INTERVAL = 0.5  # seconds


def init_worker(should_stop: Callable[[], bool] = lambda: False) -> None:
    """Call once in a new process; it exits when `should_stop` returns True or its parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_when, args=(should_stop,), daemon=True).start()


def _exit_when(should_stop: Callable[[], bool]) -> None:
    parent = multiprocessing.parent_process()
    while not should_stop() and (parent is None or parent.is_alive()):
        time.sleep(CHECK_INTERVAL)
    os._exit(1)
