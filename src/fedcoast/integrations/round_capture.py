"""What a server of any framework knows of one round, and how it becomes a `Round`.

Frameworks differ in what their servers hold. Averages come in float64 where clients send float32, the mean of an
integer counter is a float, and some clients send differences instead of models. A `RoundCapture` takes all of it as it
comes; `build_round` reads it by the schema of the first global model.
"""

import math
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from fedcoast.errors import Client, FedcoastError, shortened
from fedcoast.rounds import LazyModels, Round
from fedcoast.rounds.arrays import FLOAT_DTYPES, Array, UnusableArray, arithmetic, read
from fedcoast.rounds.clients import as_client
from fedcoast.rounds.schema import Model, ModelSchema

_SAMPLE = 4096  # entries of a layer that are compared to recognise a difference


class UnreadableUpload(FedcoastError):
    """An upload that cannot be read as a model; the text says why and what to do."""


@dataclass(frozen=True)
class ClientUpload:
    """One client's upload, loaded on demand: a model, or its difference from the model that the client was sent."""

    load: Callable[[], Model]
    weight: object = None
    is_difference: bool = False


@dataclass(frozen=True)
class RoundCapture:
    """One round as the server saw it. No `end` means that the server kept the old model.

    `rejections` maps clients that are left out to the reason, `factors` are those of an intervention, and `ballot_keep`
    is the share of votes if the uploads are known by their votes only.
    """

    start: Model
    uploads: Mapping[Client, ClientUpload]
    end: Model | None
    rejections: Mapping[Client, str] = field(default_factory=dict)
    metrics: Mapping[str, object] = field(default_factory=dict)
    factors: Mapping[str, float] = field(default_factory=dict)
    num_replies: int | None = None
    ballot_keep: float | None = None


def build_round(number: int, capture: RoundCapture, schema: ModelSchema, buffers: Collection[str]) -> Round:
    """The round, its uploads read one client at a time when an observer asks for them."""
    start = conform(capture.start, schema)
    loaders = {client: upload_loader(upload, start, schema, capture) for client, upload in capture.uploads.items()}
    metrics: dict[str, Any] = {name: value for name, value in capture.metrics.items() if _is_finite(value)}
    metrics |= {f"fedcoast/factor/{client}": factor for client, factor in capture.factors.items()}
    return Round(
        number=number,
        start=start,
        local=LazyModels(loaders),
        end=start if capture.end is None else conform(capture.end, schema),
        weights=_weights(capture),
        buffers=buffers,
        quarantined=capture.rejections,
        metrics=metrics,
        ballot_keep=capture.ballot_keep,
    )


def upload_loader(
    upload: ClientUpload, start: Mapping[str, object], schema: ModelSchema, capture: RoundCapture
) -> Callable[[], Model]:
    """Loads the client's model by the schema; a difference is added to the start model."""

    def load() -> Model:
        model = upload.load()
        if upload.is_difference:
            return conform(add_difference(start, model), schema)
        model = conform(model, schema)
        if capture.ballot_keep is None:
            _refuse_difference(model, start, schema)
        return model

    return load


def conform(model: Model, schema: ModelSchema) -> dict[str, object]:
    """The model with its counters as integers: a server's mean of integers is a float. Other layers as they come."""
    dtypes = {entry.name: entry.dtype for entry in schema.entries}
    return {name: _conform(name, value, dtypes.get(name)) for name, value in model.items()}


def _conform(name: str, value: object, expected: str | None) -> object:
    try:
        array, dtype = read(value)
    except UnusableArray:
        return value  # the schema has the error that names the layer
    if expected in FLOAT_DTYPES and dtype not in FLOAT_DTYPES:
        raise UnreadableUpload(
            f"layer {name!r} is {expected} in the global model and came as {dtype}: a quantised or encrypted upload"
            " cannot be compared with the model; decode it before it is aggregated"
        )
    if (
        expected is not None
        and expected not in FLOAT_DTYPES
        and dtype in FLOAT_DTYPES
        and bool(np.isfinite(array).all())
    ):
        return array.astype(expected)
    return value


def with_differences_added(fl_round: Round) -> Round:
    """The same round where clients sent what they changed: each upload becomes start + difference when it is read."""

    def load(key: Client) -> Model:
        return add_difference(fl_round.start, fl_round.local[key])

    return replace(fl_round, local=LazyModels({key: partial(load, key) for key in fl_round.local}))


