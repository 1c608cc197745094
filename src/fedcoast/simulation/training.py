"""What one client does in one round, and how a model is judged: pure functions of model, ground and seed."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from fedcoast.simulation.degradations import normalise
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federated_data import BATCHES, MODEL, FederatedData, as_floats, stream, torch_stream
from fedcoast.simulation.models import MEMORY_FORMAT, build

EVALUATION_BATCH = 500
STATISTICS_BATCHES = 10

# Images that pass through the network at once: as many as its activations fit the processor's cache for. Models with
# batch norm are not here, since a part of a batch has other statistics than the whole. benchmarks/training.py measures.
MICRO_BATCH = {"tiny-resnet": 256, "convnet": 32, "resnet4": 32}


class Interrupted(Exception):
    """Training was asked to stop."""


def new_model(experiment: Experiment, data: FederatedData, device: str = "cpu") -> nn.Module:
    """The model before the first round."""
    seed = int(stream(experiment.seed, MODEL).integers(2**63))
    model = build(experiment.model, data.channels, data.size, data.classes, seed)
    return model.to(device).to(memory_format=MEMORY_FORMAT[experiment.model])  # type: ignore[call-overload, no-any-return]


def learning_rate(experiment: Experiment, number: int) -> float:
    """The local learning rate of a round (1 is the first)."""
    if experiment.schedule == "constant":
        return experiment.learning_rate
    progress = (number - 1) / max(1, experiment.rounds - 1)
    return experiment.learning_rate * (0.01 + 0.99 * (1 + math.cos(math.pi * progress)) / 2)


def train(
    model: nn.Module,
    experiment: Experiment,
    data: FederatedData,
    client: int,
    number: int,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Train the model as the client does in round `number`; what it draws depends on nothing else."""
    device = next(model.parameters()).device
    generator = torch_stream(experiment.seed, BATCHES, number, client)
    optimiser = _optimiser(model, experiment, learning_rate(experiment, number))
    model.train()
    for images, labels in data.batches(experiment, client, data.steps(experiment, client), generator):
        if stop():
            raise Interrupted
        optimiser.zero_grad(set_to_none=True)
        _add_gradients(model, experiment, images.to(device), labels.to(device))
        optimiser.step()


def _add_gradients(model: nn.Module, experiment: Experiment, images: Tensor, labels: Tensor) -> None:
    """The gradient of the batch's mean loss, summed up over its micro-batches."""
    size = MICRO_BATCH.get(experiment.model, len(labels))
    memory_format = MEMORY_FORMAT[experiment.model]
    for part, targets in zip(torch.split(images, size), torch.split(labels, size), strict=True):
        with torch.autocast(part.device.type, torch.bfloat16, enabled=experiment.precision == "bfloat16"):
            answers = model(part.contiguous(memory_format=memory_format))
        loss = functional.cross_entropy(answers.float(), targets, reduction="sum") / len(labels)
        loss.backward()  # type: ignore[no-untyped-call]


def refresh_statistics(model: nn.Module, experiment: Experiment, data: FederatedData, client: int, number: int) -> None:
    """Let batch-norm layers measure the client's data under the model's present weights, training nothing."""
    device = next(model.parameters()).device
    generator = torch_stream(experiment.seed, BATCHES, number, client, 1)
    layers = [layer for layer in model.modules() if isinstance(layer, nn.modules.batchnorm._BatchNorm)]
    momenta = [layer.momentum for layer in layers]
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # the plain mean over the batches
    model.train()
    count = min(STATISTICS_BATCHES, data.steps(experiment, client))
    with torch.no_grad():
        for images, _ in data.batches(experiment, client, count, generator):
            model(images.to(device))
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum


def evaluate(model: nn.Module, data: FederatedData, first: int, last: int) -> tuple[int, float]:
    """Right answers and summed loss on the test images `first` to `last`, untouched and normalised."""
    device = next(model.parameters()).device
    model.eval()
    right, loss = 0, 0.0
    with torch.no_grad():
        for at in range(first, last, EVALUATION_BATCH):
            part = slice(at, min(last, at + EVALUATION_BATCH))
            images = normalise(as_floats(data.test_images[part]), data.mean, data.std)
            answers, labels = model(images.to(device)), data.test_labels[part].to(device)
            right += int((answers.argmax(1) == labels).sum())
            loss += float(functional.cross_entropy(answers.double(), labels, reduction="sum"))
    return right, loss


def _optimiser(model: nn.Module, experiment: Experiment, rate: float) -> torch.optim.Optimizer:
    parameters: list[Tensor] = list(model.parameters())
    if experiment.optimiser == "adam":
        return torch.optim.Adam(parameters, lr=rate)
    return torch.optim.SGD(parameters, lr=rate, momentum=0.9)
