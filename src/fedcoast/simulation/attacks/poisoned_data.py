"""Attackers whose training is honest and whose data are not."""

import torch
from torch import Tensor

TARGET = 0
TRIGGER = 2  # pixels a side, in the corner, white
BACKDOORED = 2  # every second image carries the trigger


def flipped_labels(labels: Tensor, classes: int) -> Tensor:
    """Label c becomes classes − 1 − c."""
    return classes - 1 - labels


def with_backdoor(images: Tensor, labels: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """The images and the attacker's labels with a trigger in every second of its samples, all labelled class 0."""
    chosen = torch.arange(0, len(indices), BACKDOORED)
    images, labels = images.clone(), labels.clone()
    images[indices[chosen], :TRIGGER, :TRIGGER] = 255
    labels[chosen] = TARGET
    return images, labels
