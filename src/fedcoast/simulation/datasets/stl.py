"""STL-10's labelled part: 96×96 colour images as raw bytes, each of the planes R, G, B written column by column.

Coates, Lee, Ng, An Analysis of Single-Layer Networks in Unsupervised Feature Learning, AISTATS 2011.
Anything can be written in this layout, so the name STL-10 is given to known bytes only: the published files, and one
known part of them (`published.STL10_RECOVERED`), whose title says what it is.
"""

import numpy as np

from fedcoast.simulation.datasets.checksums import holds
from fedcoast.simulation.datasets.dataset import Dataset, Images, Labels
from fedcoast.simulation.datasets.labels import checked, named
from fedcoast.simulation.datasets.published import STL10, STL10_RECOVERED, Published
from fedcoast.simulation.datasets.source_files import File, Files

TITLE = "STL-10"
RECOVERED_TITLE = (
    "4,001 of the 5,000 STL-10 training images, recovered from renderings, 3,001 to train and 1,000 to test"
)
LOOK_ALIKE = "STL-10 layout (not STL-10)"
CLASSES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
SIDE = 96
BYTES = 3 * SIDE * SIDE


def decode_stl(files: Files) -> Dataset:
    """The four labelled files; the title follows from what they hold, not from what they are called."""
    title = _title(files)
    classes = _classes(files) if title == LOOK_ALIKE else CLASSES
    train_images, train_labels = _part(files, "train", len(classes))
    test_images, test_labels = _part(files, "test", len(classes))
    return Dataset(
        name="stl10",
        title=title,
        train_images=train_images,
        train_labels=train_labels,
        test_images=test_images,
        test_labels=test_labels,
        classes=classes,
    )


def known() -> dict[str, tuple[Published, ...]]:
    """The titles that bytes can earn."""
    return {TITLE: STL10, RECOVERED_TITLE: STL10_RECOVERED}


def _title(files: Files) -> str:
    return next((title for title, published in known().items() if holds(files, published)), LOOK_ALIKE)


def _classes(files: Files) -> tuple[str, ...]:
    if "class_names.txt" in files:
        file = files["class_names.txt"]
        lines = [line for line in file.data.decode("utf-8", "replace").splitlines() if line.strip()]
        return named(lines, classes=max(len(lines), 1), file=file)
    # Nobody named them: there are as many as the labels say, ten at most as in STL-10.
    highest = max(max(files[f"{part}_y.bin"].data, default=1) for part in ("train", "test"))
    return tuple(f"class {number}" for number in range(1, min(max(highest, 1), len(CLASSES)) + 1))


def _part(files: Files, part: str, classes: int) -> tuple[Images, Labels]:
    images = _images(files[f"{part}_X.bin"])
    file = files[f"{part}_y.bin"]
    values = np.frombuffer(file.data, np.uint8)
    return images, checked(values, images=len(images), first=1, classes=classes, file=file)


def _images(file: File) -> Images:
    if not file.data or len(file.data) % BYTES:
        raise file.refuse(f"a multiple of {BYTES:,} bytes (3×96×96 an image)", f"{len(file.data):,} bytes")
    planes = np.frombuffer(file.data, np.uint8).reshape(-1, 3, SIDE, SIDE)
    return np.ascontiguousarray(planes.transpose(0, 3, 2, 1))
