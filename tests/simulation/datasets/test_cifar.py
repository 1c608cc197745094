import pickle

import numpy as np
import pytest

from fedcoast.errors import BadFile
from fedcoast.simulation.datasets import load


def rewrite(path, **changes):
    content = pickle.loads(path.read_bytes())
    path.write_bytes(pickle.dumps(content | changes, protocol=4))


def test_a_folder_of_cifar10_is_read_in_the_published_order(write):
    _, truth = write.cifar10()
    cifar = load("cifar10")
    assert np.array_equal(cifar.train_images, np.concatenate([truth[f"data_batch_{n}"] for n in range(1, 6)]))
    assert np.array_equal(cifar.test_images, truth["test_batch"])
    assert cifar.train_labels.tolist() == [0, 1, 2] * 5
    assert cifar.train_labels.dtype == np.int64
    assert cifar.classes[:2] == ("kind 0", "kind 1")


def test_the_published_archive_of_cifar10_reads_like_the_folder(write):
    folder, truth = write.cifar10()
    write.archive(folder, "cifar-10-python.tar.gz")
    cifar = load("cifar10")
    assert np.array_equal(cifar.test_images, truth["test_batch"])
    assert sorted(path.name for path in write.root.iterdir()) == ["cifar-10-python.tar.gz", "cifar10.decoded.npz"]


def test_a_pixel_is_where_the_published_layout_says(write):
    folder, _ = write.cifar10()
    data = np.zeros((3, 3072), np.uint8)
    data[0, 1024 + 2 * 32 + 5] = 200  # plane 1 (green), row 2, column 5
    rewrite(folder / "test_batch", data=data)
    assert np.argwhere(load("cifar10").test_images).tolist() == [[0, 2, 5, 1]]


def test_cifar10_without_its_names_is_given_the_known_ones(write):
    folder, _ = write.cifar10()
    (folder / "batches.meta").unlink()
    assert load("cifar10").classes[9] == "truck"


def test_cifar100_has_its_fine_classes_from_folder_and_archive(write):
    folder, truth = write.cifar100()
    from_folder = load("cifar100")
    write.archive(folder, "cifar-100-python.tar.gz")
    for cifar in (from_folder, load("cifar100")):
        assert np.array_equal(cifar.train_images, truth["train"])
        assert cifar.train_labels.tolist() == [99, 98, 97]
        assert len(cifar.classes) == 100


def test_a_partial_copy_says_so_in_its_title(write):
    write.cifar100(count=2)
    assert load("cifar100").title == "CIFAR-100 (2 of 50,000 training images, 2 of 10,000 test images)"


def test_a_truncated_batch_is_refused_by_name(write):
    folder, _ = write.cifar10()
    path = folder / "data_batch_3"
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(BadFile, match=r"data_batch_3: wanted a whole pickle, got .*; it is torn or altered: remove it"):
        load("cifar10")


def test_a_missing_batch_is_named(write):
    folder, _ = write.cifar10()
    (folder / "data_batch_2").unlink()
    with pytest.raises(BadFile, match=r"cifar-10-batches-py: wanted .* got no data_batch_2; complete the copy"):
        load("cifar10")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": np.zeros((3, 3071), np.uint8)}, r"wanted 'data' as uint8 of shape \(n, 3072\), got uint8 of shape"),
        ({"data": np.zeros((3, 3072), np.int64)}, "got int64"),
        ({"data": np.uint8(0) * np.zeros(3072, np.uint8)}, r"shape \(3072,\)"),
        ({"data": [1, 2, 3]}, "got list"),
        ({"data": np.zeros((0, 3072), np.uint8), "labels": []}, "wanted at least one image, got none"),
        ({"labels": [0, 1, 10]}, "wanted labels from 0 to 9, got labels from 0 to 10"),
        ({"labels": [0, -1, 2]}, "got labels from -1 to 2"),
        ({"labels": [0, 1, 2**80]}, "wanted labels from 0 to 9"),
        ({"labels": [0, 1]}, "wanted 3 labels, one per image, got 2"),
        ({"labels": [0, 1, "cat"]}, "wanted labels that are whole numbers"),
        ({"labels": [0, 1, True]}, "wanted labels that are whole numbers"),
        ({"labels": None}, "wanted labels that are whole numbers, got NoneType"),
        ({"labels": np.zeros((3, 1), np.int64)}, "wanted labels that are whole numbers"),
    ],
)
def test_a_batch_with_the_wrong_content_is_refused_by_name(write, changes, message):
    folder, _ = write.cifar10()
    rewrite(folder / "data_batch_5", **changes)
    with pytest.raises(BadFile, match=f"data_batch_5: .*{message}"):
        load("cifar10")


def test_a_batch_without_labels_is_refused_by_name(write):
    folder, _ = write.cifar100()
    (folder / "test").write_bytes(pickle.dumps({"data": np.zeros((1, 3072), np.uint8)}, protocol=2))
    with pytest.raises(BadFile, match="test: wanted the entries 'data' and 'fine_labels', got no 'fine_labels'"):
        load("cifar100")


@pytest.mark.parametrize("names", [None, [], ["one"], "abcdefghij" * 10, [""] * 100])
def test_class_names_that_are_not_a_hundred_are_refused(write, names):
    folder, _ = write.cifar100()
    (folder / "meta").write_bytes(pickle.dumps({"fine_label_names": names}))
    with pytest.raises(BadFile, match="meta: wanted 100 class names"):
        load("cifar100")


def test_labels_may_be_an_array(write):
    folder, _ = write.cifar10()
    rewrite(folder / "test_batch", labels=np.array([9, 8, 7], np.uint8))
    assert load("cifar10").test_labels.tolist() == [9, 8, 7]
