import os

import numpy as np
import pytest

from fedcoast.errors import BadFile
from fedcoast.simulation.datasets import available, catalogue, decoded, load


def refuse_to_decode(monkeypatch):
    def read(copy):
        raise AssertionError("decoded again")

    monkeypatch.setattr(catalogue.Copy, "read", read)


def test_pngs_are_decoded_once(write, monkeypatch):
    write.sprites()
    first = load("cifar10")
    refuse_to_decode(monkeypatch)
    second = load("cifar10")
    for field in ("name", "title", "classes"):
        assert getattr(first, field) == getattr(second, field)
    for array in decoded.ARRAYS:
        assert np.array_equal(getattr(first, array), getattr(second, array))
        assert not getattr(second, array).flags.writeable


def test_the_list_knows_a_decoded_copy_by_its_real_title(write):
    write.sprites()
    titles = [next(line.title for line in available() if line.name == "cifar10")]
    load("cifar10")
    titles.append(next(line.title for line in available() if line.name == "cifar10"))
    assert titles == ["CIFAR-10 (not as published)", "CIFAR-10 (15 of 50,000 training images, 3 of 10,000 test images)"]


def test_a_replaced_file_is_decoded_anew(write):
    folder, _ = write.sprites()
    load("cifar10")
    path = folder / "test_lables.json"
    state = path.stat()
    path.write_text("[9,9,9]")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    assert load("cifar10").test_labels.tolist() == [9, 9, 9]


def test_a_file_damaged_after_it_was_decoded_is_still_refused(write):
    folder, _ = write.sprites()
    load("cifar10")
    (folder / "test_batch.png").write_bytes(b"torn")
    with pytest.raises(BadFile, match=r"test_batch.png"):
        load("cifar10")


@pytest.mark.parametrize("damage", ["empty", "torn", "flipped", "text", "array"])
def test_what_was_kept_is_made_again_when_it_is_damaged(write, damage):
    _, truth = write.sprites()
    load("cifar10")
    cache = write.root / "cifar10.decoded.npz"
    whole = cache.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    if damage == "array":
        with cache.open("wb") as stream:
            np.save(stream, np.zeros(3))
    else:
        cache.write_bytes({"empty": b"", "torn": whole[:-100], "flipped": bytes(flipped), "text": b"hello"}[damage])
    assert np.array_equal(load("cifar10").test_images, truth["test_batch"])
    assert decoded.read_cached(cache, catalogue.find("cifar10", write.root).stamp()) is not None


def test_where_nothing_can_be_written_it_loads_all_the_same(write, monkeypatch):
    write.sprites()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(decoded.np, "savez", full)
    assert len(load("cifar10").train_images) == 15
    assert [path.name for path in write.root.iterdir()] == ["package"]
