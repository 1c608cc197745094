"""Read one model from one untrusted file: `.safetensors`, `.npz`, `.pt` or `.pth`.

Nothing is unpickled, and the unpacked size is checked before anything is unpacked (`limits`).
"""

import os
import zipfile
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from fedcoast.errors import BadFile, require
from fedcoast.rounds.schema import Model, Unordered
from fedcoast.storage.files import on_disk, open_plain
from fedcoast.storage.limits import check_size
from fedcoast.storage.tensors import read_tensors

_WRAPPERS = ("state_dict", "model_state_dict", "model")
_LIMIT = "FEDCOAST_MAX_MODEL"


def load_model(file: Path) -> Model:
    """One model from a file, by its ending; files that would need unpickling are refused."""
    try:
        reader = _READERS[file.suffix.lower()]
    except KeyError:
        raise BadFile(
            f"{file} is not .safetensors, .npz, .pt or .pth; other files would have to be unpickled, which runs"
            " whatever code they hold, so they are not read"
        ) from None
    if not file.is_file():
        raise BadFile(f"{file} is not a file")
    return reader(file)


def _read_npz(file: Path) -> Model:
    try:
        with open_plain(file, follow=True) as handle:  # NumPy leaves a torn file open that it opened itself
            check_npz(file, handle)
            archive = np.load(handle, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise BadFile(f"{file} holds one array, not named ones; save a model with numpy.savez")
            return {name: archive[name] for name in archive.files}
    except BadFile:
        raise
    except Exception as error:  # zipfile, zlib and NumPy's header parser each fail in their own way
        if "allow_pickle" in str(error):
            raise BadFile(f"{file} holds pickled objects, which are not read; save plain arrays") from error
        raise BadFile(f"{file} is not a whole .npz file ({error})") from error


def check_npz(file: Path, handle: BinaryIO, variable: str = _LIMIT) -> None:
    """Refuse an archive that unpacks to too much. A member that understates its size fails its checksum."""
    if zipfile.is_zipfile(handle):
        handle.seek(0)
        with zipfile.ZipFile(handle) as archive:
            members = archive.infolist()
            check_size(file, sum(member.file_size for member in members), variable, on_disk(handle))
            for member in members:
                _check_array(file, archive, member, variable, on_disk(handle))
    else:
        check_size(file, os.fstat(handle.fileno()).st_size, variable, on_disk(handle))
    handle.seek(0)


def _check_array(file: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, variable: str, size: int) -> None:
    """Refuse an array whose header promises more than the limit: NumPy makes room before it reads.

    NumPy knows an array by its first bytes, whatever its name ends in.
    """
    with archive.open(member) as stream:
        if stream.read(len(np.lib.format.MAGIC_PREFIX)) != np.lib.format.MAGIC_PREFIX:
            return
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
    check_size(file, prod(shape) * dtype.itemsize, variable, size)


def _read_torch(file: Path) -> Model:
    torch = require("torch", extra="lab")
    with _opened(file) as handle:
        size = on_disk(handle)
        try:
            if zipfile.is_zipfile(handle):
                with zipfile.ZipFile(handle) as archive:
                    check_size(file, sum(member.file_size for member in archive.infolist()), _LIMIT, size)
            else:
                check_size(file, os.fstat(handle.fileno()).st_size, _LIMIT, size)
            handle.seek(0)
            content = torch.load(handle, map_location="cpu", weights_only=True)
        except BadFile:
            raise
        except Exception as error:
            reason = str(error).partition("\n")[0]
            raise BadFile(
                f"{file} is not whole, or cannot be read without unpickling objects ({reason});"
                " save model.state_dict() alone"
            ) from error
    model = _state_dict(file, content)
    check_size(file, sum(_bytes(tensor) for tensor in model.values()), _LIMIT, size)
    return model


def _opened(file: Path) -> BinaryIO:
    try:
        return open_plain(file, follow=True)
    except OSError as error:
        raise BadFile(f"{file} cannot be read ({error.strerror})") from error


def _bytes(tensor: Any) -> int:
    """The memory that a tensor takes once it is copied: a view that repeats one number a million times takes a
    million."""
    try:
        return int(prod(tensor.shape)) * int(tensor.element_size())
    except (AttributeError, TypeError, ValueError, RuntimeError):
        return 0  # not a tensor: it is refused by name when it is read


def _state_dict(file: Path, content: Any) -> Model:
    for _ in _WRAPPERS:  # one may lie in another; not for ever
        within = [content[name] for name in _WRAPPERS if isinstance(content, Mapping) and name in content]
        content = next((inner for inner in within if isinstance(inner, Mapping)), content)
    if not isinstance(content, Mapping):
        raise BadFile(f"{file} holds a {type(content).__name__}, not a state_dict; save model.state_dict()")
    return content


_READERS: dict[str, Callable[[Path], Model]] = {
    ".safetensors": lambda file: Unordered(read_tensors(file, follow=True)[0]),
    ".npz": _read_npz,
    ".pt": _read_torch,
    ".pth": _read_torch,
}
