"""Votes instead of models: a client mod that uploads two bits per parameter, and its server side.

The server (`TernaryFedAvg`) tells the clients in the config of the round which share of each layer votes, so there is
nothing to set twice, and a client never sends votes to a server that cannot read them. The client computes the ballot
that the server would have computed from the whole model: the same start, the same upload, the same formula. Layers that
cannot vote (batch-norm statistics, counters) are sent as they are.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message

from fedcoast.errors import FedcoastError
from fedcoast.integrations.flower.npy_layers import (
    NUMPY,
    Layers,
    Unreadable,
    dtypes_of,
    layers_of,
    read_global,
    read_upload,
    view,
)
from fedcoast.integrations.flower.replies import BALLOTS, Ballots
from fedcoast.integrations.named_log import NamedLog
from fedcoast.kernels.aggregation import adaptive_step
from fedcoast.kernels.ballots import Floats, Signs, num_kept, pack, unpack
from fedcoast.kernels.top_share import quick_ballot
from fedcoast.rounds.arrays import Array as NumPyArray
from fedcoast.rounds.arrays import arithmetic
from fedcoast.rounds.schema import Model, ModelSchema, schema_of
from fedcoast.storage.ballot_files import moved

KEEP, STEPS, BUFFERS = "fedcoast-keep", "fedcoast-step", "fedcoast-buffers"
"""Keys that the server writes to the ConfigRecord of a train message."""

RESIDUAL = "fedcoast.residual"

_log = NamedLog(__name__)


@dataclass(frozen=True)
class BallotUpload:
    """A client mod: `ClientApp(mods=[BallotUpload()])`, first in the list, so that it sees what would be sent.

    `error_feedback` adds to each update what earlier votes omitted (update − step · votes), kept in the node's own
    state. That is another algorithm, which the server cannot reproduce from whole uploads; without it, model and
    scores are those of pruning on the server, to the last bit.
    """

    error_feedback: bool = False

    def __call__(self, message: Message, context: Context, call_next: Callable[[Message, Context], Message]) -> Message:
        request = _ballot_request(message)
        start = _model_in(message) if request is not None else None  # before the app can remove it from the record
        reply = call_next(message, context)
        if request is None or start is None or reply.has_error():
            return reply
        try:
            self._replace(reply, start, request, context)
        except FedcoastError as error:  # the server names what is wrong with the whole upload
            _log.warning("the model is sent whole: %s", error)
        return reply

    def _replace(self, reply: Message, start: Layers, request: ConfigRecord, context: Context) -> None:
        key, upload = _record_in(reply, start)
        dtypes = dtypes_of(start)
        before, after = read_global(start, dtypes), read_upload(layers_of(upload), dtypes)
        schema = schema_of(before, _patterns(request))
        residual = _residual(context) if self.error_feedback else {}
        arrays, steps, left = dict(upload.items()), dict[str, float](), dict[str, Array]()
        for entry in schema.trainable:
            update = update_of(before[entry.name], after[entry.name]) + residual.get(entry.name, 0)
            if not np.isfinite(update).all():
                raise Unreadable(f"layer {entry.name!r} is not finite")
            keep, step = _number(request[KEEP]), request[STEPS]
            ballot = quick_ballot(update, keep)
            steps[entry.name] = adaptive_step(update, keep) if step == "avg" else _number(step)
            arrays[entry.name] = Array(pack(ballot))
            if self.error_feedback:
                left[entry.name] = Array(_left(update, ballot, steps[entry.name]))
        reply.content[key] = ArrayRecord(arrays)
        reply.content[BALLOTS] = ConfigRecord(
            {"keep": _number(request[KEEP]), "layers": list(steps), "steps": list(steps.values())}
        )
        if self.error_feedback:
            context.state[RESIDUAL] = ArrayRecord(left)


def requested_keeps(messages: Iterable[Message]) -> frozenset[float]:
    """The shares of votes that the server requested in these messages: one if it wants votes, else none."""
    keeps = [record[KEEP] for message in messages if (record := _ballot_request(message)) is not None]
    return frozenset(float(keep) for keep in keeps if isinstance(keep, int | float))


def read_ballot(name: str, size: int, data: bytes, keep: float) -> Signs:
    """The votes of one layer, as packed by a client; refused if malformed, or if there are more votes than allowed."""
    planes = view(data)
    if planes.dtype != np.uint8 or planes.shape != (2, -(-size // 8)):
        raise Unreadable(f"layer {name!r} holds no packed votes of {size} entries")
    if not 0 < keep <= 1:
        raise Unreadable(f"the share of a layer that votes lies in (0, 1]; got {keep}")
    cast = unpack(planes, size)
    cast_votes, allowed = np.count_nonzero(cast), num_kept(size, keep)
    if cast_votes > allowed:
        raise Unreadable(f"layer {name!r} holds {cast_votes} votes; {allowed} of {size} may be cast (keep={keep})")
    return cast


def model_of_ballots(layers: Layers, start: Model, ballots: Ballots) -> Model:
    """The model that a recorder of ballots would replay: start + 0.02 · votes; layers that cannot vote as they came."""
    model: dict[str, NumPyArray] = {}
    for name, data in layers.items():
        if name not in ballots.steps:
            model[name] = view(data)
            continue
        before = np.asarray(start[name])
        cast = read_ballot(name, before.size, data, ballots.keep)
        model[name] = moved(before, cast)
    return model


def cast_ballots(
    schema: ModelSchema, start: Mapping[str, NumPyArray], model: Mapping[str, NumPyArray], keep: float
) -> Layers:
    """The packed votes of a whole upload, by layer: what the client would have sent."""
    return {
        entry.name: Array(pack(quick_ballot(update_of(start[entry.name], model[entry.name]), keep))).data
        for entry in schema.trainable
    }


def update_of(start: NumPyArray, model: NumPyArray) -> Floats:
    """θ − Θ in the precision that differences are taken in, the same on both sides of the wire."""
    with np.errstate(over="ignore"):
        return np.asarray(arithmetic(model) - arithmetic(start))


def _left(update: Floats, cast: Signs, step: float) -> Floats:
    return np.asarray(update - (step * cast).astype(update.dtype).reshape(update.shape))


def _ballot_request(message: Message) -> ConfigRecord | None:
    """The config that requests votes, or None if the server wants whole models."""
    if not message.has_content() or not message.metadata.message_type.startswith("train"):
        return None
    for record in message.content.values():
        if isinstance(record, ConfigRecord) and KEEP in record and STEPS in record:
            return record
    return None


def _model_in(message: Message) -> Layers | None:
    records = [record for record in message.content.values() if isinstance(record, ArrayRecord)]
    plain = len(records) == 1 and all(array.stype == NUMPY for array in records[0].values())
    return layers_of(records[0]) if plain else None


def _record_in(reply: Message, start: Layers) -> tuple[str, ArrayRecord]:
    for key, record in reply.content.items():
        if isinstance(record, ArrayRecord) and record.keys() == start.keys():
            return key, record
    raise Unreadable("no ArrayRecord of the reply has the layers of the global model")


def _residual(context: Context) -> dict[str, NumPyArray]:
    record = context.state.get(RESIDUAL)
    return {name: array.numpy() for name, array in record.items()} if isinstance(record, ArrayRecord) else {}


def _patterns(request: ConfigRecord) -> list[str]:
    patterns = request.get(BUFFERS, [])
    return [pattern for pattern in patterns if isinstance(pattern, str)] if isinstance(patterns, list) else []


def _number(value: object) -> float:
    if not isinstance(value, int | float):
        raise Unreadable(f"the server's share and step of the votes are numbers; got {value!r}")
    return float(value)
