"""Files that appear whole or not at all, and folders only one process writes to."""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fedcoast.errors import BadFile


def sync(path: Path) -> None:
    """Have the system put a file or folder on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `path`, put it on disk, and only then give it its name."""
    part = path.with_name(f".{path.name}.part")
    try:
        write(part)
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


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadFile(f"{path} cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{path} is not JSON ({error}); it was torn or altered") from error


@contextlib.contextmanager
def sole_writer(folder: Path, doing: str = "recording to") -> Iterator[None]:
    """Hold the folder's lock; the system lets go of it when the process ends, however it ends."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover (a platform without it has no such lock)
        yield
        return
    try:
        handle = (folder / ".lock").open("w")
    except OSError as error:
        raise BadFile(f"{folder} cannot be a folder to record to ({error})") from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadFile(f"another process is {doing} {folder}; give each a folder of its own") from None
        yield
