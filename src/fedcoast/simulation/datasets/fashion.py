"""Fashion-MNIST: 28×28 grey images in MNIST's IDX files.

Xiao, Rasul, Vollgraf, Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning Algorithms, 2017.
"""

import math

import numpy as np

from fedcoast.simulation.datasets.dataset import Dataset, Images, Labels, counted
from fedcoast.simulation.datasets.labels import checked
from fedcoast.simulation.datasets.source_files import File, Files

TITLE = "Fashion-MNIST"
COUNTS = (60_000, 10_000)
CLASSES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip


def decode_fashion(files: Files) -> Dataset:
    """The training pair and the test pair (which MNIST calls t10k)."""
    train_images, train_labels = _part(files, "train")
    test_images, test_labels = _part(files, "t10k")
    return Dataset(
        name="fashion-mnist",
        title=counted(TITLE, (len(train_images), len(test_images)), COUNTS),
        train_images=train_images,
        train_labels=train_labels,
        test_images=test_images,
        test_labels=test_labels,
        classes=CLASSES,
    )


def read_idx(file: File, dimensions: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """An IDX array of unsigned bytes: two zeros, the type 8, the number of dimensions, their sizes, the bytes."""
    start = 4 + 4 * dimensions
    magic = bytes((0, 0, 8, dimensions))
    if file.data[:4] != magic:
        raise file.refuse(f"the IDX magic number {magic.hex()}", file.data[:4].hex() or "an empty file")
    if len(file.data) < start:
        raise file.refuse(f"an IDX header of {start} bytes", f"{len(file.data)}")
    shape = tuple(int(size) for size in np.frombuffer(file.data[4:start], ">u4"))
    expected = start + math.prod(shape)
    if len(file.data) != expected:
        raise file.refuse(f"{expected:,} bytes for the shape {shape} it announces", f"{len(file.data):,}")
    if 0 in shape:  # none of the others would be bounded by the length of the file
        raise file.refuse("an IDX array with something in it", f"the shape {shape}")
    return np.frombuffer(file.data, np.uint8, offset=start).reshape(shape)


def _part(files: Files, part: str) -> tuple[Images, Labels]:
    file = files[f"{part}-images-idx3-ubyte"]
    images = read_idx(file, 3)
    if images.shape[1:] != (28, 28):
        raise file.refuse("images of 28 by 28", f"{images.shape[1]} by {images.shape[2]}")
    file = files[f"{part}-labels-idx1-ubyte"]
    labels = checked(read_idx(file, 1), images=len(images), first=0, classes=10, file=file)
    return images[..., np.newaxis], labels
