"""Whether the saved state of an assessor is the one that follows from a recording."""

import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedcoast.methods.base import Assessor
from fedcoast.storage.old_settings import translated
from fedcoast.storage.tensors import read_tensors


def compared_states(file: Path, assessor: Assessor) -> Iterator[str]:
    """The differences between a saved state and the assessor that observed the rounds, in values or in bytes.

    Rounds in `spill_dir` are compared by the checksums that the state names: spilling changes no bit.
    """
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder) / "state"
        assessor.save(again)
        if again.read_bytes() == file.read_bytes():
            return
        (theirs, recorded), (ours, now) = read_tensors(file), read_tensors(again)
    try:
        spilled = any(one["sheaf"] is not None for one in recorded["facts"]["pending"])
        if spilled:
            recorded, now = _with_checksums(recorded, theirs), _with_checksums(now, ours)
    except (KeyError, TypeError, AttributeError):  # not as CoAst, the only one that spills, writes it
        spilled = False
    earlier = recorded.get("settings") != (recorded := _with_current_option_names(recorded)).get("settings")
    if recorded != now:
        yield from _differing("", recorded, now)
    elif theirs.keys() != ours.keys() or any(_bytes(theirs[name]) != _bytes(ours[name]) for name in ours):
        yield "holds other arrays than follow from the recording"
    elif not spilled and not earlier:
        yield "holds what follows from the recording, in other bytes than this fedcoast writes"


def _with_checksums(state: Any, arrays: dict[str, Any]) -> Any:
    """A state of CoAst with a checksum in place of every array of a pending round; the arrays are removed from
    `arrays`.

    Of the round before the pending ones, only the reference counts, although a spill file holds its signals too.
    """
    facts, pending = state["facts"], []
    for place, one in enumerate(facts["pending"]):
        if one["sheaf"] is None:
            arrays_of = [_checksummed(arrays.pop(f"{place}.claim.{index}")) for index in range(len(one["clients"]))]
            arrays_of += [_checksummed(arrays.pop(f"{place}.idle"))] if one["idle"] else []
            arrays_of += [_checksummed(arrays.pop(f"{place}.trace.{layer}")) for layer in range(one["trace"])]
        else:
            arrays_of = [[part["type"], part["shape"], part["crc"]] for part in one["sheaf"]["parts"]]
        if place == 0 and facts["before"]:
            one, arrays_of = {**one, "clients": [], "idle": False}, arrays_of[len(arrays_of) - one["trace"] :]
        pending.append({**one, "sheaf": None, "held": arrays_of})
    return {**state, "facts": {**facts, "pending": pending}}


def _with_current_option_names(state: Any) -> Any:
    return {**state, "settings": translated(state["method"], state["settings"])}


def _checksummed(array: Any) -> list[Any]:
    return [array.dtype.str, list(array.shape), zlib.crc32(array.tobytes())]


def _bytes(array: Any) -> bytes:
    return bytes(getattr(array, "widened", array).tobytes())


def _differing(where: str, recorded: Any, now: Any) -> Iterator[str]:
    """The paths at which two JSON documents differ."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        for key in dict.fromkeys((*now, *recorded)):
            yield from _differing(f"{where}{'.' if where else ''}{key}", recorded.get(key), now.get(key))
    elif isinstance(recorded, list) and isinstance(now, list) and len(recorded) == len(now):
        for place, (old, new) in enumerate(zip(recorded, now, strict=True)):
            yield from _differing(f"{where}[{place}]", old, new)
    elif recorded != now:
        yield f"says {where} {recorded!r}; {now!r} follows from the recording"
