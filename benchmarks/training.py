"""How fast `federate` trains, against a plain PyTorch loop over the same clients, batches and steps.

    python -m benchmarks.training [--smoke]

Each contender trains the same rounds of the same federation: CIFAR-10-shaped random images, TinyResNet, six clients
(with five alike, two workers could gain no more than 5/3). Contenders take turns, and the fastest turn of each counts;
the first turn, which starts the workers, does not. All contenders in this process reuse freed memory once a federation
has started, the plain loop included.
"""

import sys
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from benchmarks.record import keep
from fedcoast.simulation.datasets import Dataset
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federated_data import BATCHES, prepare, torch_stream
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.training import evaluate, new_model


def random_dataset(images: int, tests: int = 500) -> Dataset:
    rng = np.random.default_rng(0)
    shape = (images, 32, 32, 3)
    return Dataset(
        name="random",
        title="random images of CIFAR-10's shape",
        train_images=rng.integers(0, 256, shape, dtype=np.uint8),
        train_labels=rng.integers(0, 10, images),
        test_images=rng.integers(0, 256, (tests, *shape[1:]), dtype=np.uint8),
        test_labels=rng.integers(0, 10, tests),
        classes=tuple("0123456789"),
    )


def plain_loop(experiment: Experiment, dataset: Dataset, threads: int) -> Iterator[None]:
    """What one would write by hand: every client in turn, then the mean, then the test images."""
    torch.set_num_threads(threads)
    data = prepare(experiment, dataset)
    model = relu_first(new_model(experiment, data))
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for number in range(1, experiment.rounds + 1):
        uploads = []
        for client in range(experiment.clients):
            model.load_state_dict(state)
            model.train()
            optimiser = torch.optim.Adam(model.parameters(), lr=experiment.learning_rate)
            generator = torch_stream(experiment.seed, BATCHES, number, client)
            for images, labels in data.batches(experiment, client, data.steps(experiment, client), generator):
                optimiser.zero_grad()
                functional.cross_entropy(model(images), labels).backward()
                optimiser.step()
            uploads.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
        state = {name: torch.stack([upload[name] for upload in uploads]).mean(0) for name in state}
        model.load_state_dict(state)
        evaluate(model, data, 0, len(data.test_labels))
        yield


def relu_first(model: nn.Module) -> nn.Module:
    """TinyResNet with ReLU before pooling, as it is usually written; the numbers are the same."""
    layers = dict(model.named_children())
    order = ("stem", "relu", "shrink", "block1", "flat", "head")
    return nn.Sequential(OrderedDict((name, layers[name]) for name in order))


def turns(contenders: dict[str, Iterator[object]], rounds: int) -> dict[str, float]:
    """Seconds of each contender's fastest round; the first round warms up and starts workers."""
    best: dict[str, float] = {}
    for turn in range(rounds):
        for name, contender in contenders.items():
            began = time.perf_counter()
            next(contender)
            if turn > 0:
                best[name] = min(best.get(name, float("inf")), time.perf_counter() - began)
    return best


def run(smoke: bool) -> None:
    images, batch, rounds = (500, 20, 3) if smoke else (6_000, 100, 4)
    experiment = Experiment(
        dataset="random", model="tiny-resnet", setting="noise", clients=6, rounds=rounds, batch=batch
    )
    dataset = random_dataset(images)
    # In turns of one process at a time: an idle worker pool costs nothing, a second busy one would.
    contenders: dict[str, Iterator[object]] = {
        "plain loop, 1 thread": plain_loop(experiment, dataset, 1),
        "federate, 1 worker": iter(Federation(experiment, workers=1, dataset=dataset)),
        "federate, 2 workers": iter(Federation(experiment, workers=2, dataset=dataset)),
        "federate, 1 worker, bfloat16": iter(Federation(replace(experiment, precision="bfloat16"), dataset=dataset)),
    }
    seconds = turns(contenders, rounds)
    seconds |= turns({"plain loop, 2 threads": plain_loop(experiment, dataset, 2)}, rounds)
    base = seconds["plain loop, 1 thread"]
    measured = {
        name: {"seconds a round": round(t, 3), "images a second": round(images / t), "speed-up": round(base / t, 2)}
        for name, t in seconds.items()
    }
    print(f"{'training':<32}{'images/s':>10}{'against the plain loop, 1 thread':>36}")
    for name, figures in measured.items():
        print(f"{name:<32}{figures['images a second']:>10}{figures['speed-up']:>35.2f}×")
    if not smoke:
        keep("training-speed", "python -m benchmarks.training", {"rounds": rounds - 1, "measured": measured})


if __name__ == "__main__":
    run("--smoke" in sys.argv)
