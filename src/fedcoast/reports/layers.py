"""Which layers of the model a client's credit came from: CoAst once more, its sum over layers left open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedcoast.errors import Client
from fedcoast.kernels.bit_planes import Row, sizes
from fedcoast.methods.base import Uploads
from fedcoast.methods.coast.coast import CoAst
from fedcoast.methods.coast.config import CoAstConfig
from fedcoast.methods.coast.pending import PendingRound
from fedcoast.methods.layer_selection import choose
from fedcoast.methods.ledger import Credits
from fedcoast.rounds.round import Round
from fedcoast.rounds.schema import ModelSchema


@dataclass(frozen=True)
class LayerCredits:
    """For each client and layer the net agreement, which adds up to the client's score, and the votes behind it.

    Their quotient can be compared between layers of any size; it lies between −1 and 1 where no past is taken off.
    """

    names: tuple[str, ...] = ()
    agreement: Mapping[Client, Row] = field(default_factory=dict)
    votes: Mapping[Client, Row] = field(default_factory=dict)


class LayeredCoAst(CoAst):
    """CoAst with the same credits to the last bit, which also remembers the layers they came from.

    That memory is no part of the state: an assessor that was restored knows the layers of what it was shown since.
    """

    def __init__(self, config: CoAstConfig | None = None, **options: Any) -> None:
        super().__init__(config, **options)
        self._parts: dict[int, dict[Client, Row]] = {}
        self._settled: dict[Client, Row] = {}

    def by_layer(self) -> LayerCredits:
        """The layers of exactly those rounds that the scores count."""
        if self._schema is None:
            return LayerCredits()
        names = tuple(entry.name for entry in choose(self.config.layers, self._schema))
        number = np.float64 if self.config.past_weight else np.int64
        sums = {client: np.zeros((2, len(names)), number) for client in self._ledger.clients}
        counted = self._counted(self._credits())
        for parts in (self._settled, *(self._parts.get(number, {}) for number in counted)):
            for client, part in parts.items():
                sums[client] += part
        return LayerCredits(
            names,
            {client: row[0] for client, row in sums.items()},
            {client: row[1] for client, row in sums.items()},
        )

    def _take(self, round: Round, schema: ModelSchema, uploads: Uploads) -> Credits:
        final = super()._take(round, schema, uploads)
        if self.config.score_rounds == slice(
            None
        ):  # every final round counts for ever, so its sum is all that has to be kept
            for number in final:
                for client, part in self._parts.pop(number).items():
                    self._settled[client] = self._settled.get(client, 0) + part
        return final

    def _agreements(self, held: Sequence[PendingRound]) -> dict[Client, Row]:
        rows = super()._agreements(held)
        first = held[0]
        nothing = np.zeros(len(first.plane_layout.sizes), np.int64)
        followed = first.followed or dict.fromkeys(rows, nothing)
        self._parts[first.number] = {
            client: np.stack(
                [
                    row - self.config.past_weight * followed[client],
                    sizes(first.claims[client], first.plane_layout, first.idle),
                ]
            )
            for client, row in rows.items()
        }
        return rows
