"""Who does the work: this process, or several that share the data and the models in memory.

Each client trains on one core with one thread, and draws its chance from its own stream: the number of workers
changes how long a round takes and not one bit of it.
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
from fedcoast.simulation.worker_process import init_worker

Arrays = dict[str, Array]
Run = Callable[[str, Sequence[tuple[int, int]]], list[Any]]


class Slots:
    """Room for several models of one kind in one block of memory: slot 0 is the global one, 1 + i client i's."""

    def __init__(self, model: nn.Module, count: int, *, shared: bool) -> None:
        self._places: list[tuple[str, torch.Size, torch.dtype, int, int]] = []
        end = 0
        for name, tensor in model.state_dict().items():
            size = tensor.numel() * tensor.element_size()
            self._places.append((name, tensor.shape, tensor.dtype, end, end + size))
            end += -(-size // 64) * 64
        self._memory = torch.zeros(count, end, dtype=torch.uint8)
        if shared:
            self._memory.share_memory_()  # type: ignore[no-untyped-call]

    def tensors(self, slot: int) -> dict[str, Tensor]:
        """The model in a slot, as views of its memory."""
        row = self._memory[slot]
        return {name: row[first:last].view(kind).view(shape) for name, shape, kind, first, last in self._places}

    def put(self, slot: int, model: nn.Module) -> None:
        state = model.state_dict()
        for name, room in self.tensors(slot).items():
            room.copy_(state[name])

    def put_arrays(self, slot: int, arrays: Arrays) -> None:
        for name, room in self.tensors(slot).items():
            room.copy_(torch.from_numpy(np.asarray(arrays[name])))

    def arrays(self, slot: int) -> Arrays:
        """A copy that nobody writes to any more."""
        return {name: tensor.numpy().copy() for name, tensor in self.tensors(slot).items()}


class Worker:
    """One worker's place: a model to train, the ground, the slots and the sign to stop."""

    def __init__(self, experiment: Experiment, data: FederatedData, slots: Slots, stop: Tensor, device: str) -> None:
        self._experiment, self._data, self._slots, self._stop = experiment, data, slots, stop
        self._model = new_model(experiment, data, device)

    def train(self, client: int, number: int) -> None:
        self._take_global()
        train(self._model, self._experiment, self._data, client, number, lambda: bool(self._stop.item()))
        self._slots.put(1 + client, self._model)

    def refresh(self, client: int, number: int) -> None:
        self._take_global()
        refresh_statistics(self._model, self._experiment, self._data, client, number)
        self._slots.put(1 + client, self._model)

    def evaluate(self, first: int, last: int) -> tuple[int, float]:
        self._take_global()
        return evaluate(self._model, self._data, first, last)

    def _take_global(self) -> None:
        self._model.load_state_dict(self._slots.tensors(0))


class WorkerPool:
    """Trains and judges; `run` hands out the tasks."""

    def __init__(self, data: FederatedData, slots: Slots, run: Run) -> None:
        self._data, self._slots, self._run = data, slots, run

    def train(self, start: Arrays, clients: Sequence[int], number: int) -> dict[int, Arrays]:
        """What each client uploads in a round that starts from `start`."""
        return self._by_clients("train", start, clients, number)

    def refresh(self, model: Arrays, clients: Sequence[int], number: int) -> dict[int, Arrays]:
        """The model with each client's own batch-norm statistics."""
        return self._by_clients("refresh", model, clients, number)

    def _by_clients(self, task: str, model: Arrays, clients: Sequence[int], number: int) -> dict[int, Arrays]:
        self._slots.put_arrays(0, model)
        self._run(task, [(client, number) for client in clients])
        return {client: self._slots.arrays(1 + client) for client in clients}

    def evaluate(self, model: Arrays) -> dict[str, float]:
        """Accuracy and mean loss on the test images; summed in one order, whoever computed the parts."""
        self._slots.put_arrays(0, model)
        count = len(self._data.test_labels)
        spans = [(at, min(count, at + 2 * EVALUATION_BATCH)) for at in range(0, count, 2 * EVALUATION_BATCH)]
        parts = self._run("evaluate", spans)
        right, loss = sum(part[0] for part in parts), sum(part[1] for part in parts)
        return {"test accuracy": right / count, "test loss": loss / count}


@contextmanager
def worker_pool(experiment: Experiment, data: FederatedData, workers: int, device: str) -> Iterator[WorkerPool]:
    """A pool of one (this process) or more (a process each), gone when the block ends."""
    stop = torch.zeros((), dtype=torch.bool).share_memory_()  # type: ignore[no-untyped-call]
    model = new_model(experiment, data)
    slots = Slots(model, 1 + experiment.clients, shared=workers > 1)
    if workers == 1:
        worker = Worker(experiment, data, slots, stop, device)
        yield WorkerPool(data, slots, lambda task, calls: _inline(worker, task, calls))
        return
    context = torch.multiprocessing.get_context("spawn")
    places = (experiment, data.share(), slots, stop, device)
    with ProcessPoolExecutor(workers, context, initializer=_init_worker, initargs=places) as pool:
        try:
            yield WorkerPool(data, slots, lambda task, calls: _outside(pool, task, calls))
        finally:
            stop.fill_(True)


def _inline(worker: Worker, task: str, calls: Sequence[tuple[int, int]]) -> list[Any]:
    with one_thread():
        return [getattr(worker, task)(*call) for call in calls]


def _outside(pool: ProcessPoolExecutor, task: str, calls: Sequence[tuple[int, int]]) -> list[Any]:
    try:
        futures: list[Future[Any]] = [pool.submit(_do, task, call) for call in calls]
        wait(futures, return_when="FIRST_EXCEPTION")
        return [future.result() for future in futures]
    except BrokenProcessPool:
        raise FedcoastError(
            "a worker process died, most likely killed by the system for want of memory; use fewer workers"
        ) from None


_seat: Worker


def _init_worker(*places: Any) -> None:
    global _seat
    init_worker()
    torch.set_num_threads(1)
    _seat = Worker(*places)


def _do(task: str, call: tuple[int, int]) -> Any:
    return getattr(_seat, task)(*call)


@contextmanager
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
