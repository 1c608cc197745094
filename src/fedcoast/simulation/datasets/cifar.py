"""CIFAR-10 and CIFAR-100 as published (the "python version": pickles of 3072 bytes per image, planes R, G, B).

Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from fedcoast.simulation.datasets.checksums import holds
from fedcoast.simulation.datasets.dataset import Dataset, Images, Labels, counted
from fedcoast.simulation.datasets.labels import checked, named
from fedcoast.simulation.datasets.pickles import read_pickle
from fedcoast.simulation.datasets.published import CIFAR100, CIFAR100_TRAINING_IMAGES
from fedcoast.simulation.datasets.source_files import File, Files

REORDERED_TITLE = "CIFAR-100 (all 50,000 training images, order not as published)"
COUNTS = (50_000, 10_000)
BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
CIFAR10_CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip


def decode_cifar10(files: Files) -> Dataset:
    """Five training batches one after the other, and the test batch."""
    classes: tuple[str, ...] = CIFAR10_CLASSES
    if "batches.meta" in files:
        meta = files["batches.meta"]
        classes = named(read_pickle(meta).get("label_names"), classes=10, file=meta)
    train = [_batch(files[name], "labels", 10) for name in BATCHES]
    return dataset("cifar10", "CIFAR-10", train, _batch(files["test_batch"], "labels", 10), classes)


def decode_cifar100(files: Files) -> Dataset:
    """The hundred fine classes; the twenty coarse ones are not used here."""
    meta = files["meta"]
    classes = named(read_pickle(meta).get("fine_label_names"), classes=100, file=meta)
    train, test = (_batch(files[part], "fine_labels", 100) for part in ("train", "test"))
    title = "CIFAR-100"
    if not holds(files, CIFAR100) and unordered_digest(*train) == CIFAR100_TRAINING_IMAGES:
        title = REORDERED_TITLE
    return dataset("cifar100", title, [train], test, classes)


def unordered_digest(images: Images, labels: Labels) -> str:
    """Stands for the images with their labels, whatever their order: the sum of their SHA-256 digests."""
    digests = (
        hashlib.sha256(image.tobytes() + bytes([label])).digest() for image, label in zip(images, labels, strict=True)
    )
    return f"{sum(map(int.from_bytes, digests)) % 2**256:064x}"


def dataset(
    name: str,
    title: str,
    train: Sequence[tuple[Images, Labels]],
    test: tuple[Images, Labels],
    classes: tuple[str, ...],
) -> Dataset:
    """Join the batches; a copy that holds fewer images says so in its title."""
    images = np.concatenate([batch for batch, _ in train])
    return Dataset(
        name=name,
        title=counted(title, (len(images), len(test[0])), COUNTS),
        train_images=images,
        train_labels=np.concatenate([labels for _, labels in train]),
        test_images=test[0],
        test_labels=test[1],
        classes=classes,
    )


def _batch(file: File, key: str, classes: int) -> tuple[Images, Labels]:
    content = read_pickle(file)
    missing = [name for name in ("data", key) if name not in content]
    if missing:
        raise file.refuse(f"the entries 'data' and {key!r}", f"no {missing[0]!r}")
    images = _images(content["data"], file)
    return images, checked(content[key], images=len(images), first=0, classes=classes, file=file)


def _images(data: Any, file: File) -> Images:
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (3072,):
        came = f"{data.dtype} of shape {data.shape}" if isinstance(data, np.ndarray) else type(data).__name__
        raise file.refuse("'data' as uint8 of shape (n, 3072)", came)
    return np.ascontiguousarray(data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
