"""Against the data that lies beside the repository on the developers' machines; skipped elsewhere."""

from pathlib import Path

import numpy as np
import pytest

from fedcoast.lab.datasets import check, load

DATA = Path(__file__).parents[4] / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="no shared data beside the repository")


def test_a_part_of_cifar100_loads_and_is_known_for_what_it_is():
    cifar = load("cifar100", DATA)
    assert cifar.train_images.shape == (20_000, 32, 32, 3)
    assert cifar.test_images.shape == (10_000, 32, 32, 3)
    assert np.all(np.bincount(cifar.test_labels) == 100)
    assert cifar.classes[0] == "apple"
    assert cifar.title == "CIFAR-100 (20,000 of 50,000 training images)"
    assert [row.status for row in check("cifar100", DATA)] == ["differs", "published", "published"]


def test_scenes_in_stl10s_layout_load_and_are_not_called_stl10():
    scenes = load("stl10", DATA)
    assert scenes.train_images.shape == (1_500, 96, 96, 3)
    assert scenes.test_images.shape == (600, 96, 96, 3)
    assert len(scenes.classes) == 6
    assert scenes.title == "STL-10 layout (not STL-10)"
    assert {row.status for row in check("stl10", DATA)} == {"differs"}
    # Skies are bright and above the ground: upright images are brighter at the top.
    assert scenes.train_images[:, :20].mean() > scenes.train_images[:, -20:].mean()
