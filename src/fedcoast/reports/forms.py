"""The forms a report comes in, each as one file."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fedcoast.analysis.rewards import amount
from fedcoast.errors import BadFile, BadSetting
from fedcoast.methods.text import csv_row
from fedcoast.reports import health
from fedcoast.reports.browser import screenshot
from fedcoast.reports.markdown import markdown
from fedcoast.reports.page import page, poster
from fedcoast.reports.report_data import ClientSummary, ReportData
from fedcoast.reports.signature import sealed_json
from fedcoast.rounds.clients import client_to_json
from fedcoast.storage.files import write_whole

FORMAT = "fedcoast-report"
VERSION = 1
_ADDED = [
    "low",
    "high",
    "mean low",
    "mean high",
    "evened",
    "evened low",
    "evened high",
    "best rank",
    "worst rank",
    "verdict",
    "group",
    "share",
    "amount",
]


def write(account: ReportData, path: str | Path, form: str | None = None) -> None:
    """Write a report, whole or not at all; its form is the ending of the file unless said otherwise."""
    path = Path(path)
    content = FORMS[form_of(path, form)](account)
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
    chosen = path.suffix.removeprefix(".").lower() if form is None else form
    if chosen not in FORMS:
        raise BadSetting(f"a report is {', '.join(FORMS)}; got {chosen!r}. Say which, or give the file such an ending")
    return chosen


def to_json(account: ReportData) -> str:
    """Everything a report shows, and the whole assessment it was made from; clients best first."""
    layers, comparison = account.layers, account.comparison
    clients = [standing.client for standing in account.standings]
    return sealed_json(
        account,
        {
            "format": FORMAT,
            "version": VERSION,
            "title": account.title,
            "made": account.made,
            "versions": dict(account.versions),
            "facts": dict(account.facts),
            "level": account.level,
            "note": account.doubt,
            "clients": [_standing(standing) for standing in account.standings],
            "groups": account.groups,
            "above": None if account.above is None else _known(account.above),
            "layers": {
                "names": layers.names,
                "agreement": [layers.agreement[c].tolist() for c in clients] if layers.names else [],
                "votes": [layers.votes[c].tolist() for c in clients] if layers.names else [],
            },
            "health": health.to_json(account.health),
            "rewards": None if account.rewards is None else json.loads(account.rewards.to_json()),
            "comparison": None if comparison is None else json.loads(comparison.to_json()),
            "assessment": json.loads(account.assessment.to_json()),
        },
    )


def _standing(standing: ClientSummary) -> dict[str, Any]:
    return {
        "client": client_to_json(standing.client),
        "rank": standing.rank,
        "score": standing.score,
        "interval": standing.interval,
        "mean": standing.mean,
        "mean_interval": standing.mean_interval,
        "evened": standing.evened,
        "evened_interval": standing.evened_interval,
        "ranks": standing.ranks,
        "verdict": standing.verdict,
        "seen": standing.seen,
        "coverage": standing.coverage,
        "quarantined": standing.quarantined,
        "share": standing.share,
        "amount": None if standing.cents is None else amount(standing.cents),
        "planted_rank": standing.planted,
    }


def _known(table: Any) -> list[list[float | None]]:
    return [[None if np.isnan(p) else round(p, 4) for p in row] for row in table.tolist()]


def to_csv(account: ReportData) -> str:
    """The assessment's rows, best first, with what the report adds between the totals and the single rounds."""
    head, *rows = csv.reader(io.StringIO(account.assessment.to_csv(), newline=""))
    place = head.index("method")
    lines = [csv_row([*head[:place], *_ADDED, *head[place:]])]
    for standing, row in zip(account.standings, rows, strict=True):
        lines.append(csv_row([*row[:place], *_added(standing), *row[place:]]))
    return "".join(lines)


def _added(standing: ClientSummary) -> list[Any]:
    level = "" if standing.evened is None else standing.evened
    spans = [standing.interval, standing.mean_interval, (level,), standing.evened_interval, standing.ranks]
    cells = [cell for span in spans for cell in (span or ("", ""))]
    group = "" if standing.group is None else standing.group + 1
    share = "" if standing.share is None else standing.share
    return [*cells, standing.verdict or "", group, share, "" if standing.cents is None else amount(standing.cents)]


FORMS: dict[str, Callable[[ReportData], bytes]] = {
    "html": lambda account: page(account).encode(),
    "md": lambda account: markdown(account).encode(),
    "csv": lambda account: to_csv(account).encode("utf-8", "backslashreplace"),  # names from files may be no text
    "json": lambda account: to_json(account).encode(),
    "png": lambda account: screenshot(poster(account)),
}
