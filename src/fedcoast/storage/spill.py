"""Spill files for what does not fit in memory: written once, then mapped, deleted when no longer needed.

A file is trusted only if this process wrote it, or if a saved state names it with the checksum of every part. Files
of a killed process are therefore either named by the state that is restored, or deleted when the folder is next used.
Files that the last saved state names stay until a later state is on disk.
"""

import os
import re
import secrets
import weakref
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from fedcoast.errors import BadFile, BadSetting
from fedcoast.rounds.arrays import Array
from fedcoast.storage.files import is_plain, sole_writer, sync

_NAME = re.compile(r"round-[0-9]+-[0-9a-f]{16}\.held")
_ALIGNED = 64  # bytes


class SpillDir:
    """A folder for one assessor at a time. When the process ends, files that no saved state names are deleted."""

    def __init__(self, folder: str | Path) -> None:
        if not isinstance(folder, str | Path):
            raise BadSetting(f"spill_dir must be a folder, for what does not fit in memory; got {folder!r}")
        self.folder = Path(folder)
        self._live, self._named = set[str](), set[str]()
        self._lock = ExitStack()
        self._locked = self._cleared = False
        weakref.finalize(self, _leave, os.getpid(), self.folder, self._live, self._named, self._lock)

    def begin(self, number: int) -> "SpillFile":
        """A new file for one round."""
        self._enter()
        if not self._cleared:
            self._clear()
        name = f"round-{number:010d}-{secrets.token_hex(8)}.held"
        self._live.add(name)
        return SpillFile(self, name)

    def adopt(self, facts: Sequence[Mapping[str, Any]]) -> "list[SpillFile]":
        """The files that a saved state names, with every part checked; changes nothing if one was altered."""
        if facts:
            self._enter()
        return [SpillFile.opened(self, one) for one in facts]

    def resume_with(self, files: "Sequence[SpillFile]") -> None:
        """Continue with these restored files alone."""
        names = {file.name for file in files}
        for known in (self._live, self._named):
            known.clear()
            known.update(names)
        if self._locked:
            self._clear()

    def saved(self, names: Iterable[str]) -> None:
        """A state that names these files is on disk; delete those that only an earlier state named."""
        past = self._named - self._live
        self._named.clear()
        self._named.update(names)
        _remove(self.folder, past - self._named)

    def drop(self, name: str) -> None:
        """The file is no longer needed; delete it unless a saved state names it."""
        self._live.discard(name)
        if name not in self._named:
            _remove(self.folder, [name])

    def _enter(self) -> None:
        if self._locked:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadFile(f"{self.folder} cannot be a folder to spill to ({error.strerror})") from error
        self._lock.enter_context(sole_writer(self.folder, "spilling to"))
        self._locked = True

    def _clear(self) -> None:
        """Delete the files of a process that has ended."""
        _remove(self.folder, {path.name for path in self.folder.iterdir()} - self._live - self._named)
        self._cleared = True


class SpillFile:
    """The arrays of one round, in one file."""

    def __init__(self, spill: SpillDir, name: str) -> None:
        self.name = name
        self._spill, self._path = spill, spill.folder / name
        self._parts: list[dict[str, Any]] = []
        self._size = 0
        self._mapped: Array | None = None
        self._file: Any = self._guarded(lambda: self._path.open("xb", buffering=0))

    @classmethod
    def opened(cls, spill: SpillDir, facts: Mapping[str, Any]) -> "SpillFile":
        """A file that a saved state names; refused if any part was altered."""
        file = cls.__new__(cls)
        file.name, file._spill = str(facts["file"]), spill
        file._parts, file._size = [dict(part) for part in facts["parts"]], int(facts["size"])
        file._path, file._mapped, file._file = spill.folder / file.name, None, None
        if not _NAME.fullmatch(file.name):
            raise BadFile(f"{file.name!r} is not the name of a spilled round; the state was altered")
        if not is_plain(file._path):
            raise BadFile(
                f"{file._path} is missing but referenced by the saved state; restore with the spill folder and the last"
                " state that were saved together, or show the rounds again"
            )
        if file._path.stat().st_size != file._size:
            raise BadFile(f"{file._path} is not of the size that the state names; it was torn or altered")
        for array, part in zip(file.arrays(), file._parts, strict=True):
            if zlib.crc32(array.reshape(-1).view(np.uint8).data) != part["crc"]:
                raise BadFile(f"{file._path} does not hold what the state says; it was torn or altered")
        return file

    def write(self, array: Array) -> None:
        """Append an array; it is on disk after `sync`."""
        row = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        part = {"at": self._size, "type": array.dtype.str, "shape": list(array.shape), "crc": zlib.crc32(row.data)}
        padding = -row.size % _ALIGNED
        self._guarded(lambda: self._append(row.data, bytes(padding)))
        self._size += row.size + padding
        self._parts.append(part)

    def _append(self, *pieces: Any) -> None:
        for piece in pieces:
            rest = memoryview(piece)
            while rest:  # an unbuffered file may take less than all
                rest = rest[self._file.write(rest) :]

    def finish(self) -> None:
        """Close the file after the last array."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def arrays(self) -> list[Array]:
        """The arrays, mapped into memory: they are read from disk on access."""
        if self._mapped is None:
            self._mapped = self._guarded(lambda: np.asarray(np.memmap(self._path, np.uint8, "r")))
        arrays = []
        for part in self._parts:
            dtype = np.dtype(str(part["type"]))
            length = prod(part["shape"]) * dtype.itemsize
            arrays.append(self._mapped[part["at"] : part["at"] + length].view(dtype).reshape(part["shape"]))
        return arrays

    def facts(self) -> dict[str, Any]:
        """What a saved state records about it."""
        return {"file": self.name, "size": self._size, "parts": self._parts}

    def sync(self) -> None:
        self._guarded(lambda: sync(self._path))

    def drop(self) -> None:
        self.finish()
        self._mapped = None
        self._spill.drop(self.name)

    def _guarded(self, act: Any) -> Any:
        try:
            return act()
        except OSError as error:
            raise BadFile(f"{self._path} cannot be used to spill to ({error})") from error


def _remove(folder: Path, names: Iterable[str]) -> None:
    for name in filter(_NAME.fullmatch, names):
        with suppress(OSError):  # leftovers are deleted when the folder is next used
            (folder / name).unlink()


def _leave(owner: int, folder: Path, live: Collection[str], named: Collection[str], lock: ExitStack) -> None:
    if os.getpid() == owner:  # not in a child that was forked
        _remove(folder, set(live) - set(named))
        lock.close()
