"""One self-contained HTML file: no network, no other file, no third-party scripts."""

import base64
import hashlib
import json
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from fedcoast.reports import palette, plots
from fedcoast.reports import plot_base as plot_base
from fedcoast.reports.markup import inert
from fedcoast.reports.overview import windows
from fedcoast.reports.report_data import ReportData
from fedcoast.reports.sections import headline, sections
from fedcoast.reports.signature import signed_page

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"


def page(report: ReportData) -> str:
    """The whole report as one file for a browser."""
    footer = f"{_made(report)} This page holds all it shows and asks nothing of the network."
    return signed_page(report, _report(view(report), "report", footer))


def poster(report: ReportData) -> str:
    """The answer, the ranking and the timeline alone, for a picture."""
    return _report(view(report, only=("ranking", "timeline")), "poster", _made(report))


def _made(report: ReportData) -> str:
    return f"Made by fedcoast on {report.made}."


def _report(state: dict[str, Any], kind: str, footer: str) -> str:
    library, script = plotly_js(), asset("report.js")
    return _fill(
        state,
        kind=kind,
        policy=f"{_POLICY}; script-src {_hash(library)} {_hash(script)}",
        status="",
        footer=escape(footer),
        scripts=f'<script type="text/plain" id="plotly">{library}</script>\n<script>{script}</script>',
    )


def live_page(state: dict[str, Any], back: str = "") -> tuple[str, str]:
    """A page that shows a state and then keeps asking its server for the next, with the policy it is sent under.

    `back` is the address of the list of runs, where there is one.
    """
    script = asset("report.js") + asset("live.js")
    policy = f"{_POLICY}; script-src 'self' {_hash(script)}; connect-src 'self'"
    status = state["status"]
    text = _fill(
        state,
        kind="live-page",
        policy=policy,
        status=(f'<a class="back" href="{back}">All runs</a>' if back else "")
        + f'<p class="live" id="live" role="status" data-state="{status["state"]}">{escape(status["text"])}</p>',
        footer="This page follows a run of fedcoast while it trains.",
        scripts=f"<script>{script}</script>",
    )
    return text, f"{policy}; frame-ancestors 'none'"


def _fill(state: dict[str, Any], **parts: str) -> str:
    return _template("report.html").substitute(
        title=escape(state["title"]),
        style=style(),
        summary=state["summary"],
        contents=state["contents"],
        sections=state["sections"],
        view=inert({key: state[key] for key in ("figures", "lines", "partners")}),
        **parts,
    )


def view(report: ReportData, only: tuple[str, ...] = ()) -> dict[str, Any]:
    """What the page shows, as JSON types: HTML for its parts, the figures, and the lines of the timeline."""
    drawn = {name: draw(report) for name, draw in plots.FIGURES.items() if not only or name in only}
    figures = {name: json.loads(figure.to_json()) for name, figure in drawn.items() if figure is not None}
    made = sections(report, {name: figure["layout"]["height"] for name, figure in figures.items()})
    made = [section for section in made if not only or section.name in only]
    return {
        "title": report.title,
        "summary": headline(report),
        "contents": "".join(f'<li><a href="#{s.name}">{escape(s.title)}</a></li>' for s in made),
        "sections": "".join(
            f'<section id="{s.name}" aria-labelledby="{s.name}-title"><h2 id="{s.name}-title">{escape(s.title)}</h2>'
            f"{s.html}</section>"
            for s in made
        ),
        "figures": figures,
        "lines": _lines(report),
        "partners": palette.partners(),
    }


def _lines(report: ReportData) -> dict[str, Any]:
    """Everyone's credit so far, row by row of the ranking, where the timeline draws it."""
    at = [window[-1] for window in windows(report.rounds, plot_base.MOST_COLUMNS)]
    sums = report.cumulative[:, at].astype("<f4")
    return {
        "rounds": [report.rounds[place] for place in at],
        "clients": [f"{type(summary.client).__name__} {summary.client}" for summary in report.summaries],
        "names": [plot_base.label(summary, 24) for summary in report.summaries],
        "sums": base64.b64encode(np.ascontiguousarray(sums).tobytes()).decode(),
        "colours": [colour.light for colour in palette.LINES],
    }


def style() -> str:
    return _template("report.css").substitute(light=palette.variables(dark=False), dark=palette.variables(dark=True))


def plotly_js() -> str:
    """The part of plotly.js for two axes: a third of its size, and it loads in a third of the time."""
    return asset("plotly-cartesian.min.js")


@cache
def asset(name: str) -> str:
    return (files("fedcoast.reports") / "assets" / name).read_text(encoding="utf-8")


def _template(name: str) -> Template:
    return Template(asset(name))


def _hash(script: str) -> str:
    """The hash of a script, for a content security policy that allows no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
