"""Builds a `Round` from what a Flower server has: the model it sent, the uploads, and the aggregated model."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from fedcoast.errors import BadRound, Client
from fedcoast.integrations.flower.ballot_upload import model_of_ballots
from fedcoast.integrations.flower.identity import ResolvedReplies
from fedcoast.integrations.flower.npy_layers import Dtypes, Layers, Unreadable, read_global, read_upload
from fedcoast.integrations.flower.replies import Upload
from fedcoast.rounds import LazyModels, Round
from fedcoast.rounds.schema import Model


@dataclass(frozen=True)
class RoundCapture:
    """Everything about one round, before it is a `Round`. No `end` means that the strategy kept the old model.

    `weighted_by` names the metadata key of the weight; `factors` are those of an intervention. `ballot_keeps` holds the
    share of votes that the server requested, if any: a client's claim alone does not turn an upload into votes.
    """

    start: Layers
    replies: ResolvedReplies
    end: Layers | None
    weighted_by: tuple[str, ...] = ()
    factors: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, object] = field(default_factory=dict)
    ballot_keeps: Collection[float] = ()


def assemble(number: int, capture: RoundCapture, dtypes: Dtypes, buffers: Collection[str]) -> Round:
    """The round, its uploads read one client at a time when an observer asks for them."""
    start = read_global(capture.start, dtypes)
    uploads, share = capture.replies.uploads, _share(number, capture.ballot_keeps)
    voted = any(upload.ballots is not None and upload.ballots.keep == share for upload in uploads.values())
    return Round(
        number=number,
        start=start,
        local=LazyModels({client: _loader(upload, start, dtypes, share) for client, upload in uploads.items()}),
        end=start if capture.end is None else read_global(capture.end, dtypes),
        weights=_weights(capture),
        buffers=buffers,
        quarantined=capture.replies.rejections,
        metrics=_metrics(capture),
        ballot_keep=share if voted else None,
    )


def _metrics(capture: RoundCapture) -> dict[str, float]:
    """The strategy's numbers, and the factors of an intervention, so that they are recorded."""
    interventions = {f"fedcoast/factor/{client}": factor for client, factor in capture.factors.items()}
    return {key: value for key, value in capture.metrics.items() if _finite(value)} | interventions


def _loader(upload: Upload, start: Model, dtypes: Dtypes, share: float | None) -> Callable[[], Model]:
    def load() -> Model:
        layers, ballots = upload.layers(dtypes), upload.ballots
        if ballots is None or share is None:  # where nobody requested votes, the strategy takes them for a model too
            return read_upload(layers, dtypes)
        if ballots.keep != share:
            raise Unreadable(
                f"votes of keep={share} were requested; got keep={ballots.keep}: client and server must run the same"
                " version of fedcoast"
            )
        return model_of_ballots(layers, start, ballots)

    return load


def _share(number: int, ballot_keeps: Collection[float]) -> float | None:
    if len(ballot_keeps) > 1:
        raise BadRound(
            f"round {number}: the server requested votes of different shares"
            f" ({', '.join(map(str, sorted(ballot_keeps)))}); request one share of all clients"
        )
    return next(iter(ballot_keeps), None)


def _weights(capture: RoundCapture) -> dict[Client, float] | None:
    """The weights, if every client sent a usable one: they are a fact of the round that no score needs."""
    weights: dict[Client, float] = {}
    for client, upload in capture.replies.uploads.items():
        weight = next((upload.metadata[key] for key in capture.weighted_by if key in upload.metadata), None)
        if not _finite(weight) or weight < 0:
            return None
        weights[client] = float(weight) * capture.factors.get(client, 1.0)
    return weights or None


def _finite(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
