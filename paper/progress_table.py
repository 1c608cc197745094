"""Progress of the jobs: a live table on a terminal, one line per finished job elsewhere."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.table import Table as Grid

from paper.jobs import Outcome

if TYPE_CHECKING:
    from rich.console import RenderableType

SHOWN = 8


class ProgressTable:
    """Counts jobs by kind and estimates the time left from the finished jobs of each kind."""

    def __init__(self, waiting: Sequence[str], workers: int) -> None:
        self._waiting: dict[str, int] = {}
        for kind in waiting:
            self._waiting[kind] = self._waiting.get(kind, 0) + 1
        self._wanted = dict(self._waiting)
        self._took: dict[str, list[float]] = {}
        self._last: list[str] = []
        self._workers, self._begun = workers, time.monotonic()

    def finished(self, kind: str, outcome: Outcome) -> str:
        """Count a finished job and describe it in one line."""
        self._waiting[kind] -= 1
        self._took.setdefault(kind, []).append(outcome.seconds)
        what = "; ".join(f"{name}: {reason}" for name, reason in outcome.errors.items()) or "done"
        line = f"{kind}, {outcome.job.experiment.name}, {outcome.seconds:.0f} s: {what}"
        self._last = [*self._last, line][-SHOWN:]
        return line

    def skipped(self, kinds: Sequence[str]) -> None:
        """Count jobs that will not be run."""
        for kind in kinds:
            self._waiting[kind] -= 1
            self._wanted[kind] -= 1

    @property
    def left(self) -> float | None:
        """Seconds left, or None while some kind of job has none finished."""
        todo = {kind: count for kind, count in self._waiting.items() if count}
        if not todo.keys() <= self._took.keys():
            return None
        total = sum(count * sum(self._took[kind]) / len(self._took[kind]) for kind, count in todo.items())
        return total / self._workers

    def __rich__(self) -> "RenderableType":
        grid = Grid(title="reproducing", caption="\n".join(self._last), caption_justify="left")
        for head in ("what", "done", "to do", "seconds each"):
            grid.add_column(head, justify="left" if head == "what" else "right")
        for kind, wanted in self._wanted.items():
            took = self._took.get(kind, [])
            each = f"{sum(took) / len(took):.0f}" if took else "?"
            grid.add_row(kind, str(wanted - self._waiting[kind]), str(self._waiting[kind]), each)
        left = "?" if self.left is None else _clock(self.left)
        grid.add_section()
        grid.add_row(f"{_clock(time.monotonic() - self._begun)} gone, about {left} left", "", "", "")
        return grid


@contextmanager
def shown(progress: ProgressTable, console: Console) -> Iterator[None]:
    """Show the table live on a terminal; show nothing elsewhere."""
    if not console.is_terminal:
        yield
        return
    with Live(progress, console=console, refresh_per_second=2, transient=True):
        yield


def _clock(seconds: float) -> str:
    """
    >>> _clock(3725)
    '1:02:05'
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
