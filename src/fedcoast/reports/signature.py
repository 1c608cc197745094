"""What a report carries for a machine: the head of the run's chain, the settings, the scores, and a hash of the rest.

`fedcoast verify RUN --report FILE` holds it against the recording (docs/audit.md).
"""

import hashlib
import json
import re
from typing import Any

from fedcoast.errors import BadFile
from fedcoast.methods.assessment import Assessment
from fedcoast.reports.markup import inert
from fedcoast.reports.report_data import ReportData

FORMAT = "fedcoast-seal"
VERSION = 1
_BLOCK = re.compile(r'<script type="application/json" id="seal">(.*?)</script>\n', re.DOTALL)


def sealed_json(account: ReportData, report: dict[str, Any]) -> str:
    """A report in JSON, which holds the whole assessment already, with its seal."""
    return json.dumps({**report, "seal": _seal(account, _compact(report))}, allow_nan=False)


def sealed_page(account: ReportData, text: str) -> str:
    """A page with its seal at the end; no browser shows or runs it."""
    said = json.loads(account.assessment.to_json())
    scores = {name: value for name, value in said.items() if name not in ("credits", "quarantined")}
    block = inert({**_seal(account, text), "assessment": scores})
    before, end, after = text.rpartition("</body>")
    return f'{before}<script type="application/json" id="seal">{block}</script>\n{end}{after}'


def unsealed(text: str) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """The seal of a report in HTML or JSON, what it says the assessment was, and whether the rest is as it was made."""
    try:
        if text.lstrip().startswith("{"):
            report = json.loads(text)
            seal = report.pop("seal")
            whole = json.dumps({**report, "seal": seal}) == text and seal["digest"] == _digest(_compact(report))
            said = report["assessment"]
        else:
            (block,) = _BLOCK.findall(text)
            seal = json.loads(block)
            whole = inert(seal) == block and seal["digest"] == _digest(_BLOCK.sub("", text))
            said = seal.pop("assessment")
        if (seal["format"], seal["version"]) != (FORMAT, VERSION) or not isinstance(said, dict):
            raise BadFile(f"a {FORMAT} of version {VERSION} is wanted")
        if not isinstance(seal["last_round"], int | None) or not isinstance(seal["head"], str):
            raise BadFile("the seal says neither which round was the last nor which head the chain had")
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise BadFile(f"this is no report with a seal ({type(error).__name__}: {error})") from error
    return seal, said, whole


def _seal(account: ReportData, rest: str) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "last_round": last_round(account.assessment),
        "head": account.head,
        "digest": _digest(rest),
    }


def last_round(assessment: Assessment) -> int | None:
    """The last round that left a trace in an assessment; later ones may have been seen that gave nobody credit."""
    return max({*assessment.credits, *assessment.pending, *assessment.quarantined}, default=None)


def _compact(data: object) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
