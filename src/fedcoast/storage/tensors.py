"""Named arrays in one safetensors file with metadata in its header: no pickles, written atomically."""

import json
import mmap
import os
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from safetensors import SafetensorError, deserialize, safe_open, serialize_file

from fedcoast.errors import BadFile
from fedcoast.rounds.arrays import Array, BFloat16
from fedcoast.storage.files import on_disk, open_plain, write_whole
from fedcoast.storage.limits import check_size

_DTYPES = {
    "BOOL": "bool", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
    "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64",
    "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
}  # fmt: skip


def write_tensors(path: Path, tensors: Mapping[str, tuple[Array, str]], facts: object = None) -> None:
    """Write arrays with their dtypes; the file appears under its name only when it is complete and on disk."""
    if "__metadata__" in tensors:
        raise BadFile("a layer is named '__metadata__', which safetensors keeps for itself; rename it")
    mapped_arrays = {}  # serialize_file is given bare pointers: these references keep the memory alive
    for name, (array, dtype) in tensors.items():
        mapped_arrays[name] = np.require(_narrowed(name, array) if dtype == "bfloat16" else array, requirements="C")
    specs = {name: _spec(array, tensors[name][1], tensors[name][0].shape) for name, array in mapped_arrays.items()}
    metadata = {"fedcoast": json.dumps(facts)}
    try:
        write_whole(path, lambda part: serialize_file(specs, part, metadata=metadata))
    except (SafetensorError, UnicodeError) as error:
        raise BadFile(f"{path} cannot be written ({error})") from error


def _spec(array: Array, dtype: str, shape: tuple[int, ...]) -> Any:
    """An array as safetensors takes it: by its address, or before 0.8 by a copy of its bytes."""
    if not hasattr(safetensors, "TensorSpec"):
        return {"dtype": dtype, "shape": list(shape), "data": array.tobytes()}
    return safetensors.TensorSpec(dtype=dtype, shape=list(shape), data_ptr=array.ctypes.data, data_len=array.nbytes)


def _narrowed(name: str, array: Array) -> Array:
    narrowed = BFloat16(array).bits()
    if not np.array_equal(BFloat16.from_bits(narrowed).widened.view(np.uint32), np.asarray(array).view(np.uint32)):
        raise BadFile(f"layer {name!r} is called bfloat16 and holds values of more bits than that")
    return narrowed


def read_tensors(path: Path, depth: int = 1, follow: bool = False) -> tuple[dict[str, Array | BFloat16], Any]:
    """The arrays, and the facts (None in a file that fedcoast did not write); `open_plain` has `depth` and `follow`."""
    try:
        with open_plain(path, depth, follow) as file:
            check_size(path, os.fstat(file.fileno()).st_size, "FEDCOAST_MAX_MODEL", on_disk(file))
            data = file.read()
        tensors = {name: _array(path, name, view) for name, view in deserialize(data)}  # type: ignore[no-untyped-call]
        return tensors, _facts(data)
    except OSError as error:
        raise BadFile(f"{path} cannot be read ({error.strerror})") from error
    except MemoryError as error:
        raise BadFile(f"{path} does not fit in memory") from error
    except (SafetensorError, ValueError, RecursionError) as error:
        if isinstance(error, BadFile):
            raise
        raise BadFile(f"{path} is not a whole safetensors file ({error}); it was torn or altered") from error


def open_tensors(path: Path, order: Iterable[str] = (), depth: int = 1) -> Mapping[str, Array | BFloat16]:
    """The arrays of a file that is not being changed, each read from disk when it is used; these names first.

    The file is mapped into memory, not read: reading one layer of many costs one layer. Errors of the file as a whole
    are raised now, with the messages of `read_tensors`.
    """
    try:
        with open_plain(path, depth) as file:
            size = os.fstat(file.fileno()).st_size
            check_size(path, size, "FEDCOAST_MAX_MODEL", on_disk(file))
            length = int.from_bytes(file.read(8), "little")
            check_size(f"the header of {path}", length, "FEDCOAST_MAX_JSON")
            header = {} if length > size else json.loads(file.read(length))
        with safe_open(path, framework="np"):  # checks the header against itself and the length of the file
            json.loads((header.pop("__metadata__", None) or {}).get("fedcoast", "null"))
        sound = all(entry["dtype"] in _DTYPES for entry in header.values())
    except (OSError, SafetensorError, ValueError, RecursionError):
        sound = False
    if not sound:
        return read_tensors(path, depth)[0]
    names = [name for name in dict.fromkeys(order) if name in header]
    return _MappedTensors(path, depth, size, 8 + length, {name: header[name] for name in names} | header)


class _MappedTensors(Mapping[str, Array | BFloat16]):
    """One mapping of the file for all its arrays, kept as long as any of them: a process may open few files."""

    def __init__(self, path: Path, depth: int, size: int, begin: int, entries: Mapping[str, Mapping[str, Any]]) -> None:
        self._path, self._depth, self._size = path, depth, size
        self._begin, self._entries = begin, entries
        self._mapped: weakref.ref[mmap.mmap] | None = None

    def __getitem__(self, name: str) -> Array | BFloat16:
        entry = self._entries[name]
        first, last = (self._begin + offset for offset in entry["data_offsets"])
        data = memoryview(self._file())[first:last] if last > first else b""
        return _array(self._path, name, {**entry, "data": data})

    def __contains__(self, name: object) -> bool:
        return name in self._entries  # Mapping's own would read the array

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def _file(self) -> mmap.mmap:
        mapping = None if self._mapped is None else self._mapped()
        if mapping is None:
            try:
                with open_plain(self._path, self._depth) as file:
                    mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except BadFile:
                raise
            except (OSError, ValueError) as error:
                raise BadFile(f"{self._path} cannot be read ({error})") from error
            self._mapped = weakref.ref(mapping)
        if mapping.size() != self._size or len(mapping) != self._size:  # reading beyond the end kills the process
            raise BadFile(
                f"{self._path} has {mapping.size():,} bytes and had {self._size:,} when it was opened; it was"
                " cut off or replaced meanwhile"
            )
        return mapping


def _facts(data: bytes) -> Any:
    length = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + length]).get("__metadata__") or {}
    return json.loads(metadata.get("fedcoast", "null"))


def _array(path: Path, name: str, view: Mapping[str, Any]) -> Array | BFloat16:
    dtype = _DTYPES.get(view["dtype"])
    if dtype is None:
        raise BadFile(f"{path}: layer {name!r} is of type {view['dtype']}, which fedcoast does not read")
    if dtype == "bfloat16":
        return BFloat16.from_bits(np.frombuffer(view["data"], dtype=np.uint16).reshape(view["shape"]))
    return np.frombuffer(view["data"], dtype=dtype).reshape(view["shape"])
