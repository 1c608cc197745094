"""CIFAR's pickles, read without running anything that is in them.

A pickle is a program. This reader lets it build containers, numbers, text and integer arrays, and nothing else:
the handful of globals that NumPy arrays need are answered by stand-ins of our own, so not even NumPy's
reconstruction code runs on what a file says. (It also spares us the warnings that code gives on old pickles.)
"""

import io
import math
import pickle
from typing import Any, NoReturn

import numpy as np

from fedcoast.errors import BadFile
from fedcoast.simulation.datasets.files import REMEDY, File

_KINDS = "biu"  # truth values, integers, natural numbers: neither objects nor records


def read_pickle(file: File) -> dict[str, Any]:
    """The dictionary in a pickle, its keys as text, its arrays as NumPy arrays."""
    stream = io.BytesIO(file.data)
    try:
        content = _Reader(stream, file.label).load()
        if isinstance(content, dict):
            content = {text(key): _unwrapped(value) for key, value in content.items()}
    except BadFile:
        raise
    except Exception as error:  # a torn pickle can raise anything at all
        raise file.refuse("a whole pickle", f"{type(error).__name__} ({error})") from error
    if stream.read(1):
        raise file.refuse("one pickle and nothing after it", f"{len(file.data) - stream.tell() + 1} more bytes")
    if not isinstance(content, dict):
        raise file.refuse("a dictionary", type(content).__name__)
    return content


def text(value: object) -> str:
    """Python 2 wrote bytes where Python 3 has text; both mean the same here."""
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


class _Reader(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, label: str) -> None:
        super().__init__(stream, encoding="bytes")
        self._label = label

    def find_class(self, module: str, name: str) -> Any:
        stand_in = _STAND_INS.get((module.replace("numpy._core", "numpy.core"), name))
        if stand_in is None:
            raise BadFile(
                f"{self._label}: wanted only containers and arrays, got a pickle that asks for {module}.{name}; "
                f"nothing of it was run, but {REMEDY}"
            )
        return stand_in


class _StandIn:
    """Answers for one global. Has no attributes to set, so a pickle cannot leave anything behind in it."""

    __slots__ = ()

    def __setstate__(self, state: object) -> NoReturn:
        raise pickle.UnpicklingError("a state was given to a function")


class _Array:
    """An array whose content the pickle gives in a second step."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: np.ndarray[Any, Any] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, fortran, data = state
        self.value = _array(data, kind, shape, "F" if fortran else "C")


class _Kind:
    """A dtype, whose byte order the pickle gives in a second step."""

    __slots__ = ("value",)

    def __init__(self, value: "np.dtype[Any]") -> None:
        self.value = value

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order = text(state[1])
        if order not in ("<", ">", "|", "="):
            raise pickle.UnpicklingError(f"byte order {order!r}")
        self.value = self.value.newbyteorder("=" if order == "|" else order)  # type: ignore[arg-type]


class _Reconstruct(_StandIn):
    __slots__ = ()

    def __call__(self, *_: object) -> _Array:
        return _Array()


class _FromBuffer(_StandIn):
    __slots__ = ()

    def __call__(self, data: object, kind: object, shape: object, order: object) -> _Array:
        array = _Array()
        array.value = _array(data, kind, shape, order)
        return array


class _Dtype(_StandIn):
    __slots__ = ()

    def __call__(self, code: object, *_: object) -> _Kind:
        kind = np.dtype(text(code))
        if kind.kind not in _KINDS:
            raise pickle.UnpicklingError(f"an array of {kind}, not of integers")
        return _Kind(kind)


class _Encode(_StandIn):
    """How Python 3 writes bytes into an old pickle."""

    __slots__ = ()

    def __call__(self, characters: str, encoding: object) -> bytes:
        if text(encoding) != "latin1":
            raise pickle.UnpicklingError(f"bytes encoded as {encoding!r}")
        return characters.encode("latin1")


_STAND_INS: dict[tuple[str, str], object] = {
    ("numpy.core.multiarray", "_reconstruct"): _Reconstruct(),
    ("numpy.core.numeric", "_frombuffer"): _FromBuffer(),
    ("numpy", "ndarray"): _StandIn(),
    ("numpy", "dtype"): _Dtype(),
    ("_codecs", "encode"): _Encode(),
}


def _array(data: Any, kind: Any, shape: Any, order: Any) -> np.ndarray[Any, Any]:
    if not isinstance(kind, _Kind) or not isinstance(data, bytes | bytearray):
        raise pickle.UnpicklingError("an array that is not a type and bytes")
    if len(data) != math.prod(shape) * kind.value.itemsize:
        raise pickle.UnpicklingError(f"{len(data)} bytes for an array of shape {shape}")
    return np.frombuffer(data, kind.value).reshape(shape, order="F" if order == "F" else "C")


def _unwrapped(value: object) -> object:
    return value.value if isinstance(value, _Array) else value
