"""A cache of decoded datasets: PNGs and archives are decoded once, not at every start.

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


def cache_file(root: Path, name: str) -> Path:
    """The file with the decoded dataset."""
    return root / f"{name}.decoded.npz"


def read_cached(path: Path, stamp: str) -> Dataset | None:
    """The cached dataset, if it was decoded from the files with this stamp and is undamaged."""
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
    except Exception:  # whatever the damage, the source is still there and is decoded again
        return None


def read_cached_title(path: Path, stamp: str) -> str | None:
    """The title alone, without reading the images."""
    try:
        with open_plain(path, follow=True) as stream:
            check_npz(path, stream, "FEDCOAST_MAX_DATASET")
            arrays = np.load(stream, allow_pickle=False)
            return str(arrays["title"]) if str(arrays["stamp"]) == stamp else None
    except Exception:  # as above
        return None


def write_cached(path: Path, stamp: str, dataset: Dataset) -> None:
    """Write the dataset beside its source; if that folder is read-only, the next start decodes again."""
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
