import gzip

import numpy as np
import pytest

from fedcoast.errors import BadFile
from fedcoast.simulation.datasets import load


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("place", ["fashion-mnist", "FashionMNIST/raw"])
def test_idx_files_are_read_plain_and_gzipped(write, zipped, place):
    _, truth = write.fashion(name=place, zipped=zipped)
    fashion = load("fashion-mnist")
    assert np.array_equal(fashion.train_images, truth["train"])
    assert np.array_equal(fashion.test_images, truth["t10k"])
    assert fashion.train_images.shape == (3, 28, 28, 1)
    assert fashion.test_labels.tolist() == [0, 1, 2]
    assert fashion.classes[9] == "Ankle boot"
    assert fashion.title.startswith("Fashion-MNIST (3 of 60,000 training images")


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_torn_gz_is_refused_by_name(write, share):
    folder, _ = write.fashion()
    path = folder / "train-images-idx3-ubyte.gz"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(BadFile, match=r"train-images-idx3-ubyte.gz: wanted "):
        load("fashion-mnist")


def test_a_gz_with_altered_content_is_refused_by_name(write):
    folder, _ = write.fashion()
    path = folder / "t10k-labels-idx1-ubyte.gz"
    whole = bytearray(path.read_bytes())
    whole[-8] ^= 1
    path.write_bytes(whole)
    with pytest.raises(BadFile, match=r"t10k-labels-idx1-ubyte.gz: wanted .*CRC check failed"):
        load("fashion-mnist")


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("train-images-idx3-ubyte", lambda d: b"\0\0\x08\x01" + d[4:], "IDX magic number 00000803, got 00000801"),
        ("train-labels-idx1-ubyte", lambda d: b"\0\0\x0d\x01" + d[4:], "IDX magic number 00000801, got 00000d01"),
        ("train-labels-idx1-ubyte", lambda d: b"", "got an empty file"),
        ("t10k-images-idx3-ubyte", lambda d: d[:9], "wanted an IDX header of 16 bytes, got 9"),
        ("t10k-images-idx3-ubyte", lambda d: d[:-1], "wanted 2,368 bytes for the shape .* got 2,367"),
        ("t10k-images-idx3-ubyte", lambda d: d + b"x", "got 2,369"),
        ("t10k-images-idx3-ubyte", lambda d: d[:4] + b"\xff" * 12 + d[16:], "bytes for the shape"),
        ("t10k-images-idx3-ubyte", lambda d: d[:12] + b"\0\0\0\x0e" + d[16:1192], "images of 28 by 28, got 28 by 14"),
        ("t10k-labels-idx1-ubyte", lambda d: d[:4] + b"\0\0\0\x02" + d[8:10], "wanted 3 labels, one per image, got 2"),
        ("t10k-labels-idx1-ubyte", lambda d: d[:-1] + b"\x0a", "wanted labels from 0 to 9, got labels from 0 to 10"),
    ],
)  # fmt: skip
def test_an_idx_file_that_is_not_what_it_should_be_is_refused_by_name(write, file, change, message):
    folder, _ = write.fashion(zipped=False)
    path = folder / file
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(BadFile, match=f"{file}: .*{message}"):
        load("fashion-mnist")


def test_a_plain_file_goes_before_its_gzipped_form(write):
    write.fashion(zipped=False)
    (write.root / "fashion-mnist" / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"other"))
    assert len(load("fashion-mnist").train_images) == 3
