"""A utility for a recorded run of the lab: the quality of a model on the test images.

The test images serve as validation data, as in the public CoAst research code. Real federations do not have them, so
methods that use them have an advantage over those that do not, and over themselves in production.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fedcoast.errors import BadSetting
from fedcoast.rounds.arrays import Array, read
from fedcoast.simulation.datasets import Dataset
from fedcoast.simulation.degradations import normalise
from fedcoast.simulation.federated_data import as_floats, prepare
from fedcoast.simulation.simulation import experiment_of
from fedcoast.simulation.training import EVALUATION_BATCH, evaluate, new_model

Measure = Literal["loss", "accuracy"]


class TestImages:
    """Minus the mean cross-entropy on the test images, or the accuracy; the network in evaluation mode.

    Up to `workers` threads may call it at once; each uses its own network and one core.
    """

    __test__ = False  # pytest would take the name for a test

    def __init__(
        self,
        about: dict[str, Any],
        measure: Measure = "loss",
        limit: int | None = None,
        workers: int | None = None,
        dataset: Dataset | None = None,
    ) -> None:
        if measure not in ("loss", "accuracy"):
            raise BadSetting(f"measure must be 'loss' (minus the mean cross-entropy) or 'accuracy'; got {measure!r}")
        if limit is not None and (type(limit) is not int or limit < 1):
            raise BadSetting(f"limit must be an integer of at least 1, how many test images to use; got {limit!r}")
        self._experiment = experiment_of(about)
        data = prepare(self._experiment, dataset)
        if about.get("dataset", data.title) != data.title:
            raise BadSetting(
                f"this run was trained on {about['dataset']!r}, but the data given are {data.title!r};"
                " give the run's own data as dataset"
            )
        self._data = replace(
            data, images=data.images[:1].clone(), client_indices=(), client_labels=()
        )  # no training data
        self._count = min(limit or len(data.test_labels), len(data.test_labels))
        # Evaluating the small network takes less time than starting a second thread.
        cores = 1 if self._experiment.model == "mlp" else os.cpu_count() or 1
        self.measure, self.workers = measure, cores if workers is None else workers
        self.name = f"{measure} on {self._count} test images of {self._experiment.dataset}"
        self._idle: list[nn.Module] = []

    def __call__(self, model: Mapping[str, object], /) -> float:
        with self._network(model) as network:
            correct, loss = evaluate(network, self._data, 0, self._count)
        return correct / self._count if self.measure == "accuracy" else -loss / self._count

    def gradient(self, model: Mapping[str, object], /) -> dict[str, Array]:
        """The gradient of the mean cross-entropy, also where the measure is accuracy, which has no gradient."""
        with self._network(model) as network:
            network.eval().zero_grad(set_to_none=True)
            for at in range(0, self._count, EVALUATION_BATCH):
                part = slice(at, min(self._count, at + EVALUATION_BATCH))
                images = normalise(as_floats(self._data.test_images[part]), self._data.mean, self._data.std)
                loss = functional.cross_entropy(network(images), self._data.test_labels[part], reduction="sum")
                (loss / self._count).backward()  # type: ignore[no-untyped-call]
            return {name: _gradient(parameter) for name, parameter in network.named_parameters()}

    @contextmanager
    def _network(self, model: Mapping[str, object]) -> Iterator[nn.Module]:
        """A network for exclusive use, loaded with the model."""
        with _one_thread():
            try:
                network = self._idle.pop()
            except IndexError:
                network = new_model(self._experiment, self._data)
            # A copy, because recorded models are read-only and PyTorch does not accept that.
            network.load_state_dict({name: torch.from_numpy(np.array(read(array)[0])) for name, array in model.items()})
            yield network
            self._idle.append(network)


def utility_for(
    about: dict[str, Any],
    measure: Measure = "loss",
    limit: int | None = None,
    workers: int | None = None,
    dataset: Dataset | None = None,
) -> TestImages:
    """The utility of a run folder's models, from its metadata (`read_about`).

    measure  "loss", minus the mean cross-entropy, or "accuracy", which is coarser and ties more often
    limit    use this many of the test images, the first ones; default: all
    workers  threads that may call at once; default: one per core, or one in all for the mlp
    dataset  the data, where the run was trained on your own
    """
    return TestImages(about, measure, limit, workers, dataset)


def _gradient(parameter: nn.Parameter) -> Array:
    gradient: Tensor = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    return gradient.detach().contiguous().numpy().copy()


_busy = threading.Lock()
_callers, _threads_before = 0, 1


@contextmanager
def _one_thread() -> Iterator[None]:
    """One PyTorch thread while any caller is inside; the previous number is restored by the last to leave."""
    global _callers, _threads_before
    with _busy:
        if _callers == 0:
            _threads_before = torch.get_num_threads()
        _callers += 1
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _busy:
            _callers -= 1
            if _callers == 0:
                torch.set_num_threads(_threads_before)
