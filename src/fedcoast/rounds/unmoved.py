"""The part of a model that no client moved in a round: entries where every upload equals the start model."""

from collections.abc import Mapping

import numpy as np

from fedcoast.rounds.arrays import Array
from fedcoast.rounds.round import Round
from fedcoast.rounds.round_view import RoundView
from fedcoast.rounds.schema import ModelSchema

Shares = Mapping[str, float]
"""By layer, in the model's order, the share of its entries that nobody moved."""


def layer_of(name: str) -> str:
    """The layer that an entry of a model belongs to: its name without the last part.

    >>> layer_of("block1.first.weight"), layer_of("scale")
    ('block1.first', 'scale')
    """
    return name.rpartition(".")[0] or name


class UnmovedEntries:
    """One boolean for each entry that votes, true while nobody has moved it; uploads are shown one at a time."""

    def __init__(self, schema: ModelSchema, start: Mapping[str, Array]) -> None:
        self._start = {entry.name: start[entry.name] for entry in schema.trainable}
        self._unmoved = {entry.name: np.ones(entry.shape, dtype=np.bool_) for entry in schema.trainable}
        self._uploads = 0

    def add(self, upload: Mapping[str, Array]) -> None:
        self._uploads += 1
        for name, unmoved in self._unmoved.items():
            if unmoved.any():
                np.logical_and(unmoved, upload[name] == self._start[name], out=unmoved)

    def shares(self) -> dict[str, float] | None:
        """The share of each layer; None without uploads."""
        if not self._uploads:
            return None
        counts: dict[str, tuple[int, int]] = {}
        for name, unmoved in self._unmoved.items():
            still, of = counts.get(layer_of(name), (0, 0))
            counts[layer_of(name)] = still + int(np.count_nonzero(unmoved)), of + unmoved.size
        return {layer: still / of for layer, (still, of) in counts.items()}


def unmoved_in(fl_round: Round) -> Shares | None:
    """The shares in the round, or computed from whole uploads, which reads them once; unknown for ballots.

    >>> zero = {"fc.weight": np.zeros(4), "fc.bias": np.zeros(1)}
    >>> moved = {"fc.weight": np.array([1.0, 0, 0, 0]), "fc.bias": np.ones(1)}
    >>> unmoved_in(Round(1, start=zero, local={"a": moved, "b": zero}, end=zero))
    {'fc': 0.6}
    """
    if fl_round.unmoved is not None or fl_round.ballot_keep is not None:
        return fl_round.unmoved
    schema = fl_round.schema()
    entries = UnmovedEntries(schema, fl_round.read_start(schema))
    for _, upload in RoundView(fl_round, schema, "quarantine").uploads():
        entries.add(upload)
        del upload  # before the next one is loaded
    return entries.shares()
