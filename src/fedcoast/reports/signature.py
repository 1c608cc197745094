"""The machine-readable part of a report: the head of the run's chain, the settings, the scores, and a hash of the rest.

`fedcoast verify RUN --report FILE` makes the report again from the recording and compares it whole (docs/audit.md).
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
BLOCK = re.compile(r'<script type="application/json" id="seal">(.*?)</script>\n', re.DOTALL)


def signed_json(report: ReportData, content: dict[str, Any]) -> str:
    """A report in JSON, which holds the whole assessment already, with its signature."""
    return json.dumps({**content, "seal": _signature(report, _compact(content))}, allow_nan=False)


def signed_page(report: ReportData, text: str) -> str:
    """A page with its signature at the end; no browser shows or runs it."""
    content = json.loads(report.assessment.to_json())
    scores = {name: value for name, value in content.items() if name not in ("credits", "quarantined")}
    block = inert({**_signature(report, text), "assessment": scores})
    before, end, after = text.rpartition("</body>")
    return f'{before}<script type="application/json" id="seal">{block}</script>\n{end}{after}'


def read_signature(text: str) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """The signature of a report in HTML or JSON, the assessment it states, and whether the rest is unchanged."""
    try:
        if text.lstrip().startswith("{"):
            content = json.loads(text)
            signature = content.pop("seal")
            whole = json.dumps({**content, "seal": signature}) == text and signature["digest"] == _digest(
                _compact(content)
            )
            assessment = content["assessment"]
        else:
            (block,) = BLOCK.findall(text)
            signature = json.loads(block)
            whole = inert(signature) == block and signature["digest"] == _digest(BLOCK.sub("", text))
            assessment = signature.pop("assessment")
        if (signature["format"], signature["version"]) != (FORMAT, VERSION) or not isinstance(assessment, dict):
            raise BadFile(f"a {FORMAT} of version {VERSION} is expected")
        if not isinstance(signature["last_round"], int | None) or not isinstance(signature["head"], str):
            raise BadFile("the signature names neither the last round nor the head of the chain")
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise BadFile(f"this is not a report with a signature ({type(error).__name__}: {error})") from error
    return signature, assessment, whole


def _signature(report: ReportData, rest: str) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "last_round": last_round(report.assessment),
        "head": report.head,
        **_how_made(report),
        "digest": _digest(rest),
    }


def _how_made(report: ReportData) -> dict[str, Any]:
    """What `fedcoast verify` needs to make the report again: what its author chose, and which parts it has."""
    parts = {
        "layers": report.layers.names,
        "facts": report.facts,
        "health": report.health.shares,
        "flags": report.flags is not None,
        "truth": any(summary.true_rank is not None for summary in report.summaries),
    }
    comparison = report.comparison
    compared = {} if comparison is None else comparison.assessments
    return {
        "title": report.title,
        "made": report.made,
        "versions": dict(report.versions),
        "options": dict(report.options),
        "parts": [name for name, there in parts.items() if there],
        "methods": {
            name: [answer.method, dict(answer.settings)] for name, answer in compared.items() if name != report.method
        },
        "unavailable": {} if comparison is None else dict(comparison.errors),
    }


def last_round(assessment: Assessment) -> int | None:
    """The last round that left a trace in an assessment; later ones may have been seen that gave nobody credit."""
    return max({*assessment.credits, *assessment.pending, *assessment.quarantined}, default=None)


def _compact(data: object) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
