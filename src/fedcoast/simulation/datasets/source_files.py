"""The bytes of a user's copy, from a folder or straight out of an archive, each under the name errors give it.

Archives are never unpacked: their members are read into memory, so no name inside one can become a path on disk.
"""

import gzip
import sys
import tarfile
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from fedcoast.errors import BadFile
from fedcoast.storage.files import on_disk, open_plain
from fedcoast.storage.limits import check_size, limit

_LIMIT = "FEDCOAST_MAX_DATASET"
REMEDY = "it is torn or altered: remove it, then copy it again or run `fedcoast data get`"


@dataclass(frozen=True)
class File:
    """One file's content, and what to call it when something is wrong with it."""

    label: str
    data: bytes

    def refuse(self, expected: str, came: str) -> BadFile:
        """The error for this file, for the caller to raise."""
        return BadFile(f"{self.label}: wanted {expected}, got {came}; {REMEDY}")


Files = dict[str, File]


def locate(folder: Path, name: str) -> Path | None:
    """The file itself, or its gzipped form: IDX files are published as .gz and used both ways."""
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    return None


def read_folder(folder: Path, needed: Collection[str], optional: Collection[str] = ()) -> Files:
    """Read the named files of a folder."""
    files = {}
    for name in [*needed, *optional]:
        path = locate(folder, name)
        if path is not None:
            files[name] = File(str(path), _read(path))
    _refuse_missing(folder, files, needed)
    return files


def read_archive(archive: Path, inside: str, needed: Collection[str], optional: Collection[str] = ()) -> Files:
    """Read the named members of the folder `inside` a .tar.gz."""
    names = {f"{inside}/{name}": name for name in [*needed, *optional]}
    files: Files = {}
    try:
        for path, data in _members(archive, names):
            name = names[path]
            if name in files:
                raise BadFile(f"{archive}: wanted one {path}, got a second one; {REMEDY}")
            files[name] = File(f"{archive}: {path}", data)
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise BadFile(f"{archive}: wanted a whole .tar.gz, got {_reason(error)}; {REMEDY}") from error
    _refuse_missing(archive, files, needed)
    return files


def _members(archive: Path, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
    with open_plain(archive, follow=True) as file, gzip.open(file) as stream:
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            for member in tar:
                path = PurePosixPath(member.name)
                if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir()):
                    raise BadFile(
                        f"{archive}: wanted plain files in one folder, got {member.name!r}, "
                        f"which a published archive never holds; {REMEDY}"
                    )
                content = tar.extractfile(member) if str(path) in names else None
                if content is not None:
                    check_size(f"{archive}: {path}", member.size, _LIMIT, on_disk(file))
                    yield str(path), content.read()
        # gzip compares its checksum at the very end only, so a flipped byte shows once everything is read.
        while stream.read(1 << 20):
            pass


def _read(path: Path) -> bytes:
    try:
        with open_plain(path, follow=True) as file:
            if path.suffix == ".gz":
                with gzip.open(file) as stream:
                    return _bounded(str(path), stream, on_disk(file))
            return _bounded(str(path), file, on_disk(file))
    except (EOFError, OSError, zlib.error) as error:
        raise BadFile(f"{path}: wanted a file that can be read, got {_reason(error)}; {REMEDY}") from error


def _bounded(label: str, stream: IO[bytes] | gzip.GzipFile, size: int) -> bytes:
    """All of a stream, refused as soon as it is more than the limit."""
    most = max(limit(_LIMIT), 2 * size)
    data = stream.read(most + 1) if most < sys.maxsize else stream.read()
    check_size(label, len(data), _LIMIT, size)
    return data


def _refuse_missing(place: Path, files: Files, needed: Collection[str]) -> None:
    missing = [name for name in needed if name not in files]
    if missing:
        raise BadFile(
            f"{place}: wanted {', '.join(needed)}, got no {', '.join(missing)}; "
            "complete the copy, or remove it and run `fedcoast data get`"
        )


def _reason(error: Exception) -> str:
    return f"{type(error).__name__} ({error})"
