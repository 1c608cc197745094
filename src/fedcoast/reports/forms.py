"""The forms a report comes in, each as one file."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fedcoast.analysis.money import amount
from fedcoast.errors import BadFile, BadSetting
from fedcoast.methods.text import csv_row
from fedcoast.reports import flagged, health
from fedcoast.reports.browser import screenshot
from fedcoast.reports.markdown import markdown
from fedcoast.reports.page import page, poster
from fedcoast.reports.report_data import ClientSummary, ReportData
from fedcoast.reports.signature import signed_json
from fedcoast.rounds.clients import client_to_json
from fedcoast.storage.files import write_whole

FORMAT = "fedcoast-report"
VERSION = 1
_ADDED = [
    "low",
    "high",
    "mean low",
    "mean high",
    "adjusted mean",
    "adjusted low",
    "adjusted high",
    "best rank",
    "worst rank",
    "verdict",
    "group",
    "share",
    "amount",
]


def write(report: ReportData, path: str | Path, form: str | None = None) -> None:
    """Write a report, whole or not at all; its form is the ending of the file unless said otherwise."""
    path = Path(path)
    content = FORMS[form_of(path, form)](report)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadFile(f"{path} cannot be written ({error}); name a file in a folder") from error
    write_whole(path, lambda part: part.write_bytes(content))


def form_of(path: Path, form: str | None = None) -> str:
    """
    >>> form_of(Path("report.HTML")), form_of(Path("report.txt"), "md")
    ('html', 'md')
    """
    name = path.suffix.removeprefix(".").lower() if form is None else form
    if name not in FORMS:
        raise BadSetting(
            f"a report is one of {', '.join(FORMS)}; got {name!r}. Choose one by the file's ending, or with --format"
        )
    return name


def to_json(report: ReportData) -> str:
    """Everything a report shows, and the whole assessment it was made from; clients best first."""
    layers, comparison = report.layers, report.comparison
    clients = [summary.client for summary in report.summaries]
    return signed_json(
        report,
        {
            "format": FORMAT,
            "version": VERSION,
            "title": report.title,
            "made": report.made,
            "versions": dict(report.versions),
            "facts": dict(report.facts),
            "level": report.level,
            "note": report.range_note,
            "clients": [_summary(summary) for summary in report.summaries],
            "groups": report.groups,
            "above": None if report.prob_above is None else _known(report.prob_above),
            "layers": {
                "names": layers.names,
                "agreement": [layers.agreement[c].tolist() for c in clients] if layers.names else [],
                "votes": [layers.votes[c].tolist() for c in clients] if layers.names else [],
            },
            "health": health.to_json(report.health),
            **flagged.to_json(report),
            "rewards": None if report.rewards is None else json.loads(report.rewards.to_json()),
            "comparison": None if comparison is None else json.loads(comparison.to_json()),
            "assessment": json.loads(report.assessment.to_json()),
        },
    )


def _summary(summary: ClientSummary) -> dict[str, Any]:
    return {
        "client": client_to_json(summary.client),
        "rank": summary.rank,
        "score": summary.score,
        "interval": summary.interval,
        "mean": summary.mean,
        "mean_interval": summary.mean_interval,
        "adjusted_mean": summary.adjusted_mean,
        "adjusted_interval": summary.adjusted_interval,
        "ranks": summary.ranks,
        "verdict": summary.verdict,
        "seen": summary.rounds_scored,
        "coverage": summary.coverage,
        "quarantined": summary.quarantined,
        "share": summary.share,
        "amount": None if summary.cents is None else amount(summary.cents),
        "planted_rank": summary.true_rank,
    }


def _known(table: Any) -> list[list[float | None]]:
    return [[None if np.isnan(p) else round(p, 4) for p in row] for row in table.tolist()]


def to_csv(report: ReportData) -> str:
    """The assessment's rows, best first, with what the report adds between the totals and the single rounds."""
    head, *rows = csv.reader(io.StringIO(report.assessment.to_csv(), newline=""))
    place = head.index("method")
    lines = [csv_row([*head[:place], *_ADDED, *head[place:]])]
    for summary, row in zip(report.summaries, rows, strict=True):
        lines.append(csv_row([*row[:place], *_added(summary), *row[place:]]))
    return "".join(lines)


def _added(summary: ClientSummary) -> list[Any]:
    level = "" if summary.adjusted_mean is None else summary.adjusted_mean
    spans = [summary.interval, summary.mean_interval, (level,), summary.adjusted_interval, summary.ranks]
    cells = [cell for span in spans for cell in (span or ("", ""))]
    group = "" if summary.group is None else summary.group + 1
    share = "" if summary.share is None else summary.share
    return [*cells, summary.verdict or "", group, share, "" if summary.cents is None else amount(summary.cents)]


FORMS: dict[str, Callable[[ReportData], bytes]] = {
    "html": lambda report: page(report).encode(),
    "md": lambda report: markdown(report).encode(),
    "csv": lambda report: to_csv(report).encode("utf-8", "backslashreplace"),  # names in files may not be valid text
    "json": lambda report: to_json(report).encode(),
    "png": lambda report: screenshot(poster(report)),
}
