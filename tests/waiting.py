"""Waiting for what another process does."""

import time


def wait_until(condition, seconds=60, what="nothing happened"):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.05)
