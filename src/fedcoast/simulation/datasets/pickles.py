"""CIFAR's pickles, read without running anything that is in them.

A pickle is a program. This reader lets it build containers, numbers, text and integer arrays, and nothing else:
the handful of globals that NumPy arrays need are answered by stand-ins of our own, so not even NumPy's
reconstruction code runs on what a file says. (It also spares us the warnings that code gives on old pickles.)
"""

import math
import pickle
import pickletools
from typing import Any, NoReturn

import numpy as np

from fedcoast.errors import BadFile
from fedcoast.simulation.datasets.source_files import REMEDY, File

_KINDS = "biu"  # truth values, integers, natural numbers: neither objects nor records
_MOST_CONTAINERS = 1000  # CIFAR's have fewer than twenty


def read_pickle(file: File) -> dict[str, Any]:
    """The dictionary in a pickle, its keys as text, its arrays as NumPy arrays."""
    try:
        content, end = _Program(file.data, file.label).run()
        if isinstance(content, dict):
            content = {text(key): _unwrapped(value) for key, value in content.items()}
    except BadFile:
        raise
    except Exception as error:  # a torn pickle can raise anything at all
        raise file.refuse("a whole pickle", f"{type(error).__name__} ({error})") from error
    if end < len(file.data):
        raise file.refuse("one pickle and nothing after it", f"{len(file.data) - end} more bytes")
    if not isinstance(content, dict):
        raise file.refuse("a dictionary", type(content).__name__)
    return content


def text(value: object) -> str:
    """Python 2 wrote bytes where Python 3 has text; both mean the same here."""
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


class _Program:
    """A pickle carried out by ourselves, one instruction at a time, and no more of it than data needs.

    Python's own reader makes room for as many memories as a file names, hashes keys that take for ever, and ends the
    process on tuples nested deep enough. Here a key is text, containers are few, and memory grows with the file.
    """

    def __init__(self, data: bytes, label: str) -> None:
        self._data, self._label = data, label
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        self._containers = 0

    def run(self) -> tuple[Any, int]:
        """What the pickle holds, and where it ends."""
        for opcode, argument, position in pickletools.genops(self._data):
            if opcode.name == "STOP":
                (value,) = self._stack
                return value, int(position or 0) + 1
            if opcode.name in _CONSTANTS:
                self._stack.append(_CONSTANTS[opcode.name](argument))
            elif (carry_out := getattr(self, f"_{opcode.name.lower()}", None)) is not None:
                carry_out(argument)
            elif opcode.name not in ("PROTO", "FRAME"):
                raise pickle.UnpicklingError(f"the instruction {opcode.name}, which no dataset needs")
        raise EOFError("no end")

    def _made(self, container: Any) -> None:
        self._containers += 1
        if self._containers > _MOST_CONTAINERS:
            raise pickle.UnpicklingError(f"more than {_MOST_CONTAINERS} lists, tuples and dictionaries")
        self._stack.append(container)

    def _mark(self, _: object) -> None:
        self._marks.append(len(self._stack))

    def _since_mark(self) -> list[Any]:
        at = self._marks.pop()
        values, self._stack[at:] = self._stack[at:], []
        return values

    def _empty_list(self, _: object) -> None:
        self._made([])

    def _empty_tuple(self, _: object) -> None:
        self._made(())

    def _empty_dict(self, _: object) -> None:
        self._made({})

    def _list(self, _: object) -> None:
        self._made(self._since_mark())

    def _tuple(self, _: object) -> None:
        self._made(tuple(self._since_mark()))

    def _dict(self, _: object) -> None:
        values = self._since_mark()
        self._made(dict(zip(map(_key, values[::2]), values[1::2], strict=True)))

    def _tuple1(self, _: object) -> None:
        self._made((self._stack.pop(),))

    def _tuple2(self, _: object) -> None:
        last, first = self._stack.pop(), self._stack.pop()
        self._made((first, last))

    def _tuple3(self, _: object) -> None:
        last, middle, first = self._stack.pop(), self._stack.pop(), self._stack.pop()
        self._made((first, middle, last))

    def _append(self, _: object) -> None:
        self._extend([self._stack.pop()])

    def _appends(self, _: object) -> None:
        self._extend(self._since_mark())

    def _extend(self, values: list[Any]) -> None:
        if not isinstance(self._stack[-1], list):
            raise pickle.UnpicklingError("an entry of something that is not a list")
        self._stack[-1].extend(values)

    def _setitem(self, _: object) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._update([key, value])

    def _setitems(self, _: object) -> None:
        self._update(self._since_mark())

    def _update(self, values: list[Any]) -> None:
        if not isinstance(self._stack[-1], dict):
            raise pickle.UnpicklingError("a key of something that is not a dictionary")
        self._stack[-1].update(zip(map(_key, values[::2]), values[1::2], strict=True))

    def _put(self, place: Any) -> None:
        self._memo[int(place)] = self._stack[-1]

    _binput = _long_binput = _put

    def _memoize(self, _: object) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def _get(self, place: Any) -> None:
        self._stack.append(self._memo[int(place)])

    _binget = _long_binget = _get

    def _global(self, name: Any) -> None:
        module, _, attribute = str(name).partition(" ")
        self._stack.append(self._stand_in(module, attribute))

    def _stack_global(self, _: object) -> None:
        attribute, module = self._stack.pop(), self._stack.pop()
        self._stack.append(self._stand_in(str(module), str(attribute)))

    def _stand_in(self, module: str, name: str) -> Any:
        stand_in = _STAND_INS.get((module.replace("numpy._core", "numpy.core"), name))
        if stand_in is None:
            raise BadFile(
                f"{self._label}: wanted only containers and arrays, got a pickle that asks for {module}.{name}; "
                f"nothing of it was run, but {REMEDY}"
            )
        return stand_in

    def _reduce(self, _: object) -> None:
        arguments, function = self._stack.pop(), self._stack.pop()
        if not isinstance(function, _StandIn) or not callable(function) or not isinstance(arguments, tuple):
            raise pickle.UnpicklingError("a call of something that is not a function")
        self._made(function(*arguments))

    def _build(self, _: object) -> None:
        state, target = self._stack.pop(), self._stack[-1]
        if not isinstance(target, _StandIn | _Array | _Kind):
            raise pickle.UnpicklingError(f"a state was given to a {type(target).__name__}")
        target.__setstate__(state)


def _key(value: object) -> str | bytes | int:
    if not isinstance(value, str | bytes | int):
        raise pickle.UnpicklingError(f"a {type(value).__name__} as a key")
    return value


def _as_bytes(value: Any) -> bytes:
    return value.encode("latin1") if isinstance(value, str) else bytes(value)  # Python 2 wrote bytes as text


_CONSTANTS: dict[str, Any] = {
    "NONE": lambda _: None,
    "NEWTRUE": lambda _: True,
    "NEWFALSE": lambda _: False,
    **dict.fromkeys(("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"), int),
    **dict.fromkeys(("FLOAT", "BINFLOAT"), float),
    **dict.fromkeys(("STRING", "BINSTRING", "SHORT_BINSTRING"), _as_bytes),
    **dict.fromkeys(("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"), str),
    **dict.fromkeys(("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"), _as_bytes),
}


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
