"""CIFAR-10 and CIFAR-100 as published (the "python version": pickles of 3072 bytes per image, planes R, G, B).

Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedcoast.lab.datasets.dataset import Dataset, Images, Labels, counted
from fedcoast.lab.datasets.files import File, Files
from fedcoast.lab.datasets.labels import checked, named
from fedcoast.lab.datasets.pickles import read_pickle

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
    train = _batch(files["train"], "fine_labels", 100)
    return dataset("cifar100", "CIFAR-100", [train], _batch(files["test"], "fine_labels", 100), classes)


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
