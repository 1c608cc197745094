"""Where jobs run: in processes on this machine, or on a Ray cluster."""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.synchronize import Event

from fedcoast.integrations.ray import connect
from fedcoast.simulation.worker_process import init_worker
from paper.jobs import Job, Outcome, do

Submit = Callable[[Job], "Future[Outcome]"]


@contextmanager
def processes(workers: int) -> Iterator[Submit]:
    """One process per worker. They end at once when the block exits early or the parent is killed.

    Their recordings are complete up to the last finished round; the next call continues from there.
    """
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    with ProcessPoolExecutor(workers, context, initializer=_init_until, initargs=(stop,)) as pool:
        try:
            yield lambda job: pool.submit(do, job)
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _init_until(stop: Event) -> None:
    init_worker(stop.is_set)


@contextmanager
def ray_cluster(address: str) -> Iterator[Submit]:
    """Tasks of one core each on a Ray cluster; "local" starts one here.

    Put run folders where every node sees them: a node that does not see a run trains it again.
    """
    with connect(address) as ray:
        remote = ray.remote(num_cpus=1)(do)
        yield lambda job: remote.remote(job).future()
