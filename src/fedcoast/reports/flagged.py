"""Uploads that look unlike honest training: what a report says about them, beside the scores and never in them."""

from html import escape
from typing import Any

from fedcoast.analysis.flags import Flag
from fedcoast.methods.text import printable
from fedcoast.reports import markup
from fedcoast.reports.markup import Cell
from fedcoast.reports.phrasing import isolated
from fedcoast.reports.report_data import ReportData

_MEANING = (
    "A flag is evidence that you can look up in the recording, not a verdict. It changes no score. Honest clients are"
    " flagged rarely, and some attacks are not found; docs/attacks.md has both, measured."
)


def summary(report: ReportData) -> str:
    """One sentence for the top of a report, empty where nothing was flagged; plain text."""
    names = dict.fromkeys(_name(flag) for flag in report.flags or ())
    return f"{len(names)} flagged for their uploads: {', '.join(names)}." if names else ""


def sentences(report: ReportData) -> list[str]:
    """Each flag as plain text."""
    return [f"{_name(flag)}: {flag.kind}. {printable(flag.evidence)}" for flag in report.flags or ()]


def notice(report: ReportData) -> str:
    """The summary in HTML, for the top of a page."""
    text = summary(report)
    return markup.paragraph(f'{escape(text)} <a href="#flags">Evidence.</a>', "warning") if text else ""


def section(report: ReportData) -> str:
    """A table of all flags; empty if there are none."""
    if not report.flags:
        return ""
    rows = [
        [
            Cell(escape(_name(flag)), "", "client"),
            Cell(escape(flag.kind), "", "words"),
            Cell(str(flag.rounds), flag.rounds),
            Cell(escape(printable(flag.evidence)), "", "words"),
        ]
        for flag in report.flags
    ]
    table = markup.table("flags-table", "Uploads that stand out", ["client", "flag", "rounds", "evidence"], rows)
    return markup.paragraph(_MEANING, "note") + table


def to_json(report: ReportData) -> dict[str, Any]:
    """What a report in JSON adds; nothing where the uploads were not checked."""
    return {} if report.flags is None else {"flags": [flag.to_json() for flag in report.flags]}


def _name(flag: Flag) -> str:
    return isolated(printable(flag.client))
