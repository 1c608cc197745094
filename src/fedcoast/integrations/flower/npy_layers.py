"""Flower's arrays, stored as bytes and decoded on demand.

Strategies empty replies (FedMedian pops layer by layer) and replace them (differential privacy), so a reference to a
record is not enough. The serialised bytes of an array never change: holding them costs nothing while the reply lives,
keeps what the client sent whatever the strategy does, and reading them makes no copy.

`TernaryFedAvg` reads all models in the dtypes of the first global model, and refuses quantised uploads.
"""

import io
from collections.abc import Mapping

import numpy as np
from flwr.app import Array, ArrayRecord

from fedcoast.errors import FedcoastError
from fedcoast.rounds.arrays import Array as NumPyArray

Layers = dict[str, bytes]
Dtypes = Mapping[str, "np.dtype[np.generic]"]

NUMPY = "numpy.ndarray"  # the one way Flower itself serialises arrays


class Unreadable(FedcoastError):
    """Layers that cannot be read as a model; the text says why and what to do."""


def layers_of(record: ArrayRecord) -> Layers:
    """The serialised layers of a record, by name; nothing is copied."""
    for name, array in record.items():
        if array.stype != NUMPY:
            raise Unreadable(
                f"layer {name!r} is serialised as {array.stype!r}, not as a plain NumPy array: an encrypted or"
                " compressed model cannot be assessed; decrypt it before fedcoast sees it"
            )
    return {name: array.data for name, array in record.items()}


def record_of(model: Mapping[str, NumPyArray]) -> ArrayRecord:
    return ArrayRecord({name: Array(np.asarray(array)) for name, array in model.items()})


def view(data: bytes) -> NumPyArray:
    """The array in these bytes of an .npy file, read-only and without a copy.

    >>> view(Array(np.float32([1, 2])).data)
    array([1., 2.], dtype=float32)
    """
    file = io.BytesIO(data)  # shares the bytes
    try:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = header(file)
        if dtype.hasobject:
            raise ValueError("it holds Python objects, which are never unpickled")
        flat = np.frombuffer(data, dtype=dtype, offset=file.tell(), count=int(np.prod(shape, dtype=np.int64)))
        return flat.reshape(shape, order="F" if fortran else "C")
    except Exception as error:  # NumPy's header parser fails in many ways on bytes that are no .npy file
        raise Unreadable(f"these bytes are not one plain NumPy array ({error})") from error


def dtypes_of(layers: Layers) -> dict[str, "np.dtype[np.generic]"]:
    return {name: view(data).dtype for name, data in layers.items()}


def read_model(layers: Layers) -> dict[str, NumPyArray]:
    """All layers as received, read-only and without a copy."""
    return {name: view(data) for name, data in layers.items()}


def read_global(layers: Layers, dtypes: Dtypes) -> dict[str, NumPyArray]:
    """A global model in the dtypes of the first one."""
    return {name: _as_dtype(name, view(data), dtypes.get(name)) for name, data in layers.items()}


def read_upload(layers: Layers, dtypes: Dtypes) -> dict[str, NumPyArray]:
    """A client's model in the dtypes of the global one; a quantised or encrypted one is refused."""
    check_names(layers, dtypes)
    model = {}
    for name, data in layers.items():
        array = view(data)
        expected = dtypes[name]
        if np.issubdtype(expected, np.floating) and not _at_least(array.dtype, expected):
            raise Unreadable(
                f"layer {name!r} is {expected} in the global model and came as {array.dtype}: a quantised or encrypted"
                " upload cannot be compared with the model; undo it before the strategy sees it, or send votes"
                " (fedcoast.integrations.flower.BallotUpload with TernaryFedAvg)"
            )
        model[name] = _as_dtype(name, array, expected)
    return model


def check_names(layers: Mapping[str, object], expected: Mapping[str, object]) -> None:
    missing, extra = expected.keys() - layers.keys(), layers.keys() - expected.keys()
    if missing or extra:
        problems = [f"{min(missing)!r} is missing"] if missing else []
        problems += [f"{min(extra)!r} is not in the global model"] if extra else []
        raise Unreadable(
            f"the upload has other layers than the global model: {' and '.join(problems)}; clients and server must use"
            " the same layer names in every round"
        )


def _at_least(came: "np.dtype[np.generic]", expected: "np.dtype[np.generic]") -> bool:
    return np.issubdtype(came, np.floating) and came.itemsize >= expected.itemsize


def _as_dtype(name: str, array: NumPyArray, expected: "np.dtype[np.generic] | None") -> NumPyArray:
    if expected is None or array.dtype == expected:
        return array
    if np.issubdtype(array.dtype, np.floating) and (
        np.issubdtype(expected, np.floating) or (np.issubdtype(expected, np.integer) and bool(np.isfinite(array).all()))
    ):
        with np.errstate(over="ignore", invalid="ignore"):  # what does not fit becomes infinite, and is refused as that
            return array.astype(expected)
    return array  # another width of integer is carried; anything else is refused by the round, by its name
