"""Rounds whose credit is not final: the clients' signals in two bits an entry, and the round's part of the reference.

They are held in memory; what exceeds `memory_limit` goes to files in `spill_dir`.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedcoast.errors import BadFile, BadSetting, Client
from fedcoast.kernels.bit_planes import PlaneLayout, Planes, Row
from fedcoast.kernels.movement import extent
from fedcoast.kernels.vote_counts import VoteCounts
from fedcoast.rounds.arrays import Array, copied
from fedcoast.rounds.clients import client_from_json, client_to_json
from fedcoast.storage.limits import bytes_in
from fedcoast.storage.spill import SpillDir, SpillFile

FORM = "planes"


@dataclass(frozen=True, eq=False)
class PendingRound:
    """A round that waits for its future.

    signals         what each client's upload says of every entry
    idle            what an idle client's would say, where it is subtracted
    reference       Θ^t by layer, or the round's vote counts; empty where ballots are compared with ballots
    spill_file      where all of these lie, if not in memory
    past_agreement  the agreement of each signal with the rounds before, by layer, where there are enough of them
    answered        how many clients answered, usably or not
    """

    number: int
    plane_layout: PlaneLayout
    signals: dict[Client, Planes]
    idle: Planes | None
    reference: list[Array]
    spill_file: SpillFile | None = None
    past_agreement: dict[Client, Row] | None = None
    answered: int = 0

    @property
    def votes(self) -> VoteCounts:
        (votes,) = self.reference
        return votes

    @cached_property
    def extent(self) -> list[float]:
        """The largest |Θ^t| of each layer."""
        return extent(self.reference)

    def replace(self, **changes: Any) -> "PendingRound":
        """A copy with other fields. The numbers in `reference` must stay the same, because their extent is copied
        too."""
        other = dataclasses.replace(self, **changes)
        if "extent" in vars(self):
            vars(other)["extent"] = self.extent
        return other

    def reference_alone(self) -> "PendingRound":
        """What later rounds still need from a valued round as their past. A spill file is not split."""
        if self.spill_file is not None:
            return self.replace(past_agreement=None)
        return self.replace(signals={}, idle=None, past_agreement=None)

    @property
    def in_memory(self) -> int:
        """Bytes."""
        if self.spill_file is not None:
            return 0
        idle = [] if self.idle is None else [self.idle]
        return sum(array.nbytes for array in (*self.signals.values(), *idle, *self.reference))


class PendingWriter:
    """Collects the signals of one round, in memory or in a file. Within `with`, an error removes the file."""

    def __init__(self, number: int, plane_layout: PlaneLayout, spill_file: SpillFile | None) -> None:
        self.number, self.plane_layout = number, plane_layout
        self._spill_file = spill_file
        self._clients: list[Client] = []
        self._signals: list[Planes] = []

    def __enter__(self) -> "PendingWriter":
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is not None and self._spill_file is not None:
            self._spill_file.drop()

    def add(self, client: Client, signal: Planes) -> None:
        self._clients.append(client)
        if self._spill_file is None:
            self._signals.append(signal)
        else:
            self._spill_file.write(signal)

    def finish(self, idle: Planes | None, reference: Sequence[Array]) -> PendingRound:
        """The round. In memory it holds the caller's `reference`, which is not copied here."""
        if self._spill_file is not None:
            for array in ([] if idle is None else [idle]) + list(reference):
                self._spill_file.write(array)
            self._spill_file.finish()
            return _mapped(self.number, self.plane_layout, self._clients, idle is not None, self._spill_file)
        signals = dict(zip(self._clients, self._signals, strict=True))
        return PendingRound(self.number, self.plane_layout, signals, idle, list(reference))


