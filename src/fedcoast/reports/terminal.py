"""The live ranking in a terminal."""

import time
from collections.abc import Callable, Sequence

import numpy as np
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fedcoast.methods.text import printable
from fedcoast.reports import health
from fedcoast.reports.following import RunFollower
from fedcoast.reports.overview import ends, windows
from fedcoast.reports.phrasing import VERDICTS, Passage, isolated, number, percent, verdict_sentences
from fedcoast.reports.report_data import ClientSummary, ReportData

_STYLES = {"helps": "blue", "hurts": "dark_orange3", "idle": "magenta", "cannot tell": "dim", None: ""}
_BARS = "▁▂▃▄▅▆▇█"
_SCALE, _HISTORY, _POLL = 25, 16, 0.3


def watch(follower: RunFollower, console: Console, until: Callable[[], bool] = lambda: False) -> None:
    """Show a run in place while it grows, until interrupted; in a pipe, print it again whenever it changed."""
    live = Live(console=console, auto_refresh=False, transient=False) if console.is_terminal else None
    if live is not None:
        live.start()
    try:
        first = True
        while True:
            if follower.catch_up(patience=1.0) or first:
                shown, first = screen(follower, console.width, console.height), False
                if live is None:
                    console.print(shown)
                else:
                    live.update(shown, refresh=True)
            if until() and not follower.behind:
                return
            if not follower.behind:
                time.sleep(_POLL)
    finally:
        if live is not None:
            live.stop()


def screen(follower: RunFollower, width: int = 110, height: int = 40) -> RenderableType:
    """The state of the run, fitted to the terminal's columns and, if possible, lines."""
    report, last = follower.report(), follower.assessor.last_round
    position = "waiting for the first round" if last is None else f"round {last}"
    head = Text.assemble((report.title, "bold"), f"  {position}", (" …" if follower.behind else ""))
    warnings = [text for text in (*report.blind_spots, health.warning(report)) if text]
    texts = [
        Text(" ").join(map(_passage, verdict_sentences(report))),
        *(Text(text, "dark_orange3") for text in warnings),
    ]
    parts: list[RenderableType] = [head, *texts]
    if report.rounds:
        lines = sum(1 + len(text) // width for text in texts)
        parts.append(summaries(report, width, max(4, height - 8 - lines)))
    if follower.trouble:
        parts.append(Text(printable(follower.trouble), "dark_orange3"))
    return Group(*parts)


def summaries(report: ReportData, width: int, most: int) -> Table:
    """The ranking; of many clients its two ends. A narrow terminal omits the less important columns."""
    shown = ends(len(report.summaries), most)
    spans = [report.summaries[place].interval or (report.summaries[place].score,) * 2 for place in shown]
    low, high = min(0.0, *(span[0] for span in spans)), max(0.0, *(span[1] for span in spans))
    peak = float(np.nanmax(np.abs(report.credits))) or 1.0
    has_verdicts = not report.too_early and any(summary.verdict for summary in report.summaries)
    wide, medium = width >= 110, width >= 90
    cells = _SCALE if width >= 72 else 12
    columns: list[tuple[str, JustifyMethod, bool]] = [
        ("rank", "right", True),
        ("client", "left", True),
        ("score", "right", True),
        ("on one scale", "left", True),
        ("credit by round", "left", wide),
        ("rounds", "right", medium),
        ("verdict", "left", has_verdicts),
    ]
    table = Table(caption=_key(report, low, high), caption_justify="left")
    for name, side, wanted in columns:
        if wanted:
            most_cells = max(16, width // 4) if name == "client" else None
            table.add_column(name, justify=side, no_wrap=True, max_width=most_cells)
    for at, place in enumerate(shown):
        summary = report.summaries[place]
        style = _STYLES[summary.verdict]
        if place != at and shown[at - 1] == at - 1:
            table.add_section()
        row: list[str | Text] = [
            str(summary.rank),
            Text(isolated(summary.name)),
            number(summary.score),
            Text(scale(summary, low, high, cells), style),
            Text(history(report.credits[place], peak), style),
            str(summary.rounds_scored),
            Text(VERDICTS[summary.verdict], style),
        ]
        table.add_row(*(cell for cell, (_, _, wanted) in zip(row, columns, strict=True) if wanted))
    return table


def _key(report: ReportData, low: float, high: float) -> str:
    sure = "" if report.level is None else f", ─ its {percent(report.level)} range"
    return f"● score{sure}, │ zero, on a scale from {number(low)} to {number(high)}"


def scale(summary: ClientSummary, low: float, high: float, width: int = _SCALE) -> str:
    """A client's range on the common scale.

    >>> scale(ClientSummary("a", 1, 50, None, 3, interval=(25, 75)), 0, 100)
    '│     ──────●──────      '
    """
    cells = [" "] * width

    def at(value: float) -> int:
        return round((value - low) / ((high - low) or 1) * (width - 1))

    cells[at(0)] = "│"
    first, last = summary.interval or (summary.score, summary.score)
    for place in range(at(first), at(last) + 1):
        cells[place] = "─"
    cells[at(summary.score)] = "●"
    return "".join(cells)


def history(credits: Sequence[float] | np.ndarray, peak: float) -> str:
    """Credits in time as small bars; the middle height is zero, a dot an absence.

    >>> history([10, 0, -10, float("nan")], 10)
    '█▅▁·'
    """
    row = np.asarray(credits, dtype=np.float64)
    means = [row[list(window)] for window in windows(range(len(row)), _HISTORY)]
    return "".join(_bar(float(np.nanmean(part)) / peak) if np.isfinite(part).any() else "·" for part in means)


def _bar(height: float) -> str:
    return _BARS[min(len(_BARS) - 1, int((height + 1) / 2 * len(_BARS)))]


def _passage(parts: Passage) -> Text:
    return Text("".join(part if isinstance(part, str) else isolated(part.name) for part in parts))
