"""What an attacker knows when it forges its upload, and the arithmetic that attacks share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fedcoast.rounds.arrays import Array

Arrays = dict[str, Array]
Update = dict[str, Array]


@dataclass(frozen=True)
class AttackView:
    """One round as an attacker sees it.

    uploads   what every client of the round would upload honestly, the attacker included
    earlier   the global models before this round's, oldest first
    previous  what clients uploaded in the round before
    trained   the names of the entries that clients train; an attack leaves all others as they are
    random    fresh for each attacker and round; `constant_random` is the same in every round and for every attacker
    """

    client: int
    number: int
    rounds: int
    start: Arrays
    uploads: Mapping[int, Arrays]
    earlier: Sequence[Arrays]
    previous: Mapping[int, Arrays]
    trained: frozenset[str]
    random: np.random.Generator
    constant_random: Callable[[], np.random.Generator]

    @property
    def honest(self) -> Arrays:
        return self.uploads[self.client]

    @property
    def honest_update(self) -> Update:
        return {name: self.honest[name] - self.start[name] for name in self.names}

    @property
    def names(self) -> list[str]:
        return [name for name in self.start if name in self.trained]

    def last_steps(self, count: int) -> list[Update]:
        """The last steps of the global model, latest first; fewer at the beginning."""
        models = [*self.earlier, self.start][-count - 1 :]
        steps = [{name: after[name] - before[name] for name in self.names} for before, after in pairwise(models)]
        return steps[::-1]

    def moved(self, update: Update) -> Arrays:
        """The upload that moves the start by this update; entries that are not trained stay at the start."""
        return {
            name: np.asarray(array + update[name], dtype=array.dtype) if name in update else array
            for name, array in self.start.items()
        }


def scaled(update: Update, factor: float) -> Update:
    return {name: array * array.dtype.type(factor) for name, array in update.items()}


def combined(updates: Sequence[Update], factors: Sequence[float]) -> Update:
    """Σ factor · update."""
    parts = [scaled(update, factor) for update, factor in zip(updates, factors, strict=True)]
    return {name: np.sum([part[name] for part in parts], axis=0, dtype=parts[0][name].dtype) for name in parts[0]}


def length(update: Update) -> float:
    return float(np.sqrt(sum(float(np.square(array, dtype=np.float64).sum()) for array in update.values())))


def random_update(like: Mapping[str, Array], names: Sequence[str], random: np.random.Generator) -> Update:
    """Standard normal numbers in the shape of these entries."""
    return {name: random.standard_normal(like[name].shape).astype(like[name].dtype) for name in names}
