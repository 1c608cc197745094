"""How well the signals of a round agree with the reference, and the credits and layer totals made of it.

Agreement is a whole number that adds up over entries, layers and parts of a model. It is rounded once, in the credit:
parts of a model can be valued apart and merged to the same credit.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedcoast.errors import Client
from fedcoast.kernels.bit_planes import Planes, Row, agreements, sizes
from fedcoast.kernels.movement import movement_planes
from fedcoast.kernels.threads import ThreadPool
from fedcoast.kernels.vote_counts import majority_sign
from fedcoast.methods.coast.config import CoAstConfig
from fedcoast.methods.coast.pending import PendingRound
from fedcoast.methods.layer_credits import LayerCredits


@dataclass(frozen=True)
class RoundAgreement:
    """The agreement of each client's signal of one round, layer by layer, above that of an idle client.

    ahead   with the reference of the rounds after it
    past    with the reference of the rounds before it; empty where there are too few of them
    votes   how many entries of each layer the signal says something about; empty unless layers are tracked
    """

    number: int
    ahead: Mapping[Client, NDArray[Any]]
    past: Mapping[Client, NDArray[Any]]
    votes: Mapping[Client, Row]

    def totals(self) -> dict[Client, tuple[int, int]]:
        """Over all layers: ahead and past of each client."""
        past = {client: int(row.sum()) for client, row in self.past.items()}
        return {client: (int(row.sum()), past.get(client, 0)) for client, row in self.ahead.items()}

    def credits(self, past_weight: float) -> dict[Client, float]:
        return {client: discounted_credit(*total, past_weight) for client, total in self.totals().items()}


def discounted_credit(ahead: int, past: int, past_weight: float) -> float:
    """The agreement with the rounds after, less a share of that with the rounds before.

    >>> discounted_credit(10, 4, 0.5), discounted_credit(10, 4, 0)
    (8.0, 10)
    """
    return float(ahead - Fraction(past_weight) * past) if past_weight else ahead


def agreement_by_client(pending: PendingRound, reference: Planes, threads: ThreadPool) -> dict[Client, Row]:
    """The agreement of a round's signals with a reference, above that of an idle client, layer by layer."""
    layout = pending.plane_layout
    idle = 0 if pending.idle is None else agreements(pending.idle, reference, layout)
    rows = threads.map(lambda signal: agreements(signal, reference, layout) - idle, pending.signals.values())
    return dict(zip(pending.signals, rows, strict=True))


def reference_planes(window: Sequence[PendingRound], config: CoAstConfig, threads: ThreadPool) -> Planes:
    """Which way every entry went after the first of these rounds: by the global models, or by the votes."""
    if config.reference == "votes":
        return majority_sign([one.votes for one in window[1:]])
    extents = [one.extent for one in window]
    return movement_planes(
        [one.reference for one in window], config.ulp_tolerance, window[0].plane_layout, threads, extents
    )


def past_agreement(
    newest: PendingRound, window: Sequence[PendingRound], config: CoAstConfig, threads: ThreadPool
) -> dict[Client, Row]:
    """How well each signal of a round agrees with where the rounds of the window before it went."""
    return agreement_by_client(newest, reference_planes(window, config, threads), threads)


def round_agreement(
    window: Sequence[PendingRound], config: CoAstConfig, threads: ThreadPool, with_votes: bool
) -> RoundAgreement:
    """The agreement of the first of these rounds with those after it."""
    first = window[0]
    ahead = agreement_by_client(first, reference_planes(window, config, threads), threads)
    return RoundAgreement(first.number, ahead, first.past_agreement or {}, votes_by_client(first) if with_votes else {})


def votes_by_client(pending: PendingRound) -> dict[Client, Row]:
    """How many entries of each layer each signal says something about."""
    return {c: sizes(signal, pending.plane_layout, pending.idle) for c, signal in pending.signals.items()}


@dataclass(frozen=True, eq=False)
class LayerTotals:
    """Sums of agreement and votes by client and layer, over the rounds that count; adding a round gives another.

    Where every final round counts for ever, only its sum is kept (`settled`). It is not part of the saved state: a
    restored assessor knows the layers of the rounds that it observed since.
    """

    past_weight: float
    every_round_counts: bool
    whole_numbers: bool
    by_round: Mapping[int, Mapping[Client, NDArray[Any]]] = field(default_factory=dict)
    settled: Mapping[Client, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def for_config(cls, config: CoAstConfig) -> "LayerTotals":
        whole = not config.past_weight and config.reference != "others"
        return cls(config.past_weight, config.score_rounds == slice(None), whole)

    def with_round(self, final: RoundAgreement) -> "LayerTotals":
        """Also count a round whose credit is final."""
        rows = self._rows(final)
        if not self.every_round_counts:
            return replace(self, by_round={**self.by_round, final.number: rows})
        sums = {client: self.settled.get(client, 0) + row for client, row in rows.items()}
        return replace(self, settled={**self.settled, **sums})

    def credits(
        self,
        names: tuple[str, ...],
        clients: Iterable[Client],
        counted: Iterable[int],
        provisional: Iterable[RoundAgreement],
    ) -> LayerCredits:
        """The totals over the counted rounds; `provisional` are rounds that are valued but not final."""
        number = np.int64 if self.whole_numbers else np.float64
        sums = {client: np.zeros((2, len(names)), number) for client in clients}
        by_round = {**self.by_round, **{agreement.number: self._rows(agreement) for agreement in provisional}}
        for rows in (self.settled, *(by_round.get(number, {}) for number in counted)):
            for client, row in rows.items():
                sums[client] += row
        return LayerCredits(names, {c: row[0] for c, row in sums.items()}, {c: row[1] for c, row in sums.items()})

    def _rows(self, agreement: RoundAgreement) -> dict[Client, NDArray[Any]]:
        nothing = np.int64(0)
        return {
            client: np.stack([row - self.past_weight * agreement.past.get(client, nothing), agreement.votes[client]])
            for client, row in agreement.ahead.items()
        }
