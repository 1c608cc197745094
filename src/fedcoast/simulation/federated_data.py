"""The data of a federation: images as tensors, the samples of each client, and how a batch is drawn."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
import torch
from torch import Tensor

from fedcoast.simulation.attacks import attack_named
from fedcoast.simulation.attacks.poisoned_data import flipped_labels, with_backdoor
from fedcoast.simulation.datasets import Dataset, load
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.settings import Setting, client_labels, setting_named, shards, transform

# One integer seed feeds every random choice; each kind of choice has a stream of its own, so that adding a
# round, a client or an evaluation never shifts the draws of another.
SHARDS, LABELS, MODEL, CLIENTS, BATCHES, ATTACK = range(6)


def stream(seed: int, *path: int) -> np.random.Generator:
    """An independent random generator for each path of integers below one seed."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=path))


def torch_stream(seed: int, *path: int) -> torch.Generator:
    return torch.Generator().manual_seed(int(stream(seed, *path).integers(2**63)))


@dataclass(frozen=True)
class FederatedData:
    """Read-only data of a federation; the image tensors may be in shared memory."""

    title: str
    setting: Setting
    images: Tensor
    test_images: Tensor
    test_labels: Tensor
    client_indices: tuple[Tensor, ...]
    client_labels: tuple[Tensor, ...]
    classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    flip: bool

    @property
    def channels(self) -> int:
        return self.images.shape[3]

    @property
    def size(self) -> int:
        return self.images.shape[1]

    def share(self) -> "FederatedData":
        """Move the data to memory that worker processes see without a copy."""
        for tensor in (self.images, self.test_images, self.test_labels, *self.client_indices, *self.client_labels):
            tensor.share_memory_()  # type: ignore[no-untyped-call]
        return self

    def batches(
        self, experiment: Experiment, client: int, count: int, generator: torch.Generator
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """`count` batches as the client sees them; every sample is drawn equally often."""
        indices, labels = self.client_indices[client], self.client_labels[client]
        passes = ceil(count * experiment.batch / len(indices))
        order = torch.cat([torch.randperm(len(indices), generator=generator) for _ in range(passes)])
        for batch in torch.split(order[: count * experiment.batch], experiment.batch):
            images = transform(
                as_floats(self.images[indices[batch]]),
                self.setting,
                client,
                len(self.client_indices),
                generator,
                mean=self.mean,
                std=self.std,
                augment=experiment.augment,
                flip=self.flip,
            )
            yield images, labels[batch]

    def steps(self, experiment: Experiment, client: int) -> int:
        """How many batches the client trains on in a round."""
        if experiment.steps is not None:
            return experiment.steps
        return max(1, round(experiment.epochs * len(self.client_indices[client]) / experiment.batch))


def prepare(experiment: Experiment, dataset: Dataset | None = None) -> FederatedData:
    """Load the data, unless they are given, and split them over the clients."""
    dataset = dataset or load(experiment.dataset)
    setting = setting_named(experiment.setting)
    labels = dataset.train_labels
    parts = shards(setting, labels, experiment.clients, stream(experiment.seed, SHARDS))
    labels_by_client = client_labels(setting, labels, parts, len(dataset.classes), stream(experiment.seed, LABELS))
    scaled = dataset.train_images.reshape(-1, dataset.train_images.shape[3]) / np.float32(255)
    data = FederatedData(
        title=dataset.title,
        setting=setting,
        images=torch.from_numpy(dataset.train_images.copy()),
        test_images=torch.from_numpy(dataset.test_images[: experiment.tests].copy()),
        test_labels=torch.from_numpy(dataset.test_labels[: experiment.tests].copy()),
        client_indices=tuple(torch.from_numpy(part.astype(np.int64)) for part in parts),
        client_labels=tuple(torch.from_numpy(own.astype(np.int64)) for own in labels_by_client),
        classes=len(dataset.classes),
        mean=tuple(scaled.mean(axis=0, dtype=np.float64).tolist()),
        std=tuple(scaled.std(axis=0, dtype=np.float64).tolist()),
        flip=experiment.dataset != "digits",  # a mirrored 2 is no 2
    )
    return data if experiment.attack is None else _poisoned(data, experiment)


def _poisoned(data: FederatedData, experiment: Experiment) -> FederatedData:
    """The data with those of the attackers changed, where the attack is in the data."""
    attack = attack_named(experiment.attack or "")
    images, labels = data.images, list(data.client_labels)
    for client in attack.attackers(experiment.attacker or 0, experiment.clients):
        if attack.data == "label flip":
            labels[client] = flipped_labels(labels[client], data.classes)
        elif attack.data == "backdoor":
            images, labels[client] = with_backdoor(images, labels[client], data.client_indices[client])
    return replace(data, images=images, client_labels=tuple(labels))


def as_floats(images: Tensor) -> Tensor:
    """uint8 (n, height, width, channels) to floats in [0, 1] (n, channels, height, width), channels last in memory."""
    return images.permute(0, 3, 1, 2).float().div_(255)
