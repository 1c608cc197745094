"""What each client did in each round, in a few numbers: the ground that flags are raised on.

Updates are looked at in a sample of their entries, the same in every round. Of earlier rounds the samples of the last
uploads and of the last four global steps are held, and nothing else.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedcoast.errors import Client
from fedcoast.rounds import Round
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.clients import as_client
from fedcoast.rounds.schema import ModelSchema
from fedcoast.rounds.unmoved import layer_of

Sample = NDArray[np.float64]

MOST_OF_A_LAYER = 4096
STEPS = 4
EQUAL = 0.9999  # cosine of two updates that are the same but for rounding
FEWEST_ENTRIES = 100  # with fewer, honest updates may well point the same way


@dataclass(frozen=True)
class Observed:
    """One client in one round. Cosines are NaN where there is nothing to compare with."""

    equals_start: bool
    equals_own_last: bool
    equals_other: Client | None
    equals_other_last: Client | None
    replayed: float
    own_direction: float
    agreement: float
    others_agreement: float
    length: float
    weight: float
    layers: Mapping[str, tuple[float, float]] = field(default_factory=dict)


class Behaviour:
    """Watches rounds; `by_client` has what was seen of each client, in the order of the rounds."""

    def __init__(self) -> None:
        self.by_client: dict[Client, list[Observed]] = {}
        self._updates: dict[Client, Sample] = {}
        self._uploads: dict[Client, Sample] = {}
        self._steps: list[Sample] = []

    def observe(self, fl_round: Round) -> None:
        """Look at a round; those known by their ballots only, and tiny models, tell nothing."""
        if fl_round.ballot_keep is not None:
            return
        schema = fl_round.schema()
        layers = _layers(schema)
        start = _sample(schema, fl_round.read_start(schema))
        uploads = _uploads(fl_round, schema)
        if any(step.size != start.size for step in self._steps):  # the model has grown: nothing earlier compares
            self._updates, self._uploads, self._steps = {}, {}, []
        updates = {client: upload - start for client, upload in uploads.items()}
        logs = _weights(fl_round)
        if len(updates) > 1 and start.size >= FEWEST_ENTRIES:
            agreements = {client: _agreement(client, updates) for client in updates}
            by_layer = {
                layer: {
                    client: _agreement(client, {other: update[part] for other, update in updates.items()})
                    for client in updates
                }
                for layer, part in layers.items()
            }
            for client in updates:
                row = self._row(client, uploads, updates, agreements, by_layer, logs)
                self.by_client.setdefault(client, []).append(row)
        self._updates.update(updates)
        self._uploads.update(uploads)
        self._steps = [*self._steps, _sample(schema, fl_round.read_end(schema)) - start][-STEPS:]

    def _row(
        self,
        client: Client,
        uploads: Mapping[Client, Sample],
        updates: Mapping[Client, Sample],
        agreements: Mapping[Client, float],
        by_layer: Mapping[str, Mapping[Client, float]],
        logs: Mapping[Client, float],
    ) -> Observed:
        update, length = updates[client], float(np.linalg.norm(updates[client]))
        others = [other for other in updates if other != client]
        moved = length > 0
        lengths = [np.linalg.norm(updates[other]) for other in others]
        usual = float(np.median(lengths))
        return Observed(
            equals_start=not moved and usual > 0,  # where nobody moves, being still is no evidence
            equals_own_last=moved and _same(uploads[client], self._uploads.get(client)),
            equals_other=next((o for o in others if moved and _cosine(update, updates[o]) > EQUAL), None),
            equals_other_last=next((o for o in others if moved and _same(uploads[client], self._uploads.get(o))), None),
            replayed=_explained(update, self._steps),
            own_direction=_cosine(update, self._updates[client]) if client in self._updates else float("nan"),
            agreement=agreements[client],
            others_agreement=float(np.median([agreements[other] for other in others])),
            length=float(np.log(length / usual)) if moved and usual > 0 else float("nan"),
            weight=logs.get(client, float("nan")),
            layers={
                layer: (values[client], float(np.median([values[other] for other in others])))
                for layer, values in by_layer.items()
            },
        )


def _uploads(fl_round: Round, schema: ModelSchema) -> dict[Client, Sample]:
    """The uploads that can be read; whoever scores the round reports the others."""
    found = {}
    for key in fl_round.local:
        client = as_client(key)
        if client not in fl_round.quarantined:
            with suppress(Exception):  # a lazy mapping may fail in any way
                found[client] = _sample(schema, schema.read(fl_round.local[key], before=fl_round.start))
    return found


def series(rows: list[Observed], name: str) -> list[float]:
    """The defined values of one number over the rounds."""
    return [value for row in rows if not np.isnan(value := getattr(row, name))]


def _sample(schema: ModelSchema, model: Mapping[str, Array]) -> Sample:
    parts = [model[entry.name].reshape(-1)[:: _stride(entry)].astype(np.float64) for entry in schema.trainable]
    return np.concatenate(parts)


def _layers(schema: ModelSchema) -> dict[str, slice]:
    """Where the entries of each layer lie in a sample."""
    found: dict[str, slice] = {}
    at = 0
    for entry in schema.trainable:
        size = -(-int(np.prod(entry.shape)) // _stride(entry))
        layer = layer_of(entry.name)
        found[layer] = slice(found[layer].start if layer in found else at, at + size)
        at += size
    return found


def _stride(entry: Any) -> int:
    return max(1, -(-int(np.prod(entry.shape)) // MOST_OF_A_LAYER))


def _agreement(client: Client, updates: Mapping[Client, Sample]) -> float:
    """The cosine with the mean direction of the others."""
    directions = [_direction(update) for other, update in updates.items() if other != client]
    return _cosine(updates[client], np.sum(directions, axis=0))


def _direction(update: Sample) -> Sample:
    length = np.linalg.norm(update)
    return update / length if length > 0 else update


def _cosine(one: Sample, other: Sample) -> float:
    scale = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / scale if scale > 0 else 0.0


def _same(one: Sample, other: Sample | None) -> bool:
    return other is not None and np.array_equal(one, other)


def _explained(update: Sample, steps: list[Sample]) -> float:
    """The share of the update's squared length that some combination of the steps explains."""
    total = float(update @ update)
    if not steps or total == 0:
        return 0.0
    basis = np.stack(steps, axis=1)
    factors, *_ = np.linalg.lstsq(basis, update, rcond=None)
    rest = update - basis @ factors
    return 1 - float(rest @ rest) / total


def _weights(fl_round: Round) -> dict[Client, float]:
    """The logarithm of each claimed weight over the median of all."""
    if not fl_round.weights:
        return {}
    usual = float(np.median(list(fl_round.weights.values())))
    return {c: float(np.log(w / usual)) for c, w in fl_round.weights.items() if w > 0 and usual > 0}
