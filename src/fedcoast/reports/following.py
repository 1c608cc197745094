"""A run that may grow, stop or start again, and one assessor that observes its rounds."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedcoast.analysis.behaviour import Behaviour
from fedcoast.analysis.disagreement import Disagreement
from fedcoast.analysis.flags import flags_of
from fedcoast.analysis.health import Health
from fedcoast.errors import BadFile, Client, FedcoastError, SpoiltRound
from fedcoast.methods import Assessor, CoAst
from fedcoast.reports.assess_rounds import accuracy_in, build_report
from fedcoast.reports.report_data import ReportData, title_of
from fedcoast.rounds.round import Round
from fedcoast.rounds.unmoved import Shares, unmoved_in
from fedcoast.storage.checkpoints import warn_left_out
from fedcoast.storage.replay import replay
from fedcoast.storage.run_folder import ROUNDS, RUN_META, ground_truth, is_run, read_about

_MOST_DRAWN = 2e8  # numbers drawn for one report: about a second


class RunFollower:
    """Lets an assessor observe the rounds of a folder as they arrive.

    If the folder is replaced by a new run, a new assessor starts. `trouble` says why nothing more can be
    read, if so: the run has not begun, or a round is broken; what was seen before stays known, and reading is tried
    again.
    """

    def __init__(self, folder: str | Path, make: Callable[[], Assessor] | None = None, title: str = "") -> None:
        self.folder = Path(folder)
        self.title = title or title_of(self.folder)
        self._make = make or (lambda: CoAst(track_layers=True))
        self._start_over()

    def _start_over(self) -> None:
        self.assessor = self._make()
        self.about: dict[str, Any] = {}
        self.truth: dict[Client, float] | None = None
        self.trouble = ""
        self.behind = False
        self._shares: dict[int, Shares | None] = {}
        self._accuracy: dict[int, float] = {}
        self._disagreement, self._behaviour = Disagreement(), Behaviour()
        self._left_out: set[str] = set()
        self._run = self._last = _stamp(self.folder / RUN_META)

    def catch_up(self, patience: float = math.inf) -> bool:
        """Read what is new; true if that changed anything. After so many seconds the rest is left for next time."""
        until, before = time.monotonic() + patience, self._state()
        if self._replaced():
            self._start_over()
        try:
            self._read(until)
            self.trouble = ""
        except (FedcoastError, OSError) as error:
            self.behind, self.trouble = False, str(error)
        return self._state() != before

    def _state(self) -> tuple[object, ...]:
        """Everything that viewers see; an emptied folder is news too."""
        return self.assessor, self.assessor.last_round, self.trouble, self.behind

    def _read(self, until: float) -> None:
        self.behind = False
        if not self.about and is_run(self.folder):
            about = read_about(self.folder)
            self.about, self.truth = about, ground_truth(about)
        last: Round | None = None
        for fl_round in replay(self.folder, self.assessor.last_round, self._leave_out):
            if self._replaced():  # this may be a round of another run
                raise BadFile(f"{self.folder} was replaced by another run")
            self.assessor.observe(fl_round)
            self._disagreement.observe(fl_round)
            self._behaviour.observe(fl_round)
            self._last = _stamp(self._place(fl_round.number))
            self._shares[fl_round.number], last = fl_round.unmoved, fl_round
            if (value := accuracy_in(fl_round)) is not None:
                self._accuracy[fl_round.number] = value
            if time.monotonic() > until:
                self.behind = True
                break
        if last is not None:  # of an older recording, the last round's uploads alone are read once more
            self._shares[last.number] = unmoved_in(last)

    def _leave_out(self, error: SpoiltRound) -> None:
        """A last round that is spoilt is met at every look, and told once."""
        if str(error) not in self._left_out:
            self._left_out.add(str(error))
            warn_left_out(error)

    def _replaced(self) -> bool:
        """Whether what lies in the folder now is not what was read; a folder that is gone may only be moving."""
        now = _stamp(self.folder / RUN_META)
        if self._run is None or now is None:
            return self._run is None and now is not None
        last = self.assessor.last_round
        return now != self._run or (last is not None and _stamp(self._place(last)) != self._last)

    def _place(self, number: int) -> Path:
        return self.folder / ROUNDS / f"{number:010d}" / "round.json"

    def report(self) -> ReportData:
        """Everything known by now."""
        assessment = self.assessor.assessment()
        size = max(1, len(assessment.scores) * len(assessment.credits))
        return build_report(
            assessment,
            draws=int(min(2000, max(200, _MOST_DRAWN / size))),
            truth=self.truth,
            facts=self.about,
            title=self.title,
            health=Health(dict(self._shares)),
            accuracy=dict(self._accuracy),
            update_agreement=self._disagreement.summary(),
            flags=tuple(flags_of(self._behaviour)),
        )


def _stamp(file: Path) -> tuple[int, int, int] | None:
    """Tells one file from another that has its name; None where there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns
