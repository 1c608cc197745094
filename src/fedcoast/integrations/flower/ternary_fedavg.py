"""`TernaryFedAvg`: the paper's in-loop mode as a Flower strategy. Clients vote, and the votes move the model.

    Θ^t = Θ^{t−1} + (α/N) · Σ_i Δ̃_i        (Wu et al., CoAst, ACM MM 2024, section 4.2)

Every client has one vote for each entry, regardless of its number of examples; an entry without votes keeps its exact
value. Layers that cannot vote: float buffers (batch-norm statistics) take the weighted mean, integers the largest.
Statistics measured with a client's own weights fit the voted model badly: models with batch norm train worse here.

Uploads may be whole models or votes (`BallotUpload`): model and scores are the same.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg

from fedcoast.errors import BadSetting, FedcoastError
from fedcoast.integrations.flower.ballot_upload import BUFFERS, KEEP, STEPS, cast_ballots, read_ballot, update_of
from fedcoast.integrations.flower.npy_layers import (
    Dtypes,
    Layers,
    Unreadable,
    dtypes_of,
    layers_of,
    read_global,
    read_upload,
    record_of,
)
from fedcoast.integrations.flower.replies import Upload, upload_in
from fedcoast.integrations.named_log import NamedLog
from fedcoast.kernels.aggregation import Step, adaptive_step, mean
from fedcoast.kernels.ballots import Floats, Signs
from fedcoast.kernels.movement import votes
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.schema import NORMALISATION_STATISTICS, LayerSpec, ModelSchema, schema_of

_log = NamedLog(__name__)


@dataclass
class _Voter:
    """One usable upload, reduced to its packed votes and what cannot vote."""

    ballots: Layers
    steps: Mapping[str, float]
    rest: dict[str, Array] = field(default_factory=dict)
    weight: float = 1.0


class TernaryFedAvg(FedAvg):
    """FedAvg by votes: `keep` is the share of each layer that votes (r), `step` how far a vote moves an entry (α).

    `step` may be "avg": each client's votes then go as far as the mean of its updates that vote. `buffers` are patterns
    of layers that are not trained. Everything else is as in Flower's FedAvg.

    An upload that would spoil the model of all does not vote: numbers that are not finite, in buffers too, integers
    that do not fit the model's kind, a step that would carry the model beyond its kind. With "avg" a step that is
    finite but far too large counts, as a far too large model does in any mean. If you do not trust the clients, give
    `step` a number, which bounds what a vote can do.

    A round's metrics tell the bytes of the uploads (`fedcoast/upload-bytes`) and what whole models would have been
    (`fedcoast/upload-bytes-whole`).
    """

    def __init__(
        self,
        keep: float = 0.10,
        step: Step = 0.02,
        buffers: Sequence[str] = NORMALISATION_STATISTICS,
        **options: Any,
    ) -> None:
        _check(keep, step)
        super().__init__(**options)
        self.keep, self.step, self.buffers = float(keep), step, tuple(buffers)
        self._sent: Layers = {}

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        self._sent = layers_of(arrays)
        config[KEEP] = self.keep
        config[STEPS] = self.step if self.step == "avg" else float(self.step)
        config[BUFFERS] = list(self.buffers)
        return super().configure_train(server_round, arrays, config, grid)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        valid, _ = self._check_and_log_replies(list(replies), is_train=True)
        dtypes = dtypes_of(self._sent)
        start = read_global(self._sent, dtypes)
        voters, used = [], []
        for reply in valid:
            upload = upload_in(reply.metadata.src_node_id, reply.content)
            try:
                voters.append(self._voter(upload, start, dtypes))
                used.append(reply.content)
            except FedcoastError as error:  # one bad upload must not spoil the model of all
                _log.warning("round %d: node-%d does not vote: %s", server_round, upload.node_id, error)
        if not voters:
            return None, None
        model = self._moved(start, voters)
        metrics = MetricRecord(dict(self.train_metrics_aggr_fn(used, self.weighted_by_key)))
        metrics["fedcoast/upload-bytes"] = sum(_size(content) for content in used)
        metrics["fedcoast/upload-bytes-whole"] = len(used) * sum(map(len, self._sent.values()))
        return record_of(model), metrics

    def _voter(self, upload: Upload, start: dict[str, Array], dtypes: Dtypes) -> _Voter:
        schema = schema_of(start, self.buffers)
        layers = upload.layers(dtypes)
        weight = _weight(upload, self.weighted_by_key)
        silent = [entry for entry in schema.entries if not entry.trainable]
        if upload.ballots is None:
            model = schema.read(read_upload(layers, dtypes))
            ballots = cast_ballots(schema, start, model, self.keep)
            steps = {entry.name: self._whole_step(start[entry.name], model[entry.name]) for entry in schema.trainable}
            _check_steps(steps, start)
            return _Voter(ballots, steps, _carried(silent, start, layers, dtypes), weight)
        if upload.ballots.keep != self.keep or upload.ballots.steps.keys() != {
            entry.name for entry in schema.trainable
        }:
            raise BadSetting(
                f"votes of keep={self.keep} for {len(schema.trainable)} layers are wanted;"
                f" got keep={upload.ballots.keep} for {len(upload.ballots.steps)}:"
                " client and server must run the same version of fedcoast"
            )
        for entry in schema.trainable:
            read_ballot(entry.name, entry.size, layers[entry.name], self.keep)
        _check_steps(upload.ballots.steps, start)
        return _Voter(layers, upload.ballots.steps, _carried(silent, start, layers, dtypes), weight)

    def _whole_step(self, start: Array, model: Array) -> float:
        return adaptive_step(update_of(start, model), self.keep) if self.step == "avg" else self.step

    def _moved(self, start: dict[str, Array], voters: Sequence[_Voter]) -> dict[str, Array]:
        schema = schema_of(start, self.buffers)
        return {
            entry.name: self._voted(entry, start[entry.name], voters) if entry.trainable else _merged(entry, voters)
            for entry in schema.entries
        }

    def _voted(self, entry: LayerSpec, start: Floats, voters: Sequence[_Voter]) -> Floats:
        ballots = [read_ballot(entry.name, entry.size, voter.ballots[entry.name], self.keep) for voter in voters]
        return moved(start, ballots, [voter.steps[entry.name] for voter in voters] if self.step == "avg" else self.step)


def moved(start: Floats, ballots: Sequence[Signs], step: float | Sequence[float]) -> Floats:
    """`pruned_mean` for ballots that were cast elsewhere: with one step for all, or each client's own.

    >>> moved(np.array([0.5, 0.5]), [np.int8([1, 0]), np.int8([0, -1])], 0.02).tolist()
    [0.51, 0.49]
    """
    if isinstance(step, float | int):
        move: Floats = votes(ballots) * (step / len(ballots))
    else:
        move = mean([size * one for size, one in zip(step, ballots, strict=True)])
    there = start.ravel() + move.astype(start.dtype)
    return np.where(move == 0, start.ravel(), there).reshape(start.shape)  # −0.0 + 0.0 would be +0.0


def _merged(entry: LayerSpec, voters: Sequence[_Voter]) -> Array:
    arrays = [voter.rest[entry.name] for voter in voters]
    if not np.issubdtype(np.dtype(entry.dtype), np.floating):
        return np.asarray(np.maximum.reduce(arrays))
    weights = [voter.weight for voter in voters]
    return mean(arrays, weights if sum(weights) > 0 else None)


def _carried(
    entries: Sequence[LayerSpec], start: Mapping[str, Array], layers: Layers, dtypes: Dtypes
) -> dict[str, Array]:
    """The layers beside the votes that cannot vote: finite, of the right shape and kind, or the upload is refused."""
    untrained = {entry.name: layers[entry.name] for entry in entries}
    read = read_upload(untrained, {entry.name: dtypes[entry.name] for entry in entries})
    model = ModelSchema(tuple(entries)).read(read, before=start)
    return {entry.name: _as_dtype(entry, model[entry.name]) for entry in entries}


def _as_dtype(entry: LayerSpec, array: Array) -> Array:
    """Integers of another width in the model's own: of several dtypes, the largest may be a float."""
    same = array if array.dtype == entry.dtype else array.astype(entry.dtype)
    if same is not array and not np.array_equal(same, array):
        raise Unreadable(f"layer {entry.name!r} must hold numbers of {entry.dtype}; got others in {array.dtype}")
    return same


