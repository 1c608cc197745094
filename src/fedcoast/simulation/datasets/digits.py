"""Digits: 1,797 handwritten digits of 8×8 pixels that come with scikit-learn. Nothing to fetch, nothing to lose."""

import hashlib
from typing import Any

import numpy as np

from fedcoast.errors import require
from fedcoast.simulation.datasets.dataset import Dataset

TITLE = "Digits (scikit-learn)"
# Of the 8-bit pixels and the labels, in the order scikit-learn gives them.
SHA256 = "cc60545fa7fa1a8c9f1ff3640a09ecf808f2778025053c29f35219dead5461ca"


def load_digits() -> Dataset:
    """Split the digits 1437/360, the same for everyone, without a random number.

    Sorted by class (in the published order within each), every fifth digit is a test digit: each class gives
    a fifth of itself. Brightness 0 to 16 becomes v·255 // 16, so 0 stays 0 and 16 becomes 255.
    """
    images, labels = _bundled()
    test = np.zeros(len(labels), dtype=bool)
    test[np.argsort(labels, kind="stable")[::5]] = True
    return Dataset(
        name="digits",
        title=TITLE,
        train_images=images[~test],
        train_labels=labels[~test],
        test_images=images[test],
        test_labels=labels[test],
        classes=tuple("0123456789"),
    )


def digits_sha256() -> str:
    """What the installed scikit-learn really holds."""
    images, labels = _bundled()
    return hashlib.sha256(images.tobytes() + labels.astype("<i8").tobytes()).hexdigest()


def _bundled() -> tuple[Any, Any]:
    content = require("sklearn.datasets", extra="lab").load_digits()
    brightness = content.images.astype(np.int64)
    images = (brightness * 255 // 16).astype(np.uint8)[..., np.newaxis]
    return images, content.target.astype(np.int64)
