"""The health of a model over the rounds of a run: whether clients stop moving a growing part of it.

Units that never fire again get no gradient, so no client moves their parameters. The scores then rest on the other
part of the model. Only the uploads are needed for this, no test data.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcoast.rounds.unmoved import Shares, unmoved_in
from fedcoast.storage.replay import replay

LIMIT = 0.10  # of a layer: more than this in the last round is worth a warning


@dataclass(frozen=True)
class Health:
    """`shares` has every round of a run in order, with the share of each layer that no client moved; None: unknown.

    Every value describes the last round, and is None or empty if that round is unknown.
    """

    shares: Mapping[int, Shares | None]

    @property
    def round(self) -> int | None:
        """The last round, if its shares are known."""
        last = next(reversed(tuple(self.shares)), None)
        return None if last is None or self.shares[last] is None else last

    @property
    def now(self) -> Shares:
        """The shares in the last round; none where they are unknown."""
        return {} if self.round is None else self.shares[self.round] or {}

    @property
    def healthy(self) -> bool | None:
        """Whether at least 90% of each layer was moved by some client in the last round; None: unknown."""
        return None if self.round is None else all(share <= LIMIT for share in self.now.values())

    @property
    def worst(self) -> str | None:
        """The layer with the largest unmoved share in the last round; among equals, the one nearest to the input."""
        return max(self.now, key=self.now.__getitem__) if self.now else None

    def since(self, layer: str) -> int | None:
        """The round since when more than the limit has stood still in every round; None if it does not now."""
        return next(reversed(self._streak(layer)), None)

    def never_moved(self, layer: str) -> bool | None:
        """Whether that part stood still from the first round on: it is frozen, or its inputs are always zero.

        A layer that began above the limit and has lost as much again is losing capacity nevertheless. None if an
        earlier round that would decide it is unknown.
        """
        streak = self._streak(layer)
        before = list(self.shares)[: -len(streak)] if streak else []
        if before and self.shares[before[-1]] is None:
            return None
        newest_first = list(streak.values())
        return bool(streak) and not before and newest_first[0] - newest_first[-1] <= LIMIT

    @property
    def concern(self) -> str | None:
        """The layer that a warning is about: the worst that loses capacity, else the worst that may, else the worst
        that never moved."""
        above = [layer for layer in self.now if self.now[layer] > LIMIT]
        order = (False, None, True)
        return min(above, key=lambda of: (order.index(self.never_moved(of)), -self.now[of]), default=None)

    def warning(self, named: Callable[[str], str] = str) -> str:
        """One sentence for people, empty where nothing is above the limit; `named` makes a layer's name safe to show.

        >>> Health({1: {"fc": 0.0}, 2: {"fc": 0.2}, 3: {"fc": 0.41}}).warning()[:58]
        '41% of fc was moved by no client in round 3, and more than'
        """
        layer = self.concern
        if layer is None:
            return ""
        text = f"{self.now[layer]:.0%} of {named(layer)} was moved by no client in round {self.round}"
        never = self.never_moved(layer)
        if never:
            return (
                f"{text}, and more than {LIMIT:.0%} of it in every round so far: this part never moved (a frozen layer,"
                " or inputs that are always zero), so no capacity is being lost; scores rest on the part that moves."
            )
        rounds = len(self._streak(layer))
        if rounds > 1:
            text += f", and more than {LIMIT:.0%} of it in each of the last {rounds} rounds"
        if never is None:
            return (
                f"{text}: the model is losing capacity, or this part never moved (earlier rounds do not tell); scores"
                " rest on the part that moves."
            )
        return f"{text}: the model is losing capacity, and scores rest on the part that still moves."

    def line(self, named: Callable[[str], str] = str) -> str:
        """The health in one line: the warning, or the largest unmoved share; empty if unknown.

        >>> Health({1: {"block1.second": 0.0123, "head": 0.0}}).line()
        'Health: at most 1.2% of a layer (block1.second) was moved by no client in the last round.'
        """
        if self.worst is None:
            return ""
        share = self.now[self.worst]
        if self.warning():
            return f"Health: {self.warning(named)}"
        if share == 0:
            return "Health: every part of the model was moved by some client in the last round."
        return f"Health: at most {share:.1%} of a layer ({named(self.worst)}) was moved by no client in the last round."

    def to_json(self) -> dict[str, Any] | None:
        """The last round, for programs; None if unknown."""
        layer = self.concern or self.worst
        if layer is None:
            return None
        return {
            "round": self.round,
            "layer": layer,
            "unmoved": self.now[layer],
            "since": self.since(layer),
            "never_moved": self.never_moved(layer),
            "warning": self.warning() or None,
        }

    def _streak(self, layer: str) -> dict[int, float]:
        """The rounds from the last one back in all of which the layer is known to be above the limit."""
        found: dict[int, float] = {}
        for number in reversed(tuple(self.shares)):
            share = (self.shares[number] or {}).get(layer, 0.0)
            if share <= LIMIT:
                break
            found[number] = share
        return found


def health_of(folder: str | Path, carried: Mapping[int, Shares | None]) -> Health:
    """The health of a run, from the shares in its rounds; missing ones are computed as far as a warning needs.

    That is the last round, and those before it as long as a layer stays above the limit: of a healthy run recorded
    before shares were stored, the uploads of one round are read. `carried` has every round of the run, in order.
    """
    shares = dict(carried)
    above: set[str] | None = None
    for number in reversed(tuple(carried)):
        found = shares[number]
        if found is None:
            fl_round = next(replay(folder, after=number - 1), None)
            found = None if fl_round is None or fl_round.number != number else unmoved_in(fl_round)
            shares[number] = found
        high = {layer for layer, share in (found or {}).items() if share > LIMIT}
        above = high if above is None else above & high
        if not above:
            break
    return Health(shares)