def _check_steps(steps: Mapping[str, float], start: Mapping[str, Array]) -> None:
    for name, step in steps.items():
        if not 0 <= step < math.inf:
            raise Unreadable(f"the step of layer {name!r} must be a number ≥ 0; got {step}")
        before = start[name]
        with np.errstate(over="ignore"):
            farthest = max(before.max(), -before.min()) + before.dtype.type(step)
        if not np.isfinite(farthest):
            raise Unreadable(
                f"the step of layer {name!r} must keep the model within the numbers of {before.dtype}; got {step}"
            )


def _weight(upload: Upload, key: str) -> float:
    weight = upload.metadata.get(key)
    if isinstance(weight, str) or weight is None or not 0 <= weight < math.inf:
        raise Unreadable(f"the weight {key!r} must be a number ≥ 0; got {weight!r}")
    return float(weight)


def _size(content: Any) -> int:
    """The bytes of the arrays of one reply, and of what belongs to them."""
    return sum(record.count_bytes() for record in content.values())


def _check(keep: object, step: object) -> None:
    if not isinstance(keep, int | float) or isinstance(keep, bool) or not 0 < keep <= 1:
        raise BadSetting(f"keep must lie in (0, 1], the share of each layer that votes; got {keep!r}")
    number = isinstance(step, int | float) and not isinstance(step, bool) and 0 < step < float("inf")
    if step != "avg" and not number:
        raise BadSetting(f"step must be a positive number, how far a vote moves an entry, or 'avg'; got {step!r}")
