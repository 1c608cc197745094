"""Arrays of every kind that a model may hold, bfloat16 without the ml_dtypes package included."""

import numpy as np

from fedcoast import BFloat16

FLOATS = ("bfloat16", "float16", "float32", "float64", "big-endian float32")
ALL = (*FLOATS, "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "big-endian int64")


def some(kind, seed):
    """Arrays of random bits: flat, in a matrix, empty, 0-d, transposed, strided, reversed."""
    rng = np.random.default_rng(seed)
    if kind == "bool":
        flat = rng.random(24) < 0.5
    elif kind == "bfloat16":
        return [BFloat16.from_bits(bits) for bits in _shapes(rng.integers(0, 2**16, 24, dtype=np.uint16))]
    elif kind.startswith("big-endian"):
        name = kind.removeprefix("big-endian ")
        return [array.astype(array.dtype.newbyteorder(">")) for array in some(name, seed)]
    else:
        flat = rng.integers(0, 256, 24 * np.dtype(kind).itemsize, dtype=np.uint8).view(kind)
    return _shapes(flat)


def _shapes(flat):
    matrix = flat.reshape(4, 6)
    return [flat, matrix, flat[:0], np.asarray(flat[0]), matrix.T, matrix[::2, 1::2], flat[::-1]]


def model(kind, seed):
    """A finite model of one kind of float."""
    values = np.random.default_rng(seed).normal(size=(6, 5)).astype(np.float32)
    if kind == "bfloat16":
        return {"w": BFloat16.from_bits((values.view(np.uint32) >> 16).astype(np.uint16))}
    return {"w": values.astype({"big-endian float32": ">f4"}.get(kind, kind))}