def add_difference(start: Mapping[str, object], difference: Model) -> dict[str, object]:
    """start + difference, layer by layer, in the wider precision of the two."""
    model: dict[str, object] = {}
    for name, value in difference.items():
        if name not in start:
            model[name] = value  # the schema names the layer that is not in the global model
            continue
        before, step = arithmetic(read(start[name])[0]), arithmetic(read(value)[0])
        if before.shape != step.shape:
            raise UnreadableUpload(f"layer {name!r} must have shape {before.shape}; got {step.shape}")
        with np.errstate(over="ignore", invalid="ignore"):
            model[name] = before + step
    return model


def _refuse_difference(model: Mapping[str, object], start: Mapping[str, object], schema: ModelSchema) -> None:
    """Refuse what is much nearer to zero than to the model that was sent: a difference or a gradient."""
    size = distance = 0.0
    for entry in schema.trainable:
        if entry.name not in model or entry.name not in start:
            return
        upload, before = _sample(model[entry.name]), _sample(start[entry.name])
        if upload.shape != before.shape:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            size += float(upload @ upload)
            distance += float((upload - before) @ (upload - before))
    if 0 < 4 * size < distance:
        raise UnreadableUpload(
            "the upload is much nearer to zero than to the global model: it looks like a difference or a gradient, not"
            " a model. If clients send differences, say so (uploads='differences'); else send the trained model"
        )


def _sample(value: object) -> Array:
    array, _ = read(value)
    flat = array.reshape(-1)
    return np.asarray(flat[:: max(1, flat.size // _SAMPLE)], np.float64)


def bad_uploads(capture: RoundCapture, schema: ModelSchema) -> dict[Client, str]:
    """The clients whose upload or weight cannot be used, with the reason."""
    start = conform(capture.start, schema)
    before: Model | None
    try:
        before = schema.read(start)
    except FedcoastError:
        before = None
    reasons: dict[Client, str] = {}
    for client, upload in capture.uploads.items():
        try:
            schema.read(upload_loader(upload, start, schema, capture)(), before=before)
        except Exception as error:  # a loader may fail in any way
            reasons[client] = str(error)
        else:
            if upload.weight is not None and not is_weight(upload.weight):
                reasons[client] = f"its weight must be a number ≥ 0; got {shown(upload.weight)}"
    return reasons


def huge_uploads(capture: RoundCapture, schema: ModelSchema) -> dict[Client, str]:
    """The clients that sent finite numbers which are too large to be averaged with others."""
    start = conform(capture.start, schema)
    reasons: dict[Client, str] = {}
    for client, upload in capture.uploads.items():
        with suppress(Exception):  # what cannot be read is named by `bad_uploads`
            model = schema.read(upload_loader(upload, start, schema, capture)())
            for entry in schema.trainable:
                array = arithmetic(model[entry.name])
                largest = float(np.abs(array).max(initial=0))
                if largest > float(np.finfo(array.dtype).max) ** 0.5:
                    reasons[client] = f"layer {entry.name!r} holds {largest:.3g}, too large to be averaged"
                    break
    return reasons


def without_bad_names(capture: RoundCapture) -> RoundCapture:
    """Leave out clients whose name is not usable (too long, say), so that the others keep the round."""
    uploads: dict[Client, ClientUpload] = {}
    rejections: dict[Client, str] = {}
    for name, upload in capture.uploads.items():
        try:
            uploads[as_client(name)] = upload
        except FedcoastError as error:
            rejections[shown(name)] = str(error)
    for name, reason in capture.rejections.items():
        try:
            rejections[as_client(name)] = shortened(reason)
        except FedcoastError:
            rejections[shown(name)] = shortened(reason)
    return replace(capture, uploads=uploads, rejections=rejections)


def shown(value: object) -> str:
    """A value from a client, short enough for a message: it may be a number of a million digits."""
    try:
        return shortened(repr(value), 40)
    except Exception:
        return f"a {type(value).__name__} that cannot be shown"


def is_weight(value: object) -> bool:
    return _is_finite(value) and float(value) >= 0  # type: ignore[arg-type]


def _weights(capture: RoundCapture) -> dict[Client, float] | None:
    """The weights if every client sent a usable one: a fact of the round that no score needs."""
    weights = {client: upload.weight for client, upload in capture.uploads.items()}
    if not weights or not all(is_weight(weight) for weight in weights.values()):
        return None
    factors = capture.factors
    return {client: float(weight) * factors.get(str(client), 1.0) for client, weight in weights.items()}  # type: ignore[arg-type]


def _is_finite(value: object) -> bool:
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the range of floats
        return False
