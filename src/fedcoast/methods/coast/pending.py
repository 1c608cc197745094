"""What a round leaves behind until its future is known: claims in two bits an entry, and the trace of the model.

In memory, or in a file of the folder that the user named, as the budget for memory says.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedcoast.errors import BadFile, BadSetting, Client
from fedcoast.kernels.bit_planes import PlaneLayout, Planes, Row
from fedcoast.kernels.movement import extent
from fedcoast.kernels.vote_counts import Tally
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.clients import client_from_json, client_to_json
from fedcoast.storage.limits import bytes_in
from fedcoast.storage.spill import SpillDir, SpillFile

FORM = "planes"


@dataclass(frozen=True, eq=False)
class PendingRound:
    """One round. `idle` are the signs of the start where they count, `trace` is Θ^t by layer, or the round's votes.

    `followed` is the agreement of each claim with the rounds before, by layer, where there is one.
    """

    number: int
    plane_layout: PlaneLayout
    claims: dict[Client, Planes]
    idle: Planes | None
    trace: list[Array]
    sheaf: SpillFile | None = None
    followed: dict[Client, Row] | None = None

    @property
    def votes(self) -> Tally:
        (votes,) = self.trace
        return votes

    @cached_property
    def extent(self) -> list[float]:
        """The largest |Θ^t| of each layer."""
        return extent(self.trace)

    def but(self, **changes: Any) -> "PendingRound":
        """The same round, something about it changed: where its trace lies, but not the numbers in it."""
        other = replace(self, **changes)
        if "extent" in vars(self):
            vars(other)["extent"] = self.extent
        return other

    def trace_alone(self) -> "PendingRound":
        """What is left of a round that is valued, but whose trace is a past for others. A file stays one piece."""
        return self.but(followed=None) if self.sheaf is not None else self.but(claims={}, idle=None, followed=None)

    @property
    def in_memory(self) -> int:
        """Bytes."""
        if self.sheaf is not None:
            return 0
        idle = [] if self.idle is None else [self.idle]
        return sum(array.nbytes for array in (*self.claims.values(), *idle, *self.trace))


class PendingWriter:
    """A round being taken: its claims go where there is room for them."""

    def __init__(self, number: int, plane_layout: PlaneLayout, sheaf: SpillFile | None) -> None:
        self.number, self.plane_layout = number, plane_layout
        self._sheaf = sheaf
        self._clients: list[Client] = []
        self._claims: list[Planes] = []

    def add(self, client: Client, claim: Planes) -> None:
        self._clients.append(client)
        if self._sheaf is None:
            self._claims.append(claim)
        else:
            self._sheaf.write(claim)

    def finish(self, idle: Planes | None, trace: Sequence[Array]) -> PendingRound:
        """`trace` is the caller's where the round is held in memory; see `PendingStore.keep`."""
        if self._sheaf is not None:
            for array in ([] if idle is None else [idle]) + list(trace):
                self._sheaf.write(array)
            self._sheaf.finish()
            return _mapped(self.number, self.plane_layout, self._clients, idle is not None, self._sheaf)
        claims = dict(zip(self._clients, self._claims, strict=True))
        return PendingRound(self.number, self.plane_layout, claims, idle, list(trace))

    def abandon(self) -> None:
        if self._sheaf is not None:
            self._sheaf.drop()


