import gzip
import io
import tarfile

import pytest

from fedcoast.errors import BadFile
from fedcoast.simulation.datasets import load

NAME = "cifar-100-python.tar.gz"


@pytest.fixture
def archive(write):
    folder, _ = write.cifar100()
    return write.archive(folder, NAME)


def pack(path, *members):
    with tarfile.open(path, "w:gz") as tar:
        for name, kind in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, "/etc/passwd", 4 if kind == tarfile.REGTYPE else 0
            tar.addfile(info, io.BytesIO(b"evil"))


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 0.999])
def test_a_torn_archive_is_refused_by_name(archive, share):
    whole = archive.read_bytes()
    archive.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(BadFile, match=rf"{NAME}: wanted "):
        load("cifar100")


def test_an_archive_with_one_byte_flipped_is_refused_by_name(archive):
    # The tar inside is still readable: only gzip's checksum at the very end gives it away.
    content = bytearray(gzip.decompress(archive.read_bytes()))
    checksum = gzip.compress(bytes(content))[-8:]
    content[content.index(b"cifar-100-python/train") + 5000] ^= 1
    archive.write_bytes(gzip.compress(bytes(content))[:-8] + checksum)
    with pytest.raises(BadFile, match=rf"{NAME}: wanted a whole .tar.gz, got BadGzipFile \(CRC check failed"):
        load("cifar100")


def test_what_is_no_archive_is_refused_by_name(archive):
    archive.write_bytes(b"<html>please log in</html>")
    with pytest.raises(BadFile, match=rf"{NAME}: wanted a whole .tar.gz, got BadGzipFile"):
        load("cifar100")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../../outside", tarfile.REGTYPE),
        ("cifar-100-python/../../outside", tarfile.REGTYPE),
        ("/tmp/outside", tarfile.REGTYPE),
        ("cifar-100-python/train", tarfile.SYMTYPE),
        ("cifar-100-python/train", tarfile.LNKTYPE),
        ("cifar-100-python/train", tarfile.FIFOTYPE),
    ],
)
def test_a_member_that_points_outside_is_refused_and_nothing_is_written(write, name, kind):
    pack(write.root / NAME, (name, kind))
    with pytest.raises(BadFile, match=rf"{NAME}: wanted plain files in one folder, got '.*{name[-5:]}'"):
        load("cifar100")
    assert [path.name for path in write.root.iterdir()] == [NAME]


def test_an_archive_with_a_member_twice_is_refused(write):
    pack(write.root / NAME, ("cifar-100-python/train", tarfile.REGTYPE), ("cifar-100-python/train", tarfile.REGTYPE))
    with pytest.raises(BadFile, match="wanted one cifar-100-python/train, got a second one"):
        load("cifar100")


def test_a_member_that_is_missing_is_named(write):
    pack(write.root / NAME, ("cifar-100-python/train", tarfile.REGTYPE))
    with pytest.raises(BadFile, match=rf"{NAME}: wanted train, test, meta, got no test, meta"):
        load("cifar100")


def test_a_damaged_member_is_named_with_its_archive(write):
    folder, _ = write.cifar100()
    (folder / "meta").write_bytes(b"no pickle")
    write.archive(folder, NAME)
    with pytest.raises(BadFile, match=rf"{NAME}: cifar-100-python/meta: wanted a whole pickle"):
        load("cifar100")
