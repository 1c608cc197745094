"""Workers that train clients: this process, or several that share the data and the models in memory.

Each client trains with one thread and its own random stream: the number of workers changes how long a round takes, and
not one bit of its result.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.multiprocessing
from torch import Tensor, nn

from fedcoast.errors import FedcoastError
from fedcoast.rounds.arrays import Array
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federated_data import FederatedData
from fedcoast.simulation.training import EVALUATION_BATCH, evaluate, new_model, refresh_statistics, train
from fedcoast.simulation.worker_process import init_worker, reuse_freed_memory

Arrays = dict[str, Array]
Task = Callable[["Worker", int, int], Any]
Run = Callable[[Task, Sequence[tuple[int, int]]], list[Any]]


class ModelMemory:
    """Several models of one kind in one block of memory: model 0 is the global one, model 1 + i that of client i."""

    def __init__(self, model: nn.Module, count: int, *, shared: bool) -> None:
        self._layout: list[tuple[str, torch.Size, torch.dtype, int, int]] = []
        end = 0
        for name, tensor in model.state_dict().items():
            size = tensor.numel() * tensor.element_size()
            self._layout.append((name, tensor.shape, tensor.dtype, end, end + size))
            end += -(-size // 64) * 64
        self._memory = torch.zeros(count, end, dtype=torch.uint8)
        if shared:
            self._memory.share_memory_()  # type: ignore[no-untyped-call]

    def tensors(self, index: int) -> dict[str, Tensor]:
        """A model as views of the memory."""
        row = self._memory[index]
        return {name: row[first:last].view(dtype).view(shape) for name, shape, dtype, first, last in self._layout}

    def put(self, index: int, model: nn.Module) -> None:
        state = model.state_dict()
        for name, target in self.tensors(index).items():
            target.copy_(state[name])

    def put_arrays(self, index: int, arrays: Arrays) -> None:
        for name, target in self.tensors(index).items():
            target.copy_(torch.from_numpy(np.asarray(arrays[name])))

    def arrays(self, index: int) -> Arrays:
        """A copy of the model."""
        return {name: tensor.numpy().copy() for name, tensor in self.tensors(index).items()}


class Worker:
    """One worker: a model to train, the data, the shared models and the stop signal."""

    def __init__(
        self, experiment: Experiment, data: FederatedData, memory: ModelMemory, stop: Tensor, device: str
    ) -> None:
        self._experiment, self._data, self._models, self._stop = experiment, data, memory, stop
        self._model = new_model(experiment, data, device)

    def train(self, client: int, number: int) -> None:
        self._load_global()
        train(self._model, self._experiment, self._data, client, number, lambda: bool(self._stop.item()))
        self._models.put(1 + client, self._model)

    def refresh(self, client: int, number: int) -> None:
        self._load_global()
        refresh_statistics(self._model, self._experiment, self._data, client, number)
        self._models.put(1 + client, self._model)

    def evaluate(self, first: int, last: int) -> tuple[int, float]:
        self._load_global()
        return evaluate(self._model, self._data, first, last)

    def _load_global(self) -> None:
        self._model.load_state_dict(self._models.tensors(0))


class WorkerPool:
    """Trains and evaluates; `run` distributes the tasks."""

    def __init__(self, data: FederatedData, memory: ModelMemory, run: Run) -> None:
        self._data, self._models, self._run = data, memory, run

    def train(self, start: Arrays, clients: Sequence[int], number: int) -> dict[int, Arrays]:
        """What each client uploads in a round that starts from `start`."""
        return self._by_clients(Worker.train, start, clients, number)

    def refresh(self, model: Arrays, clients: Sequence[int], number: int) -> dict[int, Arrays]:
        """The model with each client's own batch-norm statistics."""
        return self._by_clients(Worker.refresh, model, clients, number)

    def _by_clients(self, task: Task, model: Arrays, clients: Sequence[int], number: int) -> dict[int, Arrays]:
        self._models.put_arrays(0, model)
        self._run(task, [(client, number) for client in clients])
        return {client: self._models.arrays(1 + client) for client in clients}

    def evaluate(self, model: Arrays) -> dict[str, float]:
        """Accuracy and mean loss on the test images, summed in the same order for any number of workers."""
        self._models.put_arrays(0, model)
        count = len(self._data.test_labels)
        spans = [(at, min(count, at + 2 * EVALUATION_BATCH)) for at in range(0, count, 2 * EVALUATION_BATCH)]
        parts = self._run(Worker.evaluate, spans)
        correct, loss = sum(part[0] for part in parts), sum(part[1] for part in parts)
        return {"test accuracy": correct / count, "test loss": loss / count}


@contextmanager
def worker_pool(experiment: Experiment, data: FederatedData, workers: int, device: str) -> Iterator[WorkerPool]:
    """A pool of one worker (this process) or several (one process each), closed when the block ends."""
    stop = torch.zeros((), dtype=torch.bool).share_memory_()  # type: ignore[no-untyped-call]
    model = new_model(experiment, data)
    memory = ModelMemory(model, 1 + experiment.clients, shared=workers > 1)
    if workers == 1:
        reuse_freed_memory()
        worker = Worker(experiment, data, memory, stop, device)
        yield WorkerPool(data, memory, lambda task, calls: _inline(worker, task, calls))
        return
    context = torch.multiprocessing.get_context("spawn")
    arguments = (experiment, data.share(), memory, stop, device)
    with ProcessPoolExecutor(workers, context, initializer=_init_worker, initargs=arguments) as pool:
        try:
            yield WorkerPool(data, memory, lambda task, calls: _in_processes(pool, task, calls))
        finally:
            stop.fill_(True)


def _inline(worker: Worker, task: Task, calls: Sequence[tuple[int, int]]) -> list[Any]:
    with one_thread():
        return [task(worker, *call) for call in calls]


def _in_processes(pool: ProcessPoolExecutor, task: Task, calls: Sequence[tuple[int, int]]) -> list[Any]:
    try:
        futures: list[Future[Any]] = [pool.submit(_do, task, call) for call in calls]
        wait(futures, return_when="FIRST_EXCEPTION")
        return [future.result() for future in futures]
    except BrokenProcessPool:
        raise FedcoastError("a worker process died, most likely because memory ran out; use fewer workers") from None


_worker: Worker


def _init_worker(*arguments: Any) -> None:
    global _worker
    init_worker()
    reuse_freed_memory()
    torch.set_num_threads(1)
    _worker = Worker(*arguments)


def _do(task: Task, call: tuple[int, int]) -> Any:
    return task(_worker, *call)


@contextmanager
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
