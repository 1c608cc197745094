"""Splits a recorded run into shards that are scored separately and whose credits add up to those of the run.

A ballot needs a whole layer. The credits of round t need the rounds t … t+horizon, and as many earlier rounds if the
past counts. A shard is therefore some layers and a span of rounds, with the rounds around it that neighbouring spans
share. Layers are split first; a layer too large for one shard is split by rounds.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from fedcoast.rounds.schema import LayerSpec, ModelSchema


@dataclass(frozen=True)
class Shard:
    """Neighbouring entries of a model in a span of rounds."""

    entries: tuple[LayerSpec, ...]
    """The entries it reads; some only to check that they are finite."""
    chosen: tuple[str, ...]
    """The entries that give credit, at least one."""
    rounds: tuple[int, ...]
    """The rounds whose credits it computes."""
    future: tuple[int, ...]
    """The rounds of the horizon after them."""
    past: tuple[int, ...] = ()
    """The rounds before them that count."""

    @property
    def shown(self) -> tuple[int, ...]:
        """All that it has to see."""
        return (*self.past, *self.rounds, *self.future)

    @property
    def layers(self) -> tuple[str, ...]:
        return tuple(entry.name for entry in self.entries)


def plan(
    schema: ModelSchema,
    chosen: Collection[str],
    numbers: Sequence[int],
    horizon: int,
    pieces: int,
    whole_models: bool = False,
    past: int = 0,
) -> list[Shard]:
    """About `pieces` shards of like size, in the order of the layers, then of the rounds.

    A span is no shorter than the horizon that it shares with the next. `whole_models` cuts by rounds alone: for files
    of which one cannot read a part. `past` is how many rounds before count.
    """
    if not numbers:
        return []
    groups = [schema.entries] if whole_models else list(_groups(schema.entries, chosen, pieces))
    fair = sum(entry.size for entry in schema.entries) / pieces
    shards = []
    for entries in groups:
        count = ceil(sum(entry.size for entry in entries) / fair)
        count = max(1, min(count, len(numbers) // horizon))
        names = tuple(entry.name for entry in entries if entry.name in chosen)
        for first, last in _spans(len(numbers), count):
            future = tuple(numbers[last : last + horizon])
            before = tuple(numbers[max(0, first - past) : first])
            shards.append(Shard(tuple(entries), names, tuple(numbers[first:last]), future, before))
    return shards


def _groups(entries: Sequence[LayerSpec], chosen: Collection[str], pieces: int) -> Iterator[list[LayerSpec]]:
    """Neighbouring entries, cut before a chosen one where the share of a piece is full."""
    fair = sum(entry.size for entry in entries) / pieces
    group: list[LayerSpec] = []
    for entry in entries:
        full = sum(other.size for other in group) + entry.size > fair
        if full and entry.name in chosen and any(other.name in chosen for other in group):
            yield group
            group = []
        group.append(entry)
    yield group


def _spans(length: int, count: int) -> Iterator[tuple[int, int]]:
    """
    >>> list(_spans(7, 3))
    [(0, 2), (2, 4), (4, 7)]
    """
    for place in range(count):
        yield place * length // count, (place + 1) * length // count
