"""What every dataset is once it is read: four read-only arrays, and the names of the classes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedcoast.errors import BadSetting

Images = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images as uint8 (n, height, width, channels), labels as int64 from 0, in the published order.

    `name` is what the user typed, `title` what reports call it: the title is what the files turned out to be,
    so a partial copy or a look-alike never passes for the published dataset.
    """

    name: str
    title: str
    train_images: Images
    train_labels: Labels
    test_images: Images
    test_labels: Labels
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            images, labels = getattr(self, f"{part}_images"), getattr(self, f"{part}_labels")
            _refuse_mismatch(part, images, labels, len(self.classes))
            # Views, so that the caller's own arrays keep the flags they came with.
            object.__setattr__(self, f"{part}_images", _read_only(images))
            object.__setattr__(self, f"{part}_labels", _read_only(labels))
        if self.train_images.shape[1:] != self.test_images.shape[1:]:
            raise BadSetting(
                f"train and test images must have one shape; got {self.train_images.shape[1:]} and "
                f"{self.test_images.shape[1:]}"
            )


def counted(title: str, have: tuple[int, int], published: tuple[int, int]) -> str:
    """Say in the title itself when a copy holds another number of images than was published.

    >>> counted("CIFAR-100", (50_000, 10_000), (50_000, 10_000))
    'CIFAR-100'
    >>> counted("CIFAR-100", (20_000, 10_000), (50_000, 10_000))
    'CIFAR-100 (20,000 of 50,000 training images)'
    """
    parts = zip(have, published, ("training", "test"), strict=True)
    notes = [
        f"{came:,} {'of' if came < expected else 'instead of'} {expected:,} {part} images"
        for came, expected, part in parts
        if came != expected
    ]
    return f"{title} ({', '.join(notes)})" if notes else title


def _refuse_mismatch(part: str, images: Images, labels: Labels, classes: int) -> None:
    if images.dtype != np.uint8 or images.ndim != 4:
        raise BadSetting(
            f"{part} images must be uint8 of shape (n, height, width, channels); "
            f"got {images.dtype} of shape {images.shape}"
        )
    if labels.dtype != np.int64 or labels.shape != images.shape[:1]:
        raise BadSetting(
            f"{part} labels must be {len(images)} int64 numbers, one per image; "
            f"got {labels.dtype} of shape {labels.shape}"
        )
    if len(labels) == 0 or labels.min() < 0 or labels.max() >= classes:
        span = f"{labels.min()} to {labels.max()}" if len(labels) else "no labels at all"
        raise BadSetting(f"{part} labels must lie in 0 to {classes - 1}, one per class; got {span}")


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
