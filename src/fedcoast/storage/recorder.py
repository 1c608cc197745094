"""Record rounds to a folder, so that any assessor can observe them later.

docs/run-folder.md describes the folder. A round is written to a temporary folder and moved into place when
it is complete and on disk. After a kill at any moment the folder is readable and ends at the last complete round. So
does the chain of hashes, since the link of each round lies in its folder.
"""

import hashlib
import json
import logging
import math
import re
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from fedcoast.errors import BadFile, BadRound, BadSetting, FedcoastError
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.clients import client_to_json
from fedcoast.rounds.round import Policy, Round, check_policy
from fedcoast.rounds.round_view import RoundView
from fedcoast.rounds.schema import ModelSchema
from fedcoast.rounds.unmoved import UnmovedEntries
from fedcoast.storage.ballot_files import ballot_arrays
from fedcoast.storage.chain import LINK, Hasher, Link, content, head
from fedcoast.storage.credit_log import CREDITS, CreditLog, Credits, HasAssessment, begin
from fedcoast.storage.files import is_folder, read_json, remove_inside, sole_writer, sync, write_json, write_whole
from fedcoast.storage.run_folder import FORMAT, ROUND_META, ROUNDS, RUN_META, VERSION, is_run, read_about, recorded
from fedcoast.storage.tensors import write_tensors

_log = logging.getLogger(__name__)


