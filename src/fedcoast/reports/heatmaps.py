"""The figures of a report that are tables of colours: blue above zero (or above the other), orange below."""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from fedcoast.reports import plot_base as plot_base
from fedcoast.reports.overview import Floats, Places, ends, groups, means, windows
from fedcoast.reports.palette import DOWN, HIGH, INK, LOW, UP, ZERO
from fedcoast.reports.phrasing import chance
from fedcoast.reports.plot_base import MOST_BARS, MOST_COLUMNS, MOST_LAYERS, MOST_PAIRS, MOST_ROWS, label, name_rows
from fedcoast.reports.report_data import ReportData

_STRONG = [[0.0, DOWN.light], [0.5, ZERO.light], [1.0, UP.light]]
_READABLE = [[0.0, LOW.light], [0.5, ZERO.light], [1.0, HIGH.light]]  # behind numbers


def heat_map(report: ReportData) -> Any:
    """Credit for each client and round; where they are many, means over neighbours in the ranking and in time."""
    rows = [group.places for group in groups(len(report.summaries), MOST_ROWS)]
    columns = windows(report.rounds, MOST_COLUMNS)
    if not rows or not columns:
        return None
    credit = means(report.credits, rows, columns)
    numbers = [float(np.mean([report.rounds[place] for place in window])) for window in columns]
    width = len(columns[0])
    when = "round %{x}" if width == 1 else f"{width} rounds around %{{x}}"
    figure = plot_base.figure([_heat(credit, f"%{{y}}<br>{when}: %{{z:,.4~r}}")], 80 + _room(len(rows), 20), "round")
    figure.update_traces(x=numbers, colorbar_title_text="credit a round")
    if len(columns) <= 12:  # else plotly would mark halves of rounds
        figure.update_xaxes(tickvals=numbers)
    name_rows(figure, {place: _row_label(report, row) for place, row in enumerate(rows)})
    if len(rows) == len(report.summaries):
        _cross_out(figure, report)
    return figure


def _cross_out(figure: Any, report: ReportData) -> None:
    """Crosses where an upload was quarantined."""
    places = {summary.client: place for place, summary in enumerate(report.summaries)}
    if report.quarantined:
        figure.add_scatter(
            x=[number for number, _, _ in report.quarantined],
            y=[places[client] for _, client, _ in report.quarantined],
            mode="markers",
            marker={"symbol": "x-thin", "size": 8, "line": {"width": 2, "color": INK.light}},
            name="quarantined",
            hovertemplate="%{y}<br>round %{x}: quarantined<extra></extra>",
        )


def layers(report: ReportData) -> Any:
    """How many of the votes cast in a layer pointed where the model went, net; layers as the model has them."""
    shown = ends(len(report.summaries), MOST_BARS)
    rows = windows(range(len(report.layers.names)), MOST_LAYERS)
    if not rows or not shown or not report.rounds:
        return None
    clients = [report.summaries[place].client for place in shown]
    net, cast = (
        np.array([[of[client][list(row)].sum() for client in clients] for row in rows], dtype=np.float64)
        for of in (report.layers.agreement, report.layers.votes)
    )
    rate = np.divide(net, cast, out=np.full_like(net, np.nan), where=cast > 0)
    hover = "%{y}<br>%{x}<br>net %{customdata[0]:,.4~r} of %{customdata[1]:,} votes: %{z:+.1%}"
    figure = plot_base.figure([_heat(rate, hover)], 50 + _room(len(rows), 22))
    figure.update_traces(customdata=np.stack([net, cast], axis=-1), colorbar_tickformat="+.0%")
    figure.update_traces(colorbar_title_text="net agreement")
    name_rows(figure, {place: _layer_label(report.layers.names, row) for place, row in enumerate(rows)})
    _columns(figure, [label(report.summaries[place], 18) for place in shown])
    return figure


def above(report: ReportData) -> Any:
    """The probability that the client of the row is really above that of the column."""
    shown = list(ends(len(report.summaries), MOST_PAIRS))
    if report.prob_above is None or len(shown) < 2:
        return None
    table = report.prob_above[np.ix_(shown, shown)].copy()
    np.fill_diagonal(table, np.nan)
    words = "%{text}" if len(shown) <= 12 else ""
    figure = plot_base.figure([_heat(table, "%{y}<br>above %{x}: %{text}", 0.5, words)], 50 + _room(len(shown), 24))
    labels = [[escape(chance(float(p))) for p in row] for row in table]
    figure.update_traces(zmin=0, zmax=1, text=labels, colorbar_tickformat=".0%")
    names = [label(report.summaries[place], 18) for place in shown]
    name_rows(figure, dict(enumerate(names)))
    _columns(figure, names)
    return figure


def agreement(report: ReportData) -> Any:
    """The rank correlation of the methods, if several were run."""
    if report.comparison is None or len(report.comparison.assessments) < 2:
        return None
    table = report.comparison.agreement()
    values = np.array([list(row.values()) for row in table.values()], dtype=np.float64)
    hover = "%{y} and %{x}: ρ = %{z:+.2f}"
    figure = plot_base.figure([_heat(values, hover, words="%{z:+.2f}")], 50 + _room(len(table), 32))
    figure.update_traces(zmin=-1.1, zmax=1.1, colorbar_title_text="Spearman’s ρ")
    name_rows(figure, dict(enumerate(map(escape, table))))
    _columns(figure, [escape(name) for name in table])
    return figure


def _row_label(report: ReportData, row: Places) -> str:
    if len(row) == 1:
        return label(report.summaries[row[0]])
    return f"places {row[0] + 1:,}–{row[-1] + 1:,}, mean"


def _layer_label(names: Sequence[str], row: Places) -> str:
    name = names[row[0]]
    first = escape(name if len(name) <= 30 else "…" + name[-29:], quote=False)
    return first if len(row) == 1 else f"{first} + {len(row) - 1}"


def _heat(table: Floats, hover: str, middle: float = 0.0, words: str = "") -> dict[str, Any]:
    known = np.abs(table[np.isfinite(table)] - middle)
    most = 1.1 * float(np.quantile(known, 0.98)) if known.size else 1.0  # the last number keeps clear of the title
    return {
        "type": "heatmap",
        "z": table.astype(np.float32),
        "zmin": middle - (most or 1.0),
        "zmax": middle + (most or 1.0),
        "colorscale": _READABLE if words else _STRONG,
        "hoverongaps": False,
        **({"texttemplate": words, "textfont": {"color": INK.light}} if words else {}),
        "hovertemplate": hover + "<extra></extra>",
        "colorbar": {
            "thickness": 12,
            "outlinewidth": 0,
            "lenmode": "pixels",
            "len": min(240, _room(len(table), 20)),
            "y": 1,
            "yanchor": "top",
            "title": {"side": "top"},
        },
        "xgap": 1 if table.shape[1] <= 80 else 0,
        "ygap": 1,
    }


def _room(rows: int, each: int) -> int:
    """The height in pixels for this many rows, and at least that of the colour scale beside them."""
    return max(120, each * rows)


def _columns(figure: Any, names: Sequence[str]) -> None:
    """Names above the columns, aslant, and room for them."""
    places = list(range(len(names)))
    figure.update_xaxes(tickvals=places, ticktext=list(names), showgrid=False, side="top", tickangle=-45, ticks="")
    slanted = 5 * max(len(name) for name in names)
    figure.update_layout(margin={"r": 50, "t": 20, "b": 15}, height=figure.layout.height + slanted)
