"""Who does the jobs: processes of this machine, or a Ray cluster."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

from fedcoast.cluster import connect
from fedcoast.lab.tables.jobs import Job, Outcome, do

Submit = Callable[[Job], "Future[Outcome]"]

LOOKS = 0.5  # seconds between a worker's looks at whether it is still wanted


@contextmanager
def processes(workers: int) -> Iterator[Submit]:
    """A process for each worker. When the block is left early, or its process killed, they end at once.

    What they were recording is whole up to the last round, and the next call goes on from there.
    """
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    with ProcessPoolExecutor(workers, context, initializer=_arrive, initargs=(stop,)) as pool:
        try:
            yield lambda job: pool.submit(do, job)
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _arrive(stop: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    threading.Thread(target=_leave_when_unwanted, args=(stop,), daemon=True).start()


def _leave_when_unwanted(stop: Any) -> None:
    parent = multiprocessing.parent_process()
    while not stop.wait(LOOKS):
        if parent is not None and not parent.is_alive():
            break
    os._exit(1)


@contextmanager
def ray_cluster(address: str) -> Iterator[Submit]:
    """Tasks of one core each on a Ray cluster; "local" starts one here.

    Run folders belong where every node sees them: a node that does not see a run trains it again.
    """
    with connect(address) as ray:
        remote = ray.remote(num_cpus=1)(do)
        yield lambda job: remote.remote(job).future()
