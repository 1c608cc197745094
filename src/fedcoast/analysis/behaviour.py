"""What each client did in each round, in a few numbers. Flags are based on them.

Only a sample of each update's entries is read, the same sample in every round. Samples of the last uploads and of the
last four global steps are kept, and the numbers of each client's last 500 rounds. In rounds of more than 400 clients,
400 are observed, always the same ones. The client that has been absent longest is dropped first.
"""

import hashlib
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
MOST_ROUNDS = 500  # of each client, the latest
MOST_CLIENTS = 400  # of a round: each is compared with all others
MOST_KNOWN = 5000  # clients, the latest
MOST_HELD = 40_000_000  # numbers in the samples of last updates and uploads
STEPS = 4
LARGEST = 1e100  # of an entry; squares of larger ones overflow, and one client's would hide what the others do
EQUAL = 0.9999  # cosine of two updates that are the same but for rounding
FEWEST_ENTRIES = 100  # with fewer, honest updates may well point the same way


@dataclass(frozen=True)
class ClientRound:
    """One client in one round. Cosines are NaN where there is nothing to compare with.

    Clients that send the same update count once: they are not compared with each other, and others are compared
    with one of them only.
    """

    equals_start: bool
    equals_own_last: bool
    equals_other: tuple[Client, ...]
    equals_other_last: Client | None
    replayed: float
    own_direction: float
    others_direction: float
    agreement: float
    others_agreement: float
    length: float
    weight: float
    layers: Mapping[str, tuple[float, float]] = field(default_factory=dict)


