"""One HTML file that holds everything it shows: no network, no other file, nothing runs in it that is not ours."""

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
from fedcoast.reports import plot_base as canvas
from fedcoast.reports.markup import inert
from fedcoast.reports.overview import windows
from fedcoast.reports.report_data import ReportData
from fedcoast.reports.sections import sections, summary
from fedcoast.reports.signature import sealed_page

_SEALED = "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"


def page(account: ReportData) -> str:
    """The whole report as one file for a browser."""
    footer = f"{_made(account)} This page holds all it shows and asks nothing of the network."
    return sealed_page(account, _report(view(account), "report", footer))


def poster(account: ReportData) -> str:
    """The answer, the ranking and the timeline alone, for a picture."""
    return _report(view(account, only=("ranking", "timeline")), "poster", _made(account))


def _made(account: ReportData) -> str:
    return f"Made by fedcoast on {account.made}."


def _report(seen: dict[str, Any], kind: str, footer: str) -> str:
    library, script = plotly_js(), asset("report.js")
    return _fill(
        seen,
        kind=kind,
        policy=f"{_SEALED}; script-src {_hash(library)} {_hash(script)}",
        status="",
        footer=escape(footer),
        scripts=f'<script type="text/plain" id="plotly">{library}</script>\n<script>{script}</script>',
    )


def live_page(seen: dict[str, Any]) -> tuple[str, str]:
    """A page that shows a state and then keeps asking its server for the next, with the policy it is sent under."""
    script = asset("report.js") + asset("live.js")
    policy = f"{_SEALED}; script-src 'self' {_hash(script)}; connect-src 'self'"
    told = seen["status"]
    text = _fill(
        seen,
        kind="live-page",
        policy=policy,
        status=f'<p class="live" id="live" role="status" data-state="{told["state"]}">{escape(told["text"])}</p>',
        footer="This page follows a run of fedcoast while it trains.",
        scripts=f"<script>{script}</script>",
    )
    return text, f"{policy}; frame-ancestors 'none'"


def _fill(seen: dict[str, Any], **parts: str) -> str:
    return _template("report.html").substitute(
        title=escape(seen["title"]),
        style=style(),
        summary=seen["summary"],
        contents=seen["contents"],
        sections=seen["sections"],
        view=inert({key: seen[key] for key in ("figures", "lines", "partners")}),
        **parts,
    )


def view(account: ReportData, only: tuple[str, ...] = ()) -> dict[str, Any]:
    """What the page shows, in JSON's types: HTML for its parts, the figures, and everyone's line for the timeline."""
    drawn = {name: draw(account) for name, draw in plots.FIGURES.items() if not only or name in only}
    figures = {name: json.loads(figure.to_json()) for name, figure in drawn.items() if figure is not None}
    made = sections(account, {name: figure["layout"]["height"] for name, figure in figures.items()})
    made = [section for section in made if not only or section.name in only]
    return {
        "title": account.title,
        "summary": summary(account),
        "contents": "".join(f'<li><a href="#{s.name}">{escape(s.title)}</a></li>' for s in made),
        "sections": "".join(
            f'<section id="{s.name}" aria-labelledby="{s.name}-title"><h2 id="{s.name}-title">{escape(s.title)}</h2>'
            f"{s.html}</section>"
            for s in made
        ),
        "figures": figures,
        "lines": _lines(account),
        "partners": palette.partners(),
    }


def _lines(account: ReportData) -> dict[str, Any]:
    """Everyone's credit so far, row by row of the ranking, where the timeline draws it."""
    at = [window[-1] for window in windows(account.rounds, canvas.MOST_COLUMNS)]
    sums = account.cumulative[:, at].astype("<f4")
    return {
        "rounds": [account.rounds[place] for place in at],
        "clients": [f"{type(standing.client).__name__} {standing.client}" for standing in account.standings],
        "names": [canvas.label(standing, 24) for standing in account.standings],
        "sums": base64.b64encode(np.ascontiguousarray(sums).tobytes()).decode(),
        "colours": [colour.light for colour in palette.LINES],
    }


def style() -> str:
    return _template("report.css").substitute(light=palette.variables(dark=False), dark=palette.variables(dark=True))


def plotly_js() -> str:
    """The part of plotly.js that draws on two axes: a third of the whole, and it starts in a third of the time."""
    return asset("plotly-cartesian.min.js")


@cache
def asset(name: str) -> str:
    return (files("fedcoast.reports") / "assets" / name).read_text(encoding="utf-8")


def _template(name: str) -> Template:
    return Template(asset(name))


def _hash(script: str) -> str:
    """Names one script in a content security policy, so that no other can run."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
