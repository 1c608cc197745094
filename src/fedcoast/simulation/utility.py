"""A utility for a recorded run of the lab: what a model is worth on the test images.

Validation data here are the test images, as in the public CoAst research code. No real federation has them: methods
that see them have an advantage over those that do not, and over themselves in production.
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

    Threads may ask at once, up to `workers` of them: each has a network of its own and one core.
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
                f"this run was trained on {about['dataset']!r}, and this would judge it on {data.title!r};"
                " give the run's own data as dataset"
            )
        self._data = replace(
            data, images=data.images[:1].clone(), client_indices=(), client_labels=()
        )  # no training data
        self._count = min(limit or len(data.test_labels), len(data.test_labels))
        # The little network is judged sooner than a second thread is told to.
        cores = 1 if self._experiment.model == "mlp" else os.cpu_count() or 1
        self.measure, self.workers = measure, cores if workers is None else workers
        self.name = f"{measure} on {self._count} test images of {self._experiment.dataset}"
        self._idle: list[nn.Module] = []

    def __call__(self, model: Mapping[str, object], /) -> float:
        with self._network(model) as network:
            right, loss = evaluate(network, self._data, 0, self._count)
        return right / self._count if self.measure == "accuracy" else -loss / self._count

    def gradient(self, model: Mapping[str, object], /) -> dict[str, Array]:
        """Of the mean cross-entropy, whatever the measure: an accuracy has no slope."""
        with self._network(model) as network:
            network.eval().zero_grad(set_to_none=True)
            for at in range(0, self._count, EVALUATION_BATCH):
                part = slice(at, min(self._count, at + EVALUATION_BATCH))
                images = normalise(as_floats(self._data.test_images[part]), self._data.mean, self._data.std)
                loss = functional.cross_entropy(network(images), self._data.test_labels[part], reduction="sum")
                (loss / self._count).backward()  # type: ignore[no-untyped-call]
            return {name: _slope(parameter) for name, parameter in network.named_parameters()}

    @contextmanager
    def _network(self, model: Mapping[str, object]) -> Iterator[nn.Module]:
        """A network that nobody else uses meanwhile, with the model in it."""
        with _one_thread():
            try:
                network = self._idle.pop()
            except IndexError:
                network = new_model(self._experiment, self._data)
            # A copy, because PyTorch does not take read-only memory, and a recorded model is.
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
    """The utility of a run folder's models, from what `read_about` says of it.

    measure  "loss", minus the mean cross-entropy, or "accuracy", which is coarser and ties more often
    limit    use the first so many of the test images; they are all used without it
    workers  threads that may ask at once; without it one a core, or one in all for the little mlp
    dataset  the data, where the run was trained on data of your own
    """
    return TestImages(about, measure, limit, workers, dataset)


def _slope(parameter: nn.Parameter) -> Array:
    slope: Tensor = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    return slope.detach().contiguous().numpy().copy()


_busy = threading.Lock()
_asking, _threads_before = 0, 1


@contextmanager
def _one_thread() -> Iterator[None]:
    """One PyTorch thread for whoever asks; the number from before comes back with the last who leaves."""
    global _asking, _threads_before
    with _busy:
        if _asking == 0:
            _threads_before = torch.get_num_threads()
        _asking += 1
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _busy:
            _asking -= 1
            if _asking == 0:
                torch.set_num_threads(_threads_before)
