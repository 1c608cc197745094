"""Atomic writing, folders with a single writer, and safe reading of files from others.

A folder from somebody else may contain links, pipes or devices. Nothing in a run folder is opened, written or removed
through one: files are opened without following a link, and used only if they are plain.
"""

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

from fedcoast.errors import BadFile
from fedcoast.storage.limits import check_size

PRIVATE = 0o600
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)  # not on every platform
_PLAIN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


def open_plain(path: Path, depth: int = 1, follow: bool = False) -> BufferedReader:
    """Open a plain file to read: no link, pipe, device or folder.

    `depth` is how many of the last parts of the path must not be links: 3 for a file of a round, in RUN/rounds/NUMBER.
    With `follow`, links to plain files are allowed.
    """
    try:
        handle = os.open(path, _PLAIN) if follow else _open_below(path, depth)
    except ValueError as error:  # a zero byte in a name
        raise BadFile(f"{path!s} cannot be read ({error})") from error
    except OSError as error:
        if not isinstance(error, FileNotFoundError) and any(_is_link(part) for part in _last(path, depth)):
            raise BadFile(f"{path} is or lies behind a symbolic link, which is not followed; copy the file") from error
        raise
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise BadFile(f"{path} is not a plain file (a folder, pipe or device); only plain files are read")
    except BaseException:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


def _open_below(path: Path, depth: int) -> int:
    """Open one folder after the other, so that none of the last ones can be or become a link."""
    if os.open not in os.supports_dir_fd:  # pragma: no cover (a platform without it)
        return os.open(path, _PLAIN | _NO_FOLLOW)
    *folders, name = path.parts[-depth:]
    root = Path(*path.parts[:-depth])
    handle = os.open(root, _FOLDER)
    try:
        for folder in folders:
            inner = os.open(folder, _FOLDER | _NO_FOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
        return os.open(name, _PLAIN | _NO_FOLLOW, dir_fd=handle)
    finally:
        os.close(handle)


def _last(path: Path, depth: int) -> list[Path]:
    return [path, *path.parents][:depth]


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Whether this is a folder and not a link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def is_plain(path: Path) -> bool:
    """Whether this is a plain file and not a link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def on_disk(file: BinaryIO) -> int:
    """The bytes that a file takes on the disk: holes take none."""
    found = os.fstat(file.fileno())
    return min(found.st_size, getattr(found, "st_blocks", found.st_size) * 512)


def remove_inside(folder: Path, matches: Callable[[str], object]) -> None:
    """Remove entries with these names from a folder, unless the folder is a link; a link is removed, not its target."""
    if os.open not in os.supports_dir_fd:  # pragma: no cover (a platform without it)
        return
    try:
        handle = os.open(folder, _FOLDER | _NO_FOLLOW)
    except OSError:
        return
    try:
        for name in filter(matches, os.listdir(handle)):  # noqa: PTH208 (nor can it list what is held open)
            try:
                os.unlink(name, dir_fd=handle)
            except OSError:  # a folder
                shutil.rmtree(name, ignore_errors=True, dir_fd=handle)
    finally:
        os.close(handle)


def sync(path: Path) -> None:
    """Flush a file or folder to disk (`fsync`)."""
    handle = os.open(path, os.O_RDONLY | _NO_FOLLOW)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a new file beside `path`, sync it to disk, then rename it.

    The file is private to the user. An existing symbolic link of that name is replaced, not followed.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, PRIVATE))
        write(part)
        part.chmod(PRIVATE)
        sync(part)
        part.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):  # such as a name too long: there was no file
            part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise BadFile(f"{path} cannot be written ({error})") from error
        raise


def write_json(path: Path, data: object) -> None:
    text = json.dumps(data, indent=1)
    write_whole(path, lambda part: part.write_text(text, encoding="ascii"))


def read_plain(path: Path, variable: str = "FEDCOAST_MAX_JSON", depth: int = 1, follow: bool = False) -> bytes:
    """The bytes of a plain file, if they are not more than the limit."""
    with open_plain(path, depth, follow) as file:
        check_size(path, os.fstat(file.fileno()).st_size, variable)
        return file.read()


def read_json(path: Path, depth: int = 1) -> Any:
    try:
        return json.loads(read_plain(path, depth=depth).decode("utf-8"))
    except OSError as error:
        raise BadFile(f"{path} cannot be read ({error.strerror})") from error
    except BadFile:
        raise
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{path} is not JSON ({error}); it was torn or altered") from error


@contextlib.contextmanager
def sole_writer(folder: Path, doing: str = "recording to") -> Iterator[None]:
    """Hold the folder's lock; the system releases it when the process ends."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover (a platform without it has no such lock)
        yield
        return
    lock = folder / ".lock"
    try:
        if lock.is_symlink() or (lock.exists() and not lock.is_file()):
            raise BadFile(f"{lock} is not a plain file; remove it, and ask who put it there")
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | _NO_FOLLOW, PRIVATE)
    except OSError as error:
        raise BadFile(f"{folder} cannot be a folder to record to ({error})") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadFile(f"another process is {doing} {folder}; give each a folder of its own") from None
        yield
    finally:
        os.close(handle)