class Behaviour:
    """Observes rounds; `by_client` has the numbers of each client, in the order of the rounds."""

    def __init__(self) -> None:
        self.by_client: dict[Client, list[ClientRound]] = {}
        self._updates: dict[Client, Sample] = {}
        self._uploads: dict[Client, Sample] = {}
        self._steps: list[Sample] = []
        self._salt = b""

    def observe(self, fl_round: Round) -> None:
        """Observe a round. Rounds of ballots and tiny models are skipped: they show nothing."""
        if fl_round.ballot_keep is not None:
            return
        schema = fl_round.schema()
        start = _sample(schema, fl_round.read_start(schema))
        if not self._salt:  # known to nobody who chose a name before the training began
            self._salt = hashlib.sha256(start.tobytes()).digest()
        uploads = _uploads(fl_round, schema, self._salt)
        if any(step.size != start.size for step in self._steps):  # the model has grown: nothing earlier compares
            self._updates, self._uploads, self._steps = {}, {}, []
        updates = {client: upload - start for client, upload in uploads.items()}
        if len(updates) > 1 and start.size >= FEWEST_ENTRIES:
            for client, row in self._rows(uploads, updates, _layers(schema), _weights(fl_round)).items():
                rows = self.by_client.setdefault(client, [])
                rows.append(row)
                del rows[:-MOST_ROUNDS]
        self._keep(updates, uploads)
        self._steps = [*self._steps, _sample(schema, fl_round.read_end(schema)) - start][-STEPS:]

    def _keep(self, updates: Mapping[Client, Sample], uploads: Mapping[Client, Sample]) -> None:
        """Hold the newest samples, of the clients that were here last."""
        for samples, newest in ((self._updates, updates), (self._uploads, uploads)):
            for client, sample in newest.items():
                samples.pop(client, None)  # to the end, where the newest are
                samples[client] = sample
            size = next(iter(newest.values())).size if newest else 1
            for client in list(samples)[: -max(len(newest), MOST_HELD // (2 * max(1, size)), 1)]:
                del samples[client]
        if len(self.by_client) > MOST_KNOWN:
            recent = set(list(self._updates)[-MOST_KNOWN // 2 :])
            away = [client for client in self.by_client if client not in recent]
            for client in away[: len(self.by_client) - MOST_KNOWN]:
                del self.by_client[client]

    def _rows(
        self,
        uploads: Mapping[Client, Sample],
        updates: Mapping[Client, Sample],
        parts: Mapping[str, slice],
        weights: Mapping[Client, float],
    ) -> dict[Client, ClientRound]:
        clients = list(updates)
        products = {layer: _products([update[part] for update in updates.values()]) for layer, part in parts.items()}
        whole = np.sum(list(products.values()), axis=0)
        lengths = np.sqrt(whole.diagonal())
        same = _first_with_same_update(_cosines(whole))
        distinct = DistinctUpdates(same)
        agreements = distinct.agreements(_cosines(whole))
        by_layer = {layer: distinct.agreements(_cosines(product)) for layer, product in products.items()}
        directions = np.array(
            [_cosine(updates[c], self._updates[c]) if c in self._updates else np.nan for c in clients]
        )
        rows = {}
        before: dict[bytes, list[Client]] = {}
        for client in clients:
            if client in self._uploads:
                before.setdefault(_digest(self._uploads[client]), []).append(client)
        for place, client in enumerate(clients):
            moved, median = lengths[place] > 0, distinct.median_of_others(lengths, place)
            earlier = (other for other in before.get(_digest(uploads[client]), ()) if other != client)
            rows[client] = ClientRound(
                equals_start=bool(not moved and median > 0),  # if nobody moves, not moving is no evidence
                equals_own_last=bool(moved and _same(uploads[client], self._uploads.get(client))),
                equals_other=tuple(clients[at] for at in np.flatnonzero(same == same[place]) if at != place),
                equals_other_last=next(earlier, None) if moved else None,
                replayed=_explained(updates[client], self._steps),
                own_direction=float(directions[place]),
                others_direction=distinct.median_of_others(directions, place),
                agreement=float(agreements[place]),
                others_agreement=distinct.median_of_others(agreements, place),
                length=float(np.log(lengths[place] / median)) if moved and median > 0 else float("nan"),
                weight=weights.get(client, float("nan")),
                layers={
                    layer: (float(of[place]), distinct.median_of_others(of, place)) for layer, of in by_layer.items()
                },
            )
        return rows


class DistinctUpdates:
    """Groups of clients that sent the same update; the first of each group counts."""

    def __init__(self, same: NDArray[np.int64]) -> None:
        self._same = same
        self._first = np.unique(same)  # a group has the number of its first client

    def agreements(self, cosines: Sample) -> Sample:
        """Each client's cosine with the mean direction of the other distinct updates; 0 where there are none."""
        among = cosines[:, self._first]
        own = np.searchsorted(self._first, self._same)
        rest = among.sum(axis=1) - among[np.arange(len(own)), own]
        products = among[self._first]
        squares = (products.sum() - 2 * products.sum(axis=1) + products.diagonal())[own]
        found: Sample = np.divide(rest, np.sqrt(np.maximum(squares, 0)), out=np.zeros(len(own)), where=squares > 1e-12)
        return found

    def median_of_others(self, values: Sample, place: int) -> float:
        """The median over the other distinct updates; NaN where there are none."""
        others = values[self._first[self._first != self._same[place]]]
        others = others[~np.isnan(others)]
        return float(np.median(others)) if others.size else float("nan")


def _first_with_same_update(cosines: Sample) -> NDArray[np.int64]:
    """The number of the first client that sent the same update, for each."""
    first: NDArray[np.int64] = np.argmax((cosines > EQUAL) | np.eye(len(cosines), dtype=bool), axis=1)
    return first


def _products(updates: list[Sample]) -> Sample:
    stacked = np.stack(updates)
    products: Sample = stacked @ stacked.T
    return products


def _cosines(products: Sample) -> Sample:
    lengths = np.sqrt(products.diagonal())
    scale = np.outer(lengths, lengths)
    cosines: Sample = np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)
    return cosines


def _uploads(fl_round: Round, schema: ModelSchema, salt: bytes) -> dict[Client, Sample]:
    """The readable uploads; the assessor reports the others."""
    found = {}
    keys = list(fl_round.local)
    if len(keys) > MOST_CLIENTS:
        lots = {key: hashlib.sha256(salt + repr(key).encode("utf-8", "replace")).digest() for key in keys}
        chosen = set(sorted(keys, key=lots.__getitem__)[:MOST_CLIENTS])
        keys = [key for key in keys if key in chosen]
    for key in keys:
        client = as_client(key)
        if client not in fl_round.quarantined:
            with suppress(Exception):  # a lazy mapping may fail in any way
                found[client] = _sample(schema, schema.read(fl_round.local[key], before=fl_round.start))
    return found


def series(rows: list[ClientRound], name: str) -> list[float]:
    """The defined values of one number over the rounds."""
    return [value for row in rows if not np.isnan(value := getattr(row, name))]


def _sample(schema: ModelSchema, model: Mapping[str, Array]) -> Sample:
    parts = [model[entry.name].reshape(-1)[:: _stride(entry)].astype(np.float64) for entry in schema.trainable]
    return np.clip(np.concatenate(parts), -LARGEST, LARGEST)


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


def _cosine(one: Sample, other: Sample) -> float:
    scale = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / scale if scale > 0 else 0.0


def _digest(sample: Sample) -> bytes:
    """The same for equal samples; both zeros are one."""
    return hashlib.sha256((sample + 0.0).tobytes()).digest()


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
    median = float(np.median(list(fl_round.weights.values())))
    return {c: float(np.log(w / median)) for c, w in fl_round.weights.items() if w > 0 and median > 0}
