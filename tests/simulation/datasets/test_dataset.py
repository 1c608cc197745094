import numpy as np
import pytest

from fedcoast.errors import BadSetting
from fedcoast.simulation.datasets import Dataset


def build(**changes):
    content = {
        "name": "mine",
        "title": "Mine",
        "train_images": np.zeros((2, 4, 4, 1), np.uint8),
        "train_labels": np.array([0, 1]),
        "test_images": np.zeros((1, 4, 4, 1), np.uint8),
        "test_labels": np.array([1]),
        "classes": ("a", "b"),
    }
    return Dataset(**(content | changes))


@pytest.mark.parametrize("array", ["train_images", "train_labels", "test_images", "test_labels"])
def test_nobody_can_change_a_dataset(array):
    with pytest.raises(ValueError, match="read-only"):
        getattr(build(), array)[0] = 0


def test_the_callers_own_array_stays_as_it_was():
    images = np.zeros((2, 4, 4, 1), np.uint8)
    build(train_images=images)
    images[0] = 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_images": np.zeros((2, 4, 4, 1))}, "train images must be uint8 .* got float64"),
        ({"test_images": np.zeros((1, 4, 4), np.uint8)}, r"test images must be uint8 .* shape \(1, 4, 4\)"),
        ({"train_labels": np.array([0])}, "train labels must be 2 int64 numbers"),
        ({"train_labels": np.array([0.0, 1.0])}, "got float64"),
        ({"train_labels": np.array([0, 2])}, "train labels must lie in 0 to 1, one per class; got 0 to 2"),
        ({"train_labels": np.array([-1, 1])}, "got -1 to 1"),
        (
            {"test_images": np.zeros((0, 4, 4, 1), np.uint8), "test_labels": np.array([], np.int64)},
            "no labels at all",
        ),
        ({"test_images": np.zeros((1, 5, 5, 1), np.uint8)}, "must have one shape"),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(changes, message):
    with pytest.raises(BadSetting, match=message):
        build(**changes)
