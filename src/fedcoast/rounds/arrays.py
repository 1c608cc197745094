"""Reads one array of a model: NumPy, a CPU or GPU torch tensor, anything with `__array__` or DLPack.

bfloat16 has no NumPy type. Such arrays are widened to float32, which is exact, and their dtype is kept beside them,
so that a recording narrows them again without loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

FLOAT_DTYPES = ("bfloat16", "float16", "float32", "float64")
OTHER_DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

_ROW = 8192  # numbers


@dataclass(frozen=True, eq=False)
class BFloat16:
    """An array of bfloat16, held as the float32 of the same values."""

    widened: NDArray[np.float32]

    @classmethod
    def from_bits(cls, bits: NDArray[np.uint16]) -> "BFloat16":
        return cls(np.asarray(bits.astype(np.uint32) << 16).view(np.float32))

    def bits(self) -> NDArray[np.uint16]:
        """The upper halves; the lower ones are zero, or this was never bfloat16."""
        return np.asarray(np.asarray(self.widened, order="C").view(np.uint32) >> 16).astype(np.uint16)


class UnusableArray(TypeError):
    """A value in a model is not an array that fedcoast can read; the text says what it is."""


def read(value: object) -> tuple[Array, str]:
    """The array and its dtype ("float32", "bfloat16", "int64", …); float32 NumPy memory is never copied.

    >>> read(np.float32([1.5]))
    (array([1.5], dtype=float32), 'float32')
    """
    if isinstance(value, BFloat16):
        if getattr(value.widened, "dtype", None) != np.float32:
            raise UnusableArray("BFloat16 holds a float32 array; make one with BFloat16.from_bits")
        return value.widened, "bfloat16"
    if any(base.__module__.partition(".")[0] == "torch" for base in type(value).__mro__):
        return _from_torch(value)
    if not hasattr(value, "__array__") and not hasattr(value, "__dlpack__"):
        raise UnusableArray(f"an array is wanted; got {type(value).__name__}")
    try:
        array = np.asarray(value) if hasattr(value, "__array__") else np.from_dlpack(value)  # type: ignore[arg-type]
    except Exception as error:
        raise UnusableArray(f"an array is wanted; {type(value).__name__} gave none ({error})") from error
    dtype = array.dtype.name
    if dtype == "bfloat16":  # the NumPy extension type of ml_dtypes, as JAX uses it
        return array.astype(np.float32), dtype
    if dtype not in FLOAT_DTYPES + OTHER_DTYPES:
        raise UnusableArray(
            f"entries must be float16, bfloat16, float32, float64, integer or boolean; got dtype {array.dtype}"
        )
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("=")), dtype


def _from_torch(tensor: Any) -> tuple[Array, str]:
    dtype = str(getattr(tensor, "dtype", type(tensor).__name__)).removeprefix("torch.")
    if dtype not in FLOAT_DTYPES + OTHER_DTYPES:
        raise UnusableArray(f"expected a float, integer or boolean tensor; got {dtype}")
    try:
        tensor = tensor.detach().cpu()
        return np.asarray(tensor.float() if dtype == "bfloat16" else tensor), dtype
    except Exception as error:
        raise UnusableArray(f"expected a dense tensor; this one cannot be read ({error})") from error


def as_float(array: Array, dtype: str, target: str) -> Array:
    """A float array in the precision of the global model.

    Servers average float32 uploads in float64, and clients send half floats. Widening is exact; narrowing rounds to
    nearest, and what does not fit becomes infinite.

    >>> as_float(np.float16([0.5]), "float16", "float32")
    array([0.5], dtype=float32)
    >>> as_float(np.float64([1 + 2**-9]), "float64", "bfloat16")
    array([1.], dtype=float32)
    """
    if dtype == target:
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        if target != "bfloat16":
            return array.astype(target)
        bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
        rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        nearest = (rounded & np.uint32(0xFFFF0000)).view(np.float32)
        return np.where(np.isnan(array), np.float32("nan"), nearest).reshape(array.shape)


def arithmetic(array: Array) -> Array:
    """The array in the precision that differences are taken in: half floats in float32, others as they are.

    >>> arithmetic(np.float16([1.0])).dtype, arithmetic(np.float64([1.0])).dtype
    (dtype('float32'), dtype('float64'))
    """
    return array.astype(np.float32) if array.dtype == np.float16 else array


def surely_finite(array: Array) -> bool:
    """Whether a quick look shows that all numbers are finite; if not, they may still be.

    A sum of squares is finite only if every term is. In rows, so that the linear algebra library starts no threads.

    >>> surely_finite(np.float32([1, 2])), surely_finite(np.float32([1, np.nan])), surely_finite(np.float32([1e30]))
    (True, False, False)
    """
    if array.dtype not in (np.float32, np.float64) or not array.flags.c_contiguous:
        return False
    flat = array.reshape(-1)
    whole = flat.size // _ROW * _ROW
    rows, rest = flat[:whole].reshape(-1, _ROW), flat[whole:]
    with np.errstate(all="ignore"):
        return bool(np.isfinite(np.vecdot(rows, rows)).all() and np.isfinite(np.vecdot(rest, rest)))


def copied(arrays: Sequence[Array], into: Sequence[Array] = ()) -> list[Array]:
    """Copies, in memory that is no longer needed where that fits.

    >>> copied([np.float32([1, 2])])
    [array([1., 2.], dtype=float32)]
    """
    copies = []
    for place, array in enumerate(arrays):
        room = into[place] if place < len(into) else None
        if room is None or not room.flags.writeable or room.shape != array.shape or room.dtype != array.dtype:
            room = np.empty(array.shape, array.dtype)
        np.copyto(room, array)
        copies.append(room)
    return copies
