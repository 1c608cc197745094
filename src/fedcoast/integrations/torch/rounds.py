"""A round whose uploads stay on their device: only their ballots reach the server's memory."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from fedcoast.errors import BadRound, Client, FedcoastError
from fedcoast.integrations.torch.casting import cast, packed
from fedcoast.rounds.arrays import FLOAT_DTYPES, BFloat16, UnusableArray, read
from fedcoast.rounds.clients import as_client
from fedcoast.rounds.round import LazyModels, Round
from fedcoast.rounds.schema import NORMALISATION_STATISTICS, LayerSpec, Model, ModelSchema, schema_of
from fedcoast.storage.ballot_files import BallotModel

Planes = dict[str, NDArray[np.uint8]]


def ballot_round(
    number: int,
    start: Model,
    local: Mapping[Any, Model],
    end: Model,
    keep: float = 0.10,
    weights: Mapping[Any, float] | None = None,
    buffers: Collection[str] = NORMALISATION_STATISTICS,
    quarantined: Mapping[Client, str] | None = None,
    metrics: Mapping[str, float] | None = None,
) -> Round:
    """The `Round` of these models, its uploads reduced to ballots of `keep` on the device that holds them.

    The models are read once, now; only the ballots and the two global models are kept, the latter copied as they are.
    For CoAst with the same `keep` and the signals "ballot" and "pruned". An upload that cannot be used is quarantined,
    or raises, when an assessor looks at the round. `local` may load its models one by one.
    """
    if not isinstance(local, Mapping):
        raise BadRound(f"round {number}: local must map each client to its model; got {type(local).__name__}")
    before = _on_host(start)
    try:
        schema = schema_of(before, buffers)
    except FedcoastError as error:
        raise BadRound(f"round {number}, global model before: {error}") from error
    starts = _Starts(start)
    loaders: dict[Client, Callable[[], Model]] = {}
    for key in local:
        try:
            planes = _reduce(schema, before, starts, local[key], keep)
        except Exception as error:  # as in a round of whole uploads, it costs only this client
            loaders[as_client(key)] = partial(_fail, error)
        else:
            loaders[as_client(key)] = partial(BallotModel, schema, before, planes, "the device")
    return Round(
        number=number,
        start=before,
        local=LazyModels(loaders),
        end=_on_host(end),
        weights=weights,
        buffers=buffers,
        quarantined=quarantined or {},
        metrics=metrics or {},
        ballot_keep=keep,
    )


class _Starts:
    """The layers of the global model on whichever device an upload is; they travel there once."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._on_device: dict[tuple[str, torch.device], torch.Tensor] = {}

    def on(self, name: str, device: torch.device) -> torch.Tensor:
        if (name, device) not in self._on_device:
            self._on_device[name, device] = _as_tensor(self._model[name]).to(device)
        return self._on_device[name, device]


def _reduce(schema: ModelSchema, before: Model, starts: _Starts, model: Model, keep: float) -> Planes:
    arrays = schema.pick(model, [entry.name for entry in schema.entries])
    if not all(_usable(entry, arrays[entry.name]) for entry in schema.entries):
        schema.read(arrays, before)  # raises the error that names the problem, if there is one
    planes = {}
    for entry in schema.trainable:
        tensor = _as_tensor(arrays[entry.name]).to(getattr(torch, entry.dtype))
        planes[entry.name] = packed(cast(starts.on(entry.name, tensor.device), tensor, keep))
    return planes


def _usable(entry: LayerSpec, value: object) -> bool:
    try:
        tensor = _as_tensor(value)
    except UnusableArray:
        return False
    dense = tensor.layout == torch.strided and not tensor.is_meta
    alike = tuple(tensor.shape) == entry.shape and str(tensor.dtype) == f"torch.{entry.dtype}"
    return dense and alike and (entry.dtype not in FLOAT_DTYPES or bool(tensor.isfinite().all()))


def _as_tensor(value: object) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value.detach()
    array, kind = read(value)
    tensor = torch.from_numpy(np.array(array))
    return tensor.to(torch.bfloat16) if kind == "bfloat16" else tensor


def _on_host(model: Model) -> Model:
    """A copy in this machine's memory; what cannot be read stays as it is, for the round to complain of."""
    return {name: _copy(value) for name, value in model.items()} if isinstance(model, Mapping) else model


def _copy(value: object) -> object:
    try:
        array, kind = read(value)
    except UnusableArray:
        return value
    return BFloat16(np.array(array)) if kind == "bfloat16" else np.array(array)


def _fail(error: Exception) -> NoReturn:
    raise error
