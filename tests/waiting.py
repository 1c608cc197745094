"""Waiting for what another process or an event loop does."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor


def wait_until(condition, seconds=60, what="nothing happened"):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.05)


def on_a_loop(coroutine_function):
    """Its result, in a thread with a loop of its own: the main thread may run the loop of a browser."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(coroutine_function())).result()