class Recorder:
    """An observer that writes every round to a folder; in an existing run it continues after the last round.

    `ballot_keep` stores ballots of that share instead of whole uploads: enough for CoAst's signals "ballot" and
    "pruned" with that `keep`, in a sixteenth of the space.
    `about` is metadata of the run in JSON types (an experiment, a known truth), written when the folder is new.
    `ledger` is an assessor that observes the same rounds: its final credits are written with each round and become part
    of the chain (`head` is the hash of the last link; docs/audit.md). While it has no answer yet, rounds are written
    without new credits, which follow with a later round. A round that could not be written (a full disk, say) is noted
    as missed with the next round: an assessor that observed it may have credits that do not follow from the folder.

        with Recorder("runs/today") as recorder:
            recorder.observe(fl_round)
    """

    def __init__(
        self,
        folder: str | Path,
        about: Mapping[str, Any] | None = None,
        bad_uploads: Policy = "quarantine",
        ballot_keep: float | None = None,
        ledger: HasAssessment | None = None,
    ) -> None:
        number = isinstance(ballot_keep, int | float) and not isinstance(ballot_keep, bool)
        if ballot_keep is not None and not (number and 0 < ballot_keep <= 1):
            raise BadSetting(
                f"ballot_keep must lie in (0, 1], the share of each layer whose votes are kept; got {ballot_keep!r}"
            )
        check_policy(bad_uploads)
        self.folder = Path(folder)
        self._policy, self._ballot_keep, self._ledger = bad_uploads, ballot_keep, ledger
        self._closed = False
        self._schema: ModelSchema | None = None
        self._end: bytes | None = None
        self.last_round: int | None = None
        self.head = ""
        self._linked: int | None = None
        self._missed_rounds: dict[int, str] = {}
        self._credit_log: CreditLog | None = None
        facts = None if about is None else _as_json(about)
        _prepare(self.folder)
        with ExitStack() as stack:
            stack.enter_context(sole_writer(self.folder))
            self._continue_recording(facts)
            self._open = stack.pop_all()  # whatever fails before this lets go of the folder

    def _continue_recording(self, about: dict[str, Any] | None) -> None:
        remove_inside(self.folder / ROUNDS, re.compile(r"\.[0-9]{10,18}").fullmatch)  # what a kill left behind
        if not is_run(self.folder):
            write_json(
                self.folder / RUN_META, {"format": FORMAT, "version": VERSION, "chain": "sha256", "about": about or {}}
            )
        elif about is not None and read_about(self.folder) != about:
            raise BadFile(f"{self.folder} holds another run: what it says about itself differs; use a new folder")
        for fl_round in recorded(self.folder, last=True):
            self.last_round, self._schema = fl_round.number, fl_round.schema()
            self._end = _digest(fl_round.read_end(self._schema))
        if self._ledger is not None:
            self._credit_log = begin(self.folder, self._ledger)
        last = head(self.folder)
        if last is None and "chain" in read_json(self.folder / RUN_META):
            raise BadFile(f"the link of round {self.last_round} is gone from {self.folder}; fedcoast verify says more")
        # Where the last round is older than chains, the chain begins with the next.
        self._linked, self.head = last or (None, content(self.folder / RUN_META).sha256)

    def observe(self, fl_round: Round, /) -> None:
        """Write one round. When this returns the round is complete and on disk; when it raises, nothing was written."""
        if self._closed:
            raise BadFile(f"this recorder of {self.folder} was closed; open a new one")
        if self.last_round is not None and fl_round.number <= self.last_round:
            raise BadRound(
                f"round numbers must increase; got {fl_round.number} and {self.folder} ends at {self.last_round}"
            )
        schema = fl_round.schema()
        if self._schema is not None:
            if change := self._schema.differs(schema):
                raise BadRound(f"round {fl_round.number}: the model changed its layers: {change}; use a new folder")
            schema = self._schema
        place = self.folder / ROUNDS / f"{fl_round.number:010d}"
        part = place.with_name(f".{place.name}")
        try:
            part.mkdir()
            with Hasher(part) as hasher:
                credits = self._write_credits(fl_round.number, part, hasher)
                end, link = self._write(fl_round, schema, part, hasher)
            write_whole(part / LINK, lambda temporary: temporary.write_bytes(link.to_bytes()))
            sync(part)
            part.rename(place)
        except BaseException as error:
            shutil.rmtree(part, ignore_errors=True)
            self._missed_rounds[fl_round.number] = f"{type(error).__name__}: {error}"
            if isinstance(error, OSError):
                raise BadFile(f"{place} cannot be written ({error})") from error
            raise
        sync(self.folder / ROUNDS)
        self._missed_rounds.clear()
        self.last_round, self._schema, self._end = fl_round.number, schema, end
        self._linked, self.head = link.number, link.hash
        if self._credit_log is not None:
            self._credit_log.credits.update(credits)

    def _write(self, fl_round: Round, schema: ModelSchema, part: Path, hasher: Hasher) -> tuple[bytes, Link]:
        keep = self._ballot_keep if fl_round.ballot_keep is None else fl_round.ballot_keep
        dtypes = {entry.name: entry.dtype for entry in schema.entries}

        def write_file(file: str, tensors: dict[str, tuple[Array, str]]) -> None:
            write_tensors(part / file, tensors)
            hasher.add(file)

        def write(file: str, model: dict[str, Array]) -> None:
            # Integers may come in another width than the layout's; only bfloat16 differs from its array's type.
            names = {
                name: "bfloat16" if dtypes[name] == "bfloat16" else array.dtype.name for name, array in model.items()
            }
            write_file(file, {name: (array, names[name]) for name, array in model.items()})

        view = RoundView(fl_round, schema, self._policy)
        start, end = view.start, view.end
        carried_on = self._end is not None and _digest(start) == self._end
        if not carried_on:
            write("start.safetensors", start)
        write("end.safetensors", end)
        clients = list[dict[str, Any]]()
        unmoved = UnmovedEntries(schema, start) if fl_round.ballot_keep is None else None
        for client, model in view.uploads():
            file = f"client-{len(clients):06d}.safetensors"
            if unmoved is not None:
                unmoved.add(model)
            if keep is None:
                write(file, model)
            else:
                write_file(file, ballot_arrays(schema, start, model, keep))
            weight = None if fl_round.weights is None else float(fl_round.weights[client])
            clients.append({"client": client_to_json(client), "file": file, "weight": weight})
            del model  # before the next one is loaded
        facts = {
            "number": fl_round.number,
            "start": f"end of round {self.last_round}" if carried_on else "start.safetensors",
            "end": "end.safetensors",
            "pruned": keep,
            # Ballots do not tell; what was known when they were cast is handed on.
            "unmoved": fl_round.unmoved if unmoved is None else unmoved.shares(),
            # JSON has no word for the others
            "metrics": {name: value for name, value in fl_round.metrics.items() if math.isfinite(value)},
            "layers": schema.to_json(),
            "clients": clients,
            "quarantined": [
                {"client": client_to_json(client), "reason": reason} for client, reason in view.quarantined.items()
            ],
        }
        if missed_rounds := {number: why for number, why in self._missed_rounds.items() if number != fl_round.number}:
            facts["missed"] = [{"number": number, "reason": why} for number, why in missed_rounds.items()]
        write_json(part / ROUND_META, facts)
        hasher.add(ROUND_META)
        return _digest(end), hasher.link(fl_round.number, self._linked, self.head, facts)

    def _write_credits(self, number: int, part: Path, hasher: Hasher) -> Credits:
        if self._credit_log is None or self._ledger is None:
            return {}
        try:
            new = self._credit_log.new(self._ledger.assessment())
        except FedcoastError as error:  # it may have no answer yet, and the round is worth more than its credits
            _log.warning("round %d is recorded without new credits: %s", number, error)
            new = {}
        write_json(part / CREDITS, self._credit_log.to_json(new))
        hasher.add(CREDITS)
        return new

    def close(self) -> None:
        """Let another process record here."""
        self._closed = True
        self._open.close()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        unknown_clients = [
            path.name for path in folder.iterdir() if path.name not in (RUN_META, ROUNDS, ".lock", f".{RUN_META}.part")
        ]
        if unknown_clients and not is_run(folder):
            raise BadFile(
                f"{folder} holds other files ({sorted(unknown_clients)[0]}, …); a recording needs a folder of its own"
            )
        (folder / ROUNDS).mkdir(exist_ok=True)
        if not is_folder(folder / ROUNDS):
            raise BadFile(f"{folder / ROUNDS} is a symbolic link, and nothing is written through one; remove it")
    except OSError as error:
        raise BadFile(f"{folder} cannot be a folder to record to ({error.strerror})") from error


def _as_json(about: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return dict(json.loads(json.dumps(dict(about), allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadSetting(f"about must be facts in JSON's types, by name; got {about!r} ({error})") from error


def _digest(model: dict[str, Array]) -> bytes:
    digest = hashlib.sha256()  # processors have instructions for it
    for name, array in model.items():
        digest.update(f"{name} {array.dtype}".encode("utf-8", "surrogatepass"))
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()
