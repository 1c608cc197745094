"""What all figures of a report share: axes, colours, labels, and how much fits.

A client's name reaches plotly escaped, since plotly reads some HTML in its texts, and never as part of a template.
"""

from html import escape
from typing import Any

from fedcoast.errors import require
from fedcoast.reports.palette import CARD, INK, RULE, SOFT
from fedcoast.reports.phrasing import isolated
from fedcoast.reports.report_data import ClientSummary

MOST_BARS, MOST_LINES, MOST_ROWS, MOST_COLUMNS, MOST_PAIRS, MOST_LAYERS = 30, 12, 45, 200, 24, 60


def figure(traces: list[Any], height: int, x: str = "", y: str = "") -> Any:
    """Traces between two plain axes, in the colours of a light page."""
    axis = {"gridcolor": RULE.light, "linecolor": RULE.light, "zeroline": False, "zerolinecolor": SOFT.light}
    axis |= {"tickformat": ","}
    return require("plotly.graph_objects", extra="report").Figure(
        traces,
        {
            "template": "none",
            "height": height,
            "margin": {"l": 10, "r": 20, "t": 10, "b": 50},
            "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK.light},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "hoverlabel": {"bgcolor": CARD.light, "bordercolor": SOFT.light, "font": {"color": INK.light}},
            "hovermode": "closest",
            "dragmode": False,
            "legend": {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom"},
            "xaxis": {**axis, "title": {"text": x, "standoff": 12}, "automargin": True},
            "yaxis": {**axis, "title": {"text": y, "standoff": 12}, "automargin": True},
        },
    )


def name_rows(figure: Any, names: dict[int, str]) -> None:
    """Names at the heights given, the first on top."""
    figure.update_yaxes(
        tickvals=list(names),
        ticktext=list(names.values()),
        range=[max(names) + 0.5, -0.5],
        showgrid=False,
        zeroline=False,
        ticks="",
    )


def label(summary: ClientSummary, most: int = 28) -> str:
    """A client's name as plotly may show it: short, neither markup nor template, with its own direction of writing.

    >>> label(ClientSummary("<b>%{y}", 1, 0, None, 0))
    '&lt;b&gt;&#37;{y}'
    """
    name = summary.name if len(summary.name) <= most else summary.name[: most - 1] + "…"
    return isolated(escape(name, quote=False).replace("%{", "&#37;{"))
