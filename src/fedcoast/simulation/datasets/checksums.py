"""Whether a file on disk is the published one, byte for byte."""

import gzip
import hashlib
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from fedcoast.errors import BadFile
from fedcoast.simulation.datasets.published import Published
from fedcoast.simulation.datasets.source_files import REMEDY, Files

CHUNK = 1 << 20


def measure(path: Path, file: Published) -> tuple[int, str]:
    """Size and digest, of what a .gz holds where the published file is its content."""
    unpack = path.suffix == ".gz" and not file.name.endswith(".gz")
    try:
        with gzip.open(path) if unpack else path.open("rb") as stream:
            return _measure(stream, file.algorithm)
    except (EOFError, OSError, zlib.error) as error:
        raise BadFile(
            f"{path}: wanted a file that can be read, got {type(error).__name__} ({error}); {REMEDY}"
        ) from error


def matches(path: Path, file: Published) -> bool:
    """Size first: most files that differ are recognised without reading them."""
    if path.name == file.name and path.stat().st_size != file.size:
        return False
    return measure(path, file) == (file.size, file.digest)


def holds(files: Files, published: Iterable[Published]) -> bool:
    """Whether files that were read are the published ones."""
    return all(
        len(files[file.name].data) == file.size
        and hashlib.new(file.algorithm, files[file.name].data, usedforsecurity=False).hexdigest() == file.digest
        for file in sorted(published, key=lambda file: file.size)  # the cheap ones first
    )


def _measure(stream: IO[bytes] | gzip.GzipFile, algorithm: str) -> tuple[int, str]:
    digest, size = hashlib.new(algorithm, usedforsecurity=False), 0
    while chunk := stream.read(CHUNK):
        digest.update(chunk)
        size += len(chunk)
    return size, digest.hexdigest()
