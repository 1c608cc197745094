"""Everything that can be wrong with an upload, a model or a round, by name. Each case spoils a good one."""

import warnings
from collections.abc import Mapping

import numpy as np
import torch

from fedcoast import BFloat16, LazyModels

WEIGHT, BIAS = "hidden.weight", "hidden.bias"


class Fragile(Mapping):
    """A model that is read lazily and fails."""

    def __init__(self, model, error):
        self._model, self._error = model, error

    def __getitem__(self, name):
        raise self._error

    def __iter__(self):
        return iter(self._model)

    def __len__(self):
        return len(self._model)


class Shapeshifter:
    """Something that claims to be an array."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array after all")


class Liar:
    def __array__(self, dtype=None, copy=None):
        return [1.0, 2.0]


def put(name, value):
    """The case in which one layer is replaced; `value` may be made from the good array."""
    return lambda model: {**model, name: value(model[name]) if callable(value) else value}


def entry(value):
    """The case in which one entry of a layer is replaced."""

    def spoil(array):
        spoiled = np.array(array)
        spoiled.reshape(-1)[spoiled.size // 2] = value
        return spoiled

    return spoil


def renamed(old, new):
    return lambda model: {new if name == old else name: array for name, array in model.items()}


def left_out(*names):
    return lambda model: {name: array for name, array in model.items() if name not in names}


def tensor(array):
    return torch.from_numpy(np.array(array))


def _without_warnings(make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


def _torch_cases():
    return {
        "sparse": put(WEIGHT, lambda a: tensor(a).to_sparse()),
        "sparse rows": put(WEIGHT, lambda a: _without_warnings(lambda: tensor(a).to_sparse_csr())),
        "quantised": put(
            WEIGHT, lambda a: _without_warnings(lambda: torch.quantize_per_tensor(tensor(a), 0.1, 0, torch.qint8))
        ),
        "complex": put(WEIGHT, lambda a: tensor(a).to(torch.complex64)),
        "on the meta device": put(WEIGHT, lambda a: torch.empty(a.shape, device="meta")),
        "float8": put(WEIGHT, lambda a: tensor(a).to(torch.float8_e4m3fn)),
        "int64": put(WEIGHT, lambda a: tensor(a).long()),
        "NaN": put(WEIGHT, lambda a: tensor(a) * float("nan")),
        "infinite": put(WEIGHT, lambda a: tensor(a) * float("inf")),
        "empty": put(WEIGHT, torch.empty(0)),
        "one dimension more": put(WEIGHT, lambda a: tensor(a)[None]),
        "transposed": put(WEIGHT, lambda a: tensor(a).T),
        "a module": put(WEIGHT, lambda a: torch.nn.Linear(2, 2)),
        "a dtype": put(WEIGHT, torch.float32),
        "a size": put(WEIGHT, torch.Size([4, 5])),
        "a device": put(WEIGHT, torch.device("cpu")),
        "a module instead of its state_dict": lambda model: torch.nn.Linear(4, 5),
        "nested": put(WEIGHT, lambda a: [tensor(a)]),
    }


def _shapes():
    return {
        "transposed": put(WEIGHT, lambda a: a.T),
        "flattened": put(WEIGHT, lambda a: a.ravel()),
        "one dimension more": put(WEIGHT, lambda a: a[None]),
        "a row more": put(WEIGHT, lambda a: np.concatenate([a, a[:1]])),
        "a row less": put(WEIGHT, lambda a: a[1:]),
        "a scalar": put(BIAS, np.float32(0)),
        "a scalar made a vector": put("scale", lambda a: a[None]),
        "broadcastable": put(WEIGHT, lambda a: a[:1]),
        "no entries": put(WEIGHT, np.zeros((0, 5), np.float32)),
        "no rows of a vector": put(BIAS, np.zeros(0, np.float32)),
    }


def _values():
    cases = {}
    for name, value in {"NaN": np.nan, "infinity": np.inf, "minus infinity": -np.inf}.items():
        cases[f"one {name}"] = put(WEIGHT, entry(value))
        cases[f"one {name} in a bias"] = put(BIAS, entry(value))
        cases[f"a scalar {name}"] = put("scale", np.float32(value))
        cases[f"nothing but {name}"] = lambda model, value=value: {
            layer: np.full_like(array, value) for layer, array in model.items()
        }
    cases["a signalling NaN"] = put(WEIGHT, lambda a: np.full(a.shape, 0x7F800001, np.uint32).view(np.float32))
    cases["a negative NaN"] = put(WEIGHT, lambda a: np.full(a.shape, 0xFFC00000, np.uint32).view(np.float32))
    return cases


def _types():
    dtypes = ["longdouble", "complex64", "complex128", "int8", "int32", "int64", "uint8", "bool",
              "S4", "U4", "object", "V4", "M8[s]", "m8[s]"]  # fmt: skip
    cases = {f"dtype {dtype}": put(WEIGHT, lambda a, dtype=dtype: np.zeros(a.shape, dtype)) for dtype in dtypes}
    return cases | {
        "a structured dtype": put(WEIGHT, lambda a: np.zeros(a.shape, [("x", "f4")])),
        "an object array of floats": put(WEIGHT, lambda a: a.astype(object)),
        "a list": put(WEIGHT, lambda a: a.tolist()),
        "a ragged list": put(WEIGHT, [[1.0], [1.0, 2.0]]),
        "a tuple": put(BIAS, lambda a: tuple(a.tolist())),
        "None": put(WEIGHT, None),
        "a float": put("scale", 1.0),
        "an integer": put("scale", 1),
        "a string": put(WEIGHT, "weights"),
        "bytes": put(WEIGHT, lambda a: a.tobytes()),
        "a memoryview": put(BIAS, lambda a: memoryview(a)),
        "a dictionary": put(WEIGHT, lambda a: {"data": a}),
        "a function": put(WEIGHT, lambda a: lambda: a),
        "a class": put(WEIGHT, lambda a: np.float32),
        "a generator": put(WEIGHT, lambda a: (row for row in a)),
        "an array that is none": put(WEIGHT, lambda a: Shapeshifter()),
        "an array that is a list": put(WEIGHT, lambda a: Liar()),
        "bfloat16 of doubles": put(WEIGHT, lambda a: BFloat16(a.astype(np.float64))),
        "bfloat16 of nothing": put(WEIGHT, lambda a: BFloat16(None)),
    }


def _layers():
    return {
        "a layer missing": left_out(WEIGHT),
        "two layers missing": left_out(WEIGHT, BIAS),
        "every layer missing": lambda model: {},
        "a layer more": lambda model: {**model, "extra": np.zeros(3, np.float32)},
        "a layer more, of no type": lambda model: {**model, "extra": object()},
        "a layer renamed": renamed(WEIGHT, "hidden.weights"),
        "a layer renamed in case": renamed(WEIGHT, "Hidden.weight"),
        "a prefix before every layer": lambda model: {f"module.{name}": array for name, array in model.items()},
        "a layer named by a number": renamed(WEIGHT, 0),
        "a layer named by None": renamed(WEIGHT, None),
        "a layer named by bytes": renamed(WEIGHT, WEIGHT.encode()),
        "a layer named by a tuple": renamed(WEIGHT, ("hidden", "weight")),
        "a layer named by a lone surrogate": renamed(WEIGHT, "\ud800"),
        "a layer named __metadata__": lambda model: {**model, "__metadata__": np.zeros(3, np.float32)},
        "a layer of no name": renamed(WEIGHT, ""),
        "not a mapping but a list": lambda model: list(model.values()),
        "not a mapping but pairs": lambda model: list(model.items()),
        "not a mapping but None": lambda model: None,
        "not a mapping but an array": lambda model: model[WEIGHT],
        "not a mapping but a number": lambda model: 3,
        "not a mapping but a name": lambda model: "model.pt",
        "not a mapping but a set": lambda model: set(model),
        "a state_dict in a checkpoint": lambda model: {"state_dict": model, "epoch": 3},
    }


ERRORS = [
    KeyError("gone"),
    OSError(5, "Input/output error"),
    FileNotFoundError(2, "No such file", "client.npz"),
    RuntimeError("CUDA error: device lost"),
    MemoryError("9 TiB"),
    ValueError("bad"),
    TypeError("bad"),
    RecursionError("deep"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    ZeroDivisionError(),
    StopIteration(),
    AssertionError("{braces} %s"),
    EOFError("Ran out of input"),
    Exception(),
]


def _failing():
    return {
        f"a model that raises {type(error).__name__}": lambda model, error=error: Fragile(model, error)
        for error in ERRORS
    }


UPLOADS = {
    **_layers(),
    **_failing(),
    **{f"shape: {name}": case for name, case in _shapes().items()},
    **{f"value: {name}": case for name, case in _values().items()},
    **{f"type: {name}": case for name, case in _types().items()},
    **{f"torch: {name}": case for name, case in _torch_cases().items()},
}


def lazily(fl_round, client, error):
    """The round's models as a lazy mapping, in which one client's cannot be loaded."""

    def load(name):
        def loaded():
            if name == client:
                raise error
            return fl_round.local[name]

        return loaded

    return LazyModels({name: load(name) for name in fl_round.clients})
