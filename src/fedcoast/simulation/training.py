"""Local training of one client, and evaluation of a model: pure functions of model, data and seed."""

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

# Images that pass through the network at once, chosen so that activations fit the processor's cache. Models with batch
# norm are not here, because part of a batch has other statistics than the whole. See benchmarks/training_options.py.
MICRO_BATCH = {"tiny-resnet": 256, "convnet": 32, "resnet4": 32}


class Interrupted(Exception):
    """Training was stopped on request."""


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
    """Train the model as the client does in round `number`; random draws depend on client, round and seed only."""
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


def _add_gradients(model: nn.Module, experiment: Experiment, batch: Tensor, labels: Tensor) -> None:
    """Accumulate the gradient of the batch's mean loss over its micro-batches."""
    size = MICRO_BATCH.get(experiment.model, len(labels))
    memory_format = MEMORY_FORMAT[experiment.model]
    bfloat16 = experiment.precision == "bfloat16"
    for part, targets in zip(torch.split(batch, size), torch.split(labels, size), strict=True):
        with torch.autocast(part.device.type, torch.bfloat16, enabled=bfloat16):
            # Autocast would convert the images in the first layer; here one copy changes layout and precision.
            images = part.to(torch.bfloat16 if bfloat16 else part.dtype, memory_format=memory_format)
            logits = model(images)
        loss = functional.cross_entropy(logits.float(), targets, reduction="sum") / len(labels)
        loss.backward()  # type: ignore[no-untyped-call]


def refresh_statistics(model: nn.Module, experiment: Experiment, data: FederatedData, client: int, number: int) -> None:
    """Recompute batch-norm statistics on the client's data with the model's current weights, without training."""
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
    """Correct predictions and summed loss on the test images `first` to `last`, normalised but not degraded."""
    device = next(model.parameters()).device
    model.eval()
    correct, loss = 0, 0.0
    with torch.no_grad():
        for at in range(first, last, EVALUATION_BATCH):
            part = slice(at, min(last, at + EVALUATION_BATCH))
            images = normalise(as_floats(data.test_images[part]), data.mean, data.std)
            logits, labels = model(images.to(device)), data.test_labels[part].to(device)
            correct += int((logits.argmax(1) == labels).sum())
            loss += float(functional.cross_entropy(logits.double(), labels, reduction="sum"))
    return correct, loss


def _optimiser(model: nn.Module, experiment: Experiment, rate: float) -> torch.optim.Optimizer:
    parameters: list[Tensor] = list(model.parameters())
    if experiment.optimiser == "adam":
        return torch.optim.Adam(parameters, lr=rate, foreach=True)  # the same bits as the default on a CPU
    return torch.optim.SGD(parameters, lr=rate, momentum=0.9)