class PendingStore:
    """Decides where rounds are held, and knows how they survive the process."""

    def __init__(self, memory: str | int | None, spill: str | Path | None) -> None:
        if memory is not None and spill is None:
            bytes_in(memory)
            raise BadSetting(f"memory_limit={memory!r} needs a folder for what exceeds it; name one with spill_dir=")
        self._budget = 0 if memory is None else bytes_in(memory)
        self._spill = None if spill is None else SpillDir(spill)

    def begin(
        self, number: int, plane_layout: PlaneLayout, clients: int, trace: Sequence[Array], held: Sequence[PendingRound]
    ) -> PendingWriter:
        """A round of so many clients, after those that are held."""
        planes = clients + 1  # one for the idle client
        wanted = planes * 2 * 8 * plane_layout.words + sum(array.nbytes for array in trace)
        room = self._spill is None or sum(one.in_memory for one in held) + wanted <= self._budget
        sheaf = None if room or self._spill is None else self._spill.begin(number)
        return PendingWriter(number, plane_layout, sheaf)

    def drop(self, held: PendingRound) -> None:
        if held.sheaf is not None:
            held.sheaf.drop()

    def state(self, held: Sequence[PendingRound]) -> tuple[dict[str, Any], dict[str, Array]]:
        """Facts and arrays for a state; what lies in files stays there, and is put on disk."""
        arrays: dict[str, Array] = {}
        pending = []
        for place, one in enumerate(held):
            facts = {
                "number": one.number,
                "sizes": list(one.plane_layout.sizes),
                "clients": [client_to_json(client) for client in one.claims],
                "idle": one.idle is not None,
                "trace": len(one.trace),
                "followed": one.followed is not None,
                "sheaf": None,
            }
            pending.append(facts)
            if one.followed is not None:
                rows = [one.followed[client] for client in one.claims]
                arrays[f"{place}.followed"] = np.array(rows, np.int64).reshape(-1, len(one.plane_layout.sizes))
            if one.sheaf is not None:
                one.sheaf.sync()
                facts["sheaf"] = one.sheaf.facts()
                continue
            for seat, claim in enumerate(one.claims.values()):
                arrays[f"{place}.claim.{seat}"] = claim
            if one.idle is not None:
                arrays[f"{place}.idle"] = one.idle
            for layer, array in enumerate(one.trace):
                arrays[f"{place}.trace.{layer}"] = array
        return {"form": FORM, "pending": pending}, arrays

    def saved(self, held: Sequence[PendingRound]) -> None:
        """The state of these rounds is on disk."""
        if self._spill is not None:
            self._spill.saved([one.sheaf.name for one in held if one.sheaf is not None])

    def restore(self, facts: dict[str, Any], arrays: dict[str, Array]) -> list[PendingRound]:
        """The rounds of a state. Files are checked first: nothing has changed when this raises."""
        if "pending" in facts and facts.get("form") != FORM:
            raise BadFile(
                "this state of CoAst is of an earlier fedcoast, which held a byte for every entry; show the rounds"
                " again (fedcoast.replay reads a recording)"
            )
        pending = facts["pending"]
        spilled = [one["sheaf"] for one in pending if one["sheaf"] is not None]
        if spilled and self._spill is None:
            raise BadSetting("this state left rounds in the folder that spill_dir= named; name the same one")
        sheaves = [] if self._spill is None else self._spill.adopt(spilled)
        rest, held = iter(sheaves), []
        for place, one in enumerate(pending):
            plane_layout = PlaneLayout(tuple(int(size) for size in one["sizes"]))
            clients = [client_from_json(client) for client in one["clients"]]
            if one["sheaf"] is not None:
                round = _mapped(one["number"], plane_layout, clients, one["idle"], next(rest))
            else:
                claims = {client: arrays[f"{place}.claim.{seat}"] for seat, client in enumerate(clients)}
                idle = arrays[f"{place}.idle"] if one["idle"] else None
                trace = [arrays[f"{place}.trace.{layer}"] for layer in range(one["trace"])]
                round = PendingRound(one["number"], plane_layout, claims, idle, trace)
            if one["followed"]:
                round = round.but(followed=dict(zip(clients, arrays[f"{place}.followed"], strict=True)))
            _check(round)
            held.append(round)
        if self._spill is not None:
            self._spill.go_on_with(sheaves)
        return held


def _mapped(
    number: int, plane_layout: PlaneLayout, clients: Sequence[Client], idle: bool, sheaf: SpillFile
) -> PendingRound:
    arrays = sheaf.arrays()
    claims, rest = arrays[: len(clients)], arrays[len(clients) :]
    return PendingRound(
        number,
        plane_layout,
        dict(zip(clients, claims, strict=True)),
        rest[0] if idle else None,
        rest[1:] if idle else rest,
        sheaf,
    )


def _check(held: PendingRound) -> None:
    planes = [*held.claims.values(), *([] if held.idle is None else [held.idle])]
    for one in planes:
        if one.dtype != np.uint64 or one.shape != (2, held.plane_layout.words):
            raise BadFile(f"round {held.number} of the state holds planes of {one.dtype} {one.shape}; it was altered")
    for row in (held.followed or {}).values():
        if row.dtype != np.int64 or row.shape != (len(held.plane_layout.sizes),):
            raise BadFile(
                f"round {held.number} of the state holds agreements of {row.dtype} {row.shape}; it was altered"
            )
    models = tuple(array.size for array in held.trace) == held.plane_layout.sizes
    votes = len(held.trace) == 1 and held.votes.ndim == 3 and held.votes.shape[::2] == (2, held.plane_layout.words)
    if not models and not votes:
        raise BadFile(f"round {held.number} of the state holds neither a model nor votes; it was altered")