class PendingStore:
    """Decides where pending rounds are held, and how they survive the process."""

    def __init__(self, memory_limit: str | int | None, spill_dir: str | Path | None) -> None:
        if memory_limit is not None and spill_dir is None:
            bytes_in(memory_limit)
            raise BadSetting(
                f"memory_limit={memory_limit!r} needs a folder for what exceeds it; name one with spill_dir="
            )
        self._budget = 0 if memory_limit is None else bytes_in(memory_limit)
        self._spill_dir = None if spill_dir is None else SpillDir(spill_dir)

    def writer(
        self,
        number: int,
        plane_layout: PlaneLayout,
        clients: int,
        reference: Sequence[Array],
        in_store: Sequence[PendingRound],
    ) -> PendingWriter:
        """A writer for a round of this many clients, while the rounds `in_store` are stored."""
        planes = clients + 1  # one for the idle client
        wanted = planes * 2 * 8 * plane_layout.words + sum(array.nbytes for array in reference)
        fits = self._spill_dir is None or sum(one.in_memory for one in in_store) + wanted <= self._budget
        spill_file = None if fits or self._spill_dir is None else self._spill_dir.begin(number)
        return PendingWriter(number, plane_layout, spill_file)

    def keep_model(self, first: PendingRound, start: Sequence[Array]) -> PendingRound:
        """The model before the first round, as if a round without clients had ended there."""
        with self.writer(first.number, first.plane_layout, 0, start, [first]) as writer:
            before = writer.finish(None, start)
        return before if before.spill_file is not None else before.replace(reference=copied(start))

    def drop(self, pending: PendingRound) -> None:
        if pending.spill_file is not None:
            pending.spill_file.drop()

    def state(self, rounds: Sequence[PendingRound]) -> tuple[dict[str, Any], dict[str, Array]]:
        """Facts and arrays for a state; what lies in files stays there, and is put on disk."""
        arrays: dict[str, Array] = {}
        pending = []
        for place, one in enumerate(rounds):
            facts: dict[str, Any] = {
                "number": one.number,
                "sizes": list(one.plane_layout.sizes),
                "clients": [client_to_json(client) for client in one.signals],
                "idle": one.idle is not None,
                "trace": len(one.reference),
                "followed": one.past_agreement is not None,
                "sheaf": None,
                **({"answered": one.answered} if one.answered else {}),
            }
            pending.append(facts)
            if one.past_agreement is not None:
                rows = [one.past_agreement[client] for client in one.signals]
                arrays[f"{place}.followed"] = np.array(rows, np.int64).reshape(-1, len(one.plane_layout.sizes))
            if one.spill_file is not None:
                one.spill_file.sync()
                facts["sheaf"] = one.spill_file.facts()
                continue
            for index, signal in enumerate(one.signals.values()):
                arrays[f"{place}.claim.{index}"] = signal
            if one.idle is not None:
                arrays[f"{place}.idle"] = one.idle
            for layer, array in enumerate(one.reference):
                arrays[f"{place}.trace.{layer}"] = array
        return {"form": FORM, "pending": pending}, arrays

    def saved(self, rounds: Sequence[PendingRound]) -> None:
        """The state of these rounds is on disk."""
        if self._spill_dir is not None:
            self._spill_dir.saved([one.spill_file.name for one in rounds if one.spill_file is not None])

    def restored(self, facts: dict[str, Any], arrays: dict[str, Array]) -> list[PendingRound]:
        """The rounds of a state, their files checked. Call `resume_with` once the whole state has been read."""
        if "pending" in facts and facts.get("form") != FORM:
            raise BadFile(
                "this state of CoAst is of an earlier fedcoast, which held a byte for every entry; show the rounds"
                " again (fedcoast.replay reads a recording)"
            )
        pending = facts["pending"]
        spilled = [one["sheaf"] for one in pending if one["sheaf"] is not None]
        if spilled and self._spill_dir is None:
            raise BadSetting("this state left rounds in the folder that spill_dir= named; name the same one")
        spill_files = [] if self._spill_dir is None else self._spill_dir.adopt(spilled)
        rest, rounds = iter(spill_files), list[PendingRound]()
        for place, one in enumerate(pending):
            plane_layout = PlaneLayout(tuple(int(size) for size in one["sizes"]))
            clients = [client_from_json(client) for client in one["clients"]]
            if one["sheaf"] is not None:
                pending_round = _mapped(one["number"], plane_layout, clients, one["idle"], next(rest))
            else:
                signals = {client: arrays[f"{place}.claim.{index}"] for index, client in enumerate(clients)}
                idle = arrays[f"{place}.idle"] if one["idle"] else None
                reference = [arrays[f"{place}.trace.{layer}"] for layer in range(one["trace"])]
                pending_round = PendingRound(one["number"], plane_layout, signals, idle, reference)
            if one["followed"]:
                pending_round = pending_round.replace(
                    past_agreement=dict(zip(clients, arrays[f"{place}.followed"], strict=True))
                )
            pending_round = pending_round.replace(answered=int(one.get("answered", 0)))  # absent in earlier states
            _check(pending_round)
            rounds.append(pending_round)
        return rounds

    def resume_with(self, rounds: Sequence[PendingRound]) -> None:
        """Continue with these restored rounds alone."""
        if self._spill_dir is not None:
            self._spill_dir.resume_with([one.spill_file for one in rounds if one.spill_file is not None])


def _mapped(
    number: int, plane_layout: PlaneLayout, clients: Sequence[Client], idle: bool, spill_file: SpillFile
) -> PendingRound:
    arrays = spill_file.arrays()
    signals, rest = arrays[: len(clients)], arrays[len(clients) :]
    return PendingRound(
        number,
        plane_layout,
        dict(zip(clients, signals, strict=True)),
        rest[0] if idle else None,
        rest[1:] if idle else rest,
        spill_file,
    )


def _check(pending: PendingRound) -> None:
    planes = [*pending.signals.values(), *([] if pending.idle is None else [pending.idle])]
    for one in planes:
        if one.dtype != np.uint64 or one.shape != (2, pending.plane_layout.words):
            raise BadFile(
                f"round {pending.number} of the state holds planes of {one.dtype} {one.shape}; it was altered"
            )
    for row in (pending.past_agreement or {}).values():
        if row.dtype != np.int64 or row.shape != (len(pending.plane_layout.sizes),):
            raise BadFile(
                f"round {pending.number} of the state holds agreements of {row.dtype} {row.shape}; it was altered"
            )
    models = tuple(array.size for array in pending.reference) == pending.plane_layout.sizes
    votes = (
        len(pending.reference) == 1
        and pending.votes.ndim == 3
        and pending.votes.shape[::2] == (2, pending.plane_layout.words)
    )
    if pending.reference and not models and not votes:
        raise BadFile(f"round {pending.number} of the state holds neither a model nor votes; it was altered")
