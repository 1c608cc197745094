"""Labels as they come out of any file, checked: whole numbers, one per image, each the number of a class."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fedcoast.simulation.datasets.dataset import Labels
from fedcoast.simulation.datasets.source_files import File


def checked(values: Any, *, images: int, first: int, classes: int, file: File) -> Labels:
    """Labels from 0 as int64, or the error that names the file; `first` is what the file calls the first class."""
    if not isinstance(values, np.ndarray | list | tuple) or not _whole(values):
        raise file.refuse("labels that are whole numbers", type(values).__name__ + " of something else")
    labels = np.asarray(values)
    if len(labels) != images:
        raise file.refuse(f"{images:,} labels, one per image", f"{len(labels):,}")
    if images == 0:
        raise file.refuse("at least one image", "none")
    low, high = int(labels.min()), int(labels.max())
    if low < first or high >= first + classes:
        raise file.refuse(f"labels from {first} to {first + classes - 1}", f"labels from {low} to {high}")
    return labels.astype(np.int64) - first


def named(values: Any, *, classes: int, file: File) -> tuple[str, ...]:
    """The names of the classes, as many as there must be."""
    names = tuple(_texts(values)) if isinstance(values, Sequence) and not isinstance(values, str | bytes) else ()
    if len(names) != classes or not all(names):
        raise file.refuse(f"{classes} class names", f"{len(names)}")
    return names


def _whole(values: Any) -> bool:
    if isinstance(values, np.ndarray):
        return values.ndim == 1 and values.dtype.kind in "iu"
    return all(type(value) is int for value in values)


def _texts(values: Iterable[object]) -> Iterable[str]:
    for value in values:
        yield value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
