"""A `Round` from what a Flower server has in its hands: the model it sent, the uploads, the model it made of them."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

from fedcoast.errors import BadRound, Client
from fedcoast.integrations.flower.ballots import model_of_ballots
from fedcoast.integrations.flower.identity import ResolvedReplies
from fedcoast.integrations.flower.layers import Kinds, Layers, Unreadable, read_global, read_upload
from fedcoast.integrations.flower.replies import Upload
from fedcoast.rounds import LazyModels, Round
from fedcoast.rounds.schema import Model


@dataclass(frozen=True)
class RoundCapture:
    """Everything about one round, before it is a `Round`. No `end` means that the strategy kept the old model.

    `weighted_by` is the key of the weight in what clients say; `factors` are what an operator's action made of it.
    `asked` is the share of votes that the server asked for, if it did: a client's word alone makes no upload votes.
    """

    start: Layers
    roll: ResolvedReplies
    end: Layers | None
    weighted_by: tuple[str, ...] = ()
    factors: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, object] = field(default_factory=dict)
    asked: Collection[float] = ()


def assemble(number: int, seen: RoundCapture, kinds: Kinds, buffers: Collection[str]) -> Round:
    """The round, its uploads read one client at a time when an observer asks for them."""
    start = read_global(seen.start, kinds)
    uploads, share = seen.roll.clients, _share(number, seen.asked)
    voted = any(upload.ballots is not None and upload.ballots.keep == share for upload in uploads.values())
    return Round(
        number=number,
        start=start,
        local=LazyModels({client: _loader(upload, start, kinds, share) for client, upload in uploads.items()}),
        end=start if seen.end is None else read_global(seen.end, kinds),
        weights=_weights(seen),
        buffers=buffers,
        quarantined=seen.roll.refused,
        metrics=_metrics(seen),
        ballot_keep=share if voted else None,
    )


def _metrics(seen: RoundCapture) -> dict[str, float]:
    """The strategy's numbers, and what an operator's action did to whose weight: what was decided is on record."""
    acted = {f"fedcoast/factor/{client}": factor for client, factor in seen.factors.items()}
    return {key: value for key, value in seen.metrics.items() if _finite(value)} | acted


def _loader(upload: Upload, start: Model, kinds: Kinds, share: float | None) -> Callable[[], Model]:
    def load() -> Model:
        layers, ballots = upload.layers(kinds), upload.ballots
        if ballots is None or share is None:  # where nobody asked for votes, the strategy takes them for a model too
            return read_upload(layers, kinds)
        if ballots.keep != share:
            raise Unreadable(
                f"votes of keep={share} were asked for; got keep={ballots.keep}: client and server must run the same"
                " version of fedcoast"
            )
        return model_of_ballots(layers, start, ballots)

    return load


def _share(number: int, asked: Collection[float]) -> float | None:
    if len(asked) > 1:
        raise BadRound(
            f"round {number}: the server asked for votes of different shares ({', '.join(map(str, sorted(asked)))});"
            " one share for all clients is wanted, so that their votes can be compared"
        )
    return next(iter(asked), None)


def _weights(seen: RoundCapture) -> dict[Client, float] | None:
    """The weights, if every client sent a usable one: they are a fact of the round that no score needs."""
    weights: dict[Client, float] = {}
    for client, upload in seen.roll.clients.items():
        said = next((upload.said[key] for key in seen.weighted_by if key in upload.said), None)
        if not _finite(said) or said < 0:
            return None
        weights[client] = float(said) * seen.factors.get(client, 1.0)
    return weights or None


def _finite(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
