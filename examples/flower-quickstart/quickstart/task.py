"""The model, the data and how each of the five sites spoils its own."""

from dataclasses import dataclass

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

HELD_OUT = 297  # images that no site has; the server tells the accuracy on them, no score uses it


@dataclass(frozen=True)
class Site:
    """What is wrong with a site's data: noise on the images, and the share of labels that is wrong."""

    name: str
    noise: float = 0.0
    wrong_labels: float = 0.0
    idle: bool = False


SITES = (
    Site("berlin"),
    Site("oslo", noise=0.5),
    Site("rome", wrong_labels=0.4),
    Site("cairo", wrong_labels=1.0),
    Site("lima", idle=True),  # returns the model it was sent: a free rider
)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(images))


def digits() -> tuple[np.ndarray, np.ndarray]:
    """All 1,797 images of 8 × 8 pixels, in [0, 1], in one fixed random order."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    return (images[order] / 16).astype(np.float32), labels[order].astype(np.int64)


def site_data(partition: int, partitions: int) -> DataLoader:
    """The site's share of the images, spoiled as its data are."""
    images, labels = digits()
    mine = np.arange(HELD_OUT, len(labels))[partition::partitions]
    site, rng = SITES[partition % len(SITES)], np.random.default_rng(partition)
    images, labels = images[mine], labels[mine]
    images = images + site.noise * rng.standard_normal(images.shape).astype(np.float32)
    wrong = rng.random(len(labels)) < site.wrong_labels
    labels = np.where(wrong, (labels + rng.integers(1, 10, len(labels))) % 10, labels)
    data = TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))
    return DataLoader(data, batch_size=20, shuffle=True, generator=torch.Generator().manual_seed(partition))


def train(net: Net, data: DataLoader, epochs: int, rate: float) -> float:
    """Train in place; returns the mean loss of the last epoch."""
    torch.set_num_threads(1)
    optimiser = torch.optim.SGD(net.parameters(), lr=rate)
    net.train()
    losses = [0.0]
    for _ in range(epochs):
        losses = []
        for images, labels in data:
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(net(images), labels)
            loss.backward()
            optimiser.step()
            losses.append(float(loss.detach()))
    return float(np.mean(losses))


def accuracy(net: Net) -> float:
    """On the images that no site has."""
    images, labels = digits()
    with torch.no_grad():
        predicted = net(torch.from_numpy(images[:HELD_OUT])).argmax(dim=1).numpy()
    return float((predicted == labels[:HELD_OUT]).mean())
