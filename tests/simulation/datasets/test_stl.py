import hashlib

import numpy as np
import pytest

from fedcoast.errors import BadFile
from fedcoast.simulation.datasets import available, load, stl
from fedcoast.simulation.datasets.published import Published


def publish(folder, monkeypatch):
    """Let what is in the folder be what was published."""
    files = tuple(
        Published(path.name, path.stat().st_size, hashlib.md5(path.read_bytes()).hexdigest())
        for path in folder.iterdir()
    )
    monkeypatch.setattr(stl, "STL10", files)


def test_images_stand_upright_and_labels_start_at_nought(write):
    _, truth = write.stl()
    data = load("stl10")
    assert np.array_equal(data.train_images, truth["train"])
    assert np.array_equal(data.test_images, truth["test"])
    assert data.train_labels.tolist() == [0, 1, 2]


def test_a_byte_is_where_the_published_layout_says(write):
    folder, _ = write.stl(count=1)
    data = bytearray(3 * 96 * 96)
    data[2 * 96 * 96 + 7 * 96 + 4] = 9  # plane 2 (blue), column 7, row 4
    (folder / "test_X.bin").write_bytes(data)
    assert np.argwhere(load("stl10").test_images).tolist() == [[0, 4, 7, 2]]


def test_other_images_in_this_layout_are_never_called_stl10(write):
    write.stl()
    assert load("stl10").title == "STL-10 layout (not STL-10)"
    assert load("stl10").classes == ("class 1", "class 2", "class 3")
    assert next(line.title for line in available() if line.name == "stl10") == "STL-10 layout (not STL-10)"


def test_the_published_bytes_are_called_stl10_and_one_altered_byte_of_the_same_size_is_not(write, monkeypatch):
    folder, _ = write.stl()
    publish(folder, monkeypatch)
    assert load("stl10").title == "STL-10"
    assert load("stl10").classes[9] == "truck"
    path = folder / "test_X.bin"
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    assert load("stl10").title == "STL-10 layout (not STL-10)"


def test_class_names_are_read_where_they_are_given(write):
    folder, _ = write.stl()
    (folder / "class_names.txt").write_text("forest\nold town\nsea\n")
    assert load("stl10").classes == ("forest", "old town", "sea")


def test_labels_without_a_name_are_refused(write):
    folder, _ = write.stl()
    (folder / "class_names.txt").write_text("forest\nsea\n")
    with pytest.raises(BadFile, match=r"train_y.bin: wanted labels from 1 to 2, got labels from 1 to 3"):
        load("stl10")


def test_an_empty_list_of_names_is_refused(write):
    folder, _ = write.stl()
    (folder / "class_names.txt").write_text("\n")
    with pytest.raises(BadFile, match=r"class_names.txt: wanted 1 class names, got 0"):
        load("stl10")


def test_the_archive_reads_like_the_folder(write):
    folder, truth = write.stl()
    write.archive(folder, "stl10_binary.tar.gz")
    assert np.array_equal(load("stl10").test_images, truth["test"])
    assert load("stl10").title == "STL-10 layout (not STL-10)"
    assert next(line.title for line in available() if line.name == "stl10") == "STL-10 layout (not STL-10)"


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"x", lambda data: b""])
def test_a_file_of_another_size_is_refused_by_name(write, change):
    folder, _ = write.stl()
    path = folder / "train_X.bin"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(BadFile, match=r"train_X.bin: wanted a multiple of 27,648 bytes .* got [\d,]+ bytes"):
        load("stl10")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (bytes([1, 2]), "wanted 3 labels, one per image, got 2"),
        (bytes([0, 1, 2]), "wanted labels from 1 to 3, got labels from 0 to 2"),
        (bytes([1, 2, 11]), "wanted labels from 1 to 10, got labels from 1 to 11"),
        (b"", "wanted 3 labels, one per image, got 0"),
    ],
)
def test_labels_that_do_not_fit_are_refused_by_name(write, labels, message):
    folder, _ = write.stl()
    (folder / "test_y.bin").write_bytes(labels)
    with pytest.raises(BadFile, match=rf"test_y.bin: {message}"):
        load("stl10")
