"""Who does the jobs: processes of this machine, or a Ray cluster."""

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
    """A process for each worker. When the block is left early, or its process killed, they end at once.

    What they were recording is whole up to the last round, and the next call goes on from there.
    """
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    with ProcessPoolExecutor(workers, context, initializer=_arrive_until, initargs=(stop,)) as pool:
        try:
            yield lambda job: pool.submit(do, job)
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _arrive_until(stop: Event) -> None:
    init_worker(stop.is_set)


@contextmanager
def ray_cluster(address: str) -> Iterator[Submit]:
    """Tasks of one core each on a Ray cluster; "local" starts one here.

    Run folders belong where every node sees them: a node that does not see a run trains it again.
    """
    with connect(address) as ray:
        remote = ray.remote(num_cpus=1)(do)
        yield lambda job: remote.remote(job).future()
