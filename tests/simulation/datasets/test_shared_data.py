"""Against the data that lies beside the repository on the developers' machines, unpacked; skipped elsewhere."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fedcoast.simulation.datasets import available, check, load

SHARED = Path(__file__).parents[4] / "shared" / "data"
pytestmark = pytest.mark.skipif(not (SHARED / "unpack").is_file(), reason="no shared data beside the repository")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    subprocess.run([sys.executable, SHARED / "unpack", folder], check=True, capture_output=True)
    return folder


def test_all_of_cifar100_in_another_order_loads_and_says_so(data):
    cifar = load("cifar100", data)
    assert cifar.train_images.shape == (50_000, 32, 32, 3)
    assert np.all(np.bincount(cifar.train_labels) == 500)
    assert np.all(np.bincount(cifar.test_labels) == 100)
    assert cifar.classes[0] == "apple"
    assert cifar.title == "CIFAR-100 (all 50,000 training images, order not as published)"
    assert [row.status for row in check("cifar100", data)] == ["differs", "published", "published"]


def test_the_recovered_part_of_stl10_loads_and_its_title_says_what_it_is(data):
    title = "4,001 of the 5,000 STL-10 training images, recovered from renderings, 3,001 to train and 1,000 to test"
    images = load("stl10", data)
    assert images.train_images.shape == (3_001, 96, 96, 3)
    assert images.test_images.shape == (1_000, 96, 96, 3)
    assert images.classes[0] == "airplane"
    assert images.title == title
    assert next(line.title for line in available(data) if line.name == "stl10") == title


def test_one_changed_pixel_of_the_recovered_stl10_takes_its_name_away(data, tmp_path):
    copy = tmp_path / "stl10_binary"
    copy.mkdir()
    for file in (data / "stl10_binary").iterdir():
        content = bytearray(file.read_bytes())
        if file.name == "test_X.bin":
            content[0] ^= 1
        (copy / file.name).write_bytes(content)
    assert load("stl10", tmp_path).title == "STL-10 layout (not STL-10)"
