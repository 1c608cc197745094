"""Named arrays in one safetensors file, with facts in its header. Never a pickle; whole or not at all."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, TensorSpec, deserialize, serialize_file

from fedcoast.errors import BadFile
from fedcoast.rounds.arrays import Array, BFloat16
from fedcoast.rounds.files import write_whole

_KINDS = {
    "BOOL": "bool", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
    "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64",
    "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
}  # fmt: skip


def write_tensors(path: Path, tensors: Mapping[str, tuple[Array, str]], facts: object = None) -> None:
    """Write arrays with their kinds; the file appears under its name only when it is complete and on disk."""
    if "__metadata__" in tensors:
        raise BadFile("a layer is named '__metadata__', which safetensors keeps for itself; rename it")
    held = {}  # serialize_file is given bare pointers: these references keep the memory alive
    for name, (array, kind) in tensors.items():
        held[name] = np.require(_narrowed(name, array) if kind == "bfloat16" else array, requirements="C")
    specs = {
        name: TensorSpec(
            dtype=tensors[name][1],
            shape=list(tensors[name][0].shape),
            data_ptr=array.ctypes.data,
            data_len=array.nbytes,
        )
        for name, array in held.items()
    }
    metadata = {"fedcoast": json.dumps(facts)}
    try:
        write_whole(path, lambda part: serialize_file(specs, part, metadata=metadata))
    except (SafetensorError, UnicodeError) as error:
        raise BadFile(f"{path} cannot be written ({error})") from error


def _narrowed(name: str, array: Array) -> Array:
    narrowed = BFloat16(array).bits()
    if not np.array_equal(BFloat16.from_bits(narrowed).widened.view(np.uint32), np.asarray(array).view(np.uint32)):
        raise BadFile(f"layer {name!r} is called bfloat16 and holds values of more bits than that")
    return narrowed


def read_tensors(path: Path) -> tuple[dict[str, Array | BFloat16], Any]:
    """The arrays, and the facts (None in a file that fedcoast did not write)."""
    try:
        data = path.read_bytes()
        tensors = {name: _array(path, name, view) for name, view in deserialize(data)}  # type: ignore[no-untyped-call]
        return tensors, _facts(data)
    except OSError as error:
        raise BadFile(f"{path} cannot be read ({error.strerror})") from error
    except (SafetensorError, ValueError, RecursionError) as error:
        if isinstance(error, BadFile):
            raise
        raise BadFile(f"{path} is not a whole safetensors file ({error}); it was torn or altered") from error


def _facts(data: bytes) -> Any:
    length = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + length]).get("__metadata__") or {}
    return json.loads(metadata.get("fedcoast", "null"))


def _array(path: Path, name: str, view: Mapping[str, Any]) -> Array | BFloat16:
    kind = _KINDS.get(view["dtype"])
    if kind is None:
        raise BadFile(f"{path}: layer {name!r} is of type {view['dtype']}, which fedcoast does not read")
    if kind == "bfloat16":
        return BFloat16.from_bits(np.frombuffer(view["data"], dtype=np.uint16).reshape(view["shape"]))
    return np.frombuffer(view["data"], dtype=kind).reshape(view["shape"])
