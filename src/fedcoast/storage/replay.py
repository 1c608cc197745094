"""Read rounds from a folder: a recorded run or plain checkpoints."""

from collections.abc import Iterator
from pathlib import Path

from fedcoast.errors import BadFile
from fedcoast.rounds.round import Round
from fedcoast.storage.checkpoints import OnLeftOut, checkpoint_numbers, checkpoints, is_checkpoints, warn_left_out
from fedcoast.storage.run_folder import is_run, recorded, recorded_numbers


def replay(folder: str | Path, after: int | None = None, on_left_out: OnLeftOut = warn_left_out) -> Iterator[Round]:
    """Read a folder's rounds in order; with `after`, only those with a higher number.

    Reads what `Recorder` wrote, also while it grows, and plain checkpoint folders (docs/run-folder.md). Uploads are
    loaded one client at a time, when an observer asks for them. A checkpoint whose global model holds NaN or infinity
    is left out; `on_left_out` is told which, and whose upload may have done it.
    """
    folder = Path(folder)
    if is_run(folder):
        return recorded(folder, after)
    if is_checkpoints(folder):
        return checkpoints(folder, after, on_left_out)
    raise _nothing_in(folder)


def round_numbers(folder: Path) -> list[int]:
    """The numbers of the rounds that `replay` would yield now; the rounds are not read."""
    if is_run(folder):
        return recorded_numbers(folder)
    if is_checkpoints(folder):
        return checkpoint_numbers(folder)
    raise _nothing_in(folder)


def _nothing_in(folder: Path) -> BadFile:
    if not folder.is_dir():
        return BadFile(f"{folder} is not a folder; name a recorded run or a folder of checkpoints")
    return BadFile(
        f"{folder} holds neither a recorded run (run.json) nor checkpoints (round-1/start.pt, round-1/end.pt,"
        " round-1/clients/NAME.pt, …); see docs/run-folder.md"
    )
