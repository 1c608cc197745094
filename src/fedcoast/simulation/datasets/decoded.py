"""Datasets kept as they were decoded, so that PNGs and archives are unpacked once and not at every start.

One uncompressed .npz per dataset: a single file can be replaced in one step, and zip's checksums catch damage.
"""

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from fedcoast.simulation.datasets.dataset import Dataset
from fedcoast.storage.files import open_plain
from fedcoast.storage.model_files import check_npz

ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")


def shelf(root: Path, name: str) -> Path:
    """Where a decoded dataset is kept."""
    return root / f"{name}.decoded.npz"


def recall(path: Path, stamp: str) -> Dataset | None:
    """What was kept, if it was decoded from the files of this stamp and is still whole."""
    if not path.is_file():
        return None
    try:
        with open_plain(path, follow=True) as stream:
            check_npz(path, stream, "FEDCOAST_MAX_DATASET")
            arrays = np.load(stream, allow_pickle=False)
            if str(arrays["stamp"]) != stamp:
                return None
            return Dataset(
                name=str(arrays["name"]),
                title=str(arrays["title"]),
                classes=tuple(str(name) for name in arrays["classes"]),
                **{array: arrays[array] for array in ARRAYS},
            )
    except Exception:  # however it is damaged, what it was made from is still there and is read again
        return None


def recall_title(path: Path, stamp: str) -> str | None:
    """The title alone, without reading the images."""
    try:
        with open_plain(path, follow=True) as stream:
            check_npz(path, stream, "FEDCOAST_MAX_DATASET")
            arrays = np.load(stream, allow_pickle=False)
            return str(arrays["title"]) if str(arrays["stamp"]) == stamp else None
    except Exception:  # as above
        return None


def keep(path: Path, stamp: str, dataset: Dataset) -> None:
    """Write it beside the copy; where that folder is read-only, the next start decodes again."""
    content: dict[str, Any] = {"stamp": stamp, "name": dataset.name, "title": dataset.title, "classes": dataset.classes}
    content |= {array: getattr(dataset, array) for array in ARRAYS}
    with contextlib.suppress(OSError):
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(handle, "wb") as stream:
                np.savez(stream, allow_pickle=False, **content)
            Path(temporary).replace(path)
        finally:
            Path(temporary).unlink(missing_ok=True)
