"""A recorded run at hand: its rounds, what it says about itself, and an answer in one line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedcoast.methods.assessment import Assessment
from fedcoast.methods.base import Assessor
from fedcoast.methods.coast.coast import CoAst
from fedcoast.rounds.round import Round
from fedcoast.storage.replay import replay, round_numbers
from fedcoast.storage.run_folder import is_run, read_about


class RecordedRun:
    """What `load` gives. Iterating reads the rounds from disk, each time again."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        replay(self.path)  # refuses a folder without rounds
        self.about: dict[str, Any] = read_about(self.path) if is_run(self.path) else {}

    def __iter__(self) -> Iterator[Round]:
        return replay(self.path)

    def __len__(self) -> int:
        return len(round_numbers(self.path))

    def __repr__(self) -> str:
        return f"RecordedRun({str(self.path)!r}, {len(self)} rounds)"

    def assess(self, assessor: Assessor | None = None) -> Assessment:
        """The answer of an assessor that has seen no round yet, `CoAst()` if none is given."""
        assessor = CoAst() if assessor is None else assessor
        for view in self:
            assessor.observe(view)
        return assessor.assessment()


def load(run: str | Path) -> RecordedRun:
    """Open a recorded run, or a folder of checkpoints.

    `fedcoast.load("runs/mine").assess()` is the ranking that `fedcoast assess runs/mine` prints.
    """
    return RecordedRun(run)
