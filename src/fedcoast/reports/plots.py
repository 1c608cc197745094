"""The figures of a report, by plotly: each takes a report's data and returns None where there is nothing to draw.

They stand alone too: `ranking(report).show()` in a notebook.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fedcoast.reports import heatmaps
from fedcoast.reports import plot_base as plot_base
from fedcoast.reports.overview import Floats, Places, ends, windows
from fedcoast.reports.palette import BAND, DOWN, IDLE, LINES, RULE, SOFT, UP
from fedcoast.reports.phrasing import percent
from fedcoast.reports.plot_base import MOST_BARS, MOST_COLUMNS, MOST_LINES, label, name_rows
from fedcoast.reports.report_data import ClientSummary, ReportData

_VERDICTS = {
    "helps": ("helps", UP.light, "circle"),
    "idle": ("idle", IDLE.light, "square-open"),
    "cannot tell": ("cannot tell", SOFT.light, "circle-open"),
    "hurts": ("hurts", DOWN.light, "diamond"),
    None: ("score", UP.light, "circle"),
}


def ranking(report: ReportData) -> Any:
    """Scores with their intervals, the best on top; behind them bands of clients that cannot be told apart."""
    shown = ends(len(report.summaries), MOST_BARS)
    if not shown or not report.rounds:
        return None
    levels = _levels(shown)
    traces = []
    for verdict, (words, colour, symbol) in _VERDICTS.items():
        of = [place for place in shown if report.summaries[place].verdict == verdict]
        if of:
            traces.append(_dots(report, of, levels, words, colour, symbol))
    figure = plot_base.figure(traces, 90 + 26 * len(levels), "score")
    name_rows(figure, {levels[place]: label(report.summaries[place]) for place in shown} | _gap(shown, report))
    for group in report.groups:
        within = [levels[place] for place in group if place in levels]
        if 1 < len(group) < len(report.summaries) and within:
            band = {"fillcolor": BAND.light, "line_width": 0, "layer": "below"}
            figure.add_hrect(y0=min(within) - 0.42, y1=max(within) + 0.42, **band)
    figure.update_layout(showlegend=len(traces) > 1, margin_t=40 if len(traces) > 1 else 10)
    figure.update_xaxes(zeroline=True, rangemode="tozero" if report.zero_is_idle else "normal")
    return figure


def _dots(
    report: ReportData, of: Sequence[int], levels: dict[int, int], words: str, colour: str, symbol: str
) -> dict[str, Any]:
    summaries = [report.summaries[place] for place in of]
    spans = [(s.score - s.interval[0], s.interval[1] - s.score) if s.interval else (0.0, 0.0) for s in summaries]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": words,
        "x": [summary.score for summary in summaries],
        "y": [levels[place] for place in of],
        "customdata": [[label(summary, 80), _interval(summary), f"{summary.rank}"] for summary in summaries],
        "hovertemplate": "%{customdata[0]}<br>score %{x:,.4~r}%{customdata[1]}<br>rank %{customdata[2]}<extra></extra>",
        "marker": {"size": 11, "color": colour, "symbol": symbol, "line": {"width": 2, "color": colour}},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "arrayminus": [span[0] for span in spans],
            "array": [span[1] for span in spans],
            "thickness": 3,
            "width": 0,
            "color": colour,
        },
    }


def timeline(report: ReportData) -> Any:
    """Credit added up round by round; of many clients the best and the worst, over the middle of all others."""
    count = len(report.summaries)
    if not report.rounds or not count:
        return None
    columns = windows(report.rounds, MOST_COLUMNS)
    at = [window[-1] for window in columns]
    numbers = [report.rounds[place] for place in at]
    sums = report.cumulative[:, at]
    shown = ends(count, MOST_LINES)
    traces = [] if len(shown) == count else _crowd(np.delete(sums, shown, axis=0), numbers)
    for place, colour in zip(shown, LINES, strict=False):
        traces.append(
            {
                "type": "scatter",
                "mode": "lines" if len(numbers) > 1 else "markers",
                "name": label(report.summaries[place], 24),
                "x": numbers,
                "y": sums[place].astype(np.float32),
                "line": {"color": colour.light, "width": 2.2},
                "meta": place,
                "hovertemplate": "%{fullData.name}<br>round %{x}: %{y:,.4~r}<extra></extra>",
            }
        )
    figure = plot_base.figure(traces, 440, "round", "credit so far")
    figure.update_layout(
        showlegend=True, legend={"orientation": "v", "x": 1.01, "y": 1, "yanchor": "top", "traceorder": "normal"}
    )
    figure.update_yaxes(zeroline=True)
    return figure


def _crowd(sums: Floats, numbers: list[int]) -> list[dict[str, Any]]:
    low, middle, high = np.quantile(sums, [0.1, 0.5, 0.9], axis=0).astype(np.float32)
    plain = {"type": "scatter", "mode": "lines", "x": numbers, "hoverinfo": "skip"}
    name = f"the middle 80% of the other {len(sums):,}"
    return [
        {**plain, "y": low, "line": {"width": 0, "color": RULE.light}, "showlegend": False},
        {**plain, "y": high, "line": {"width": 0, "color": RULE.light}, "fill": "tonexty", "fillcolor": BAND.light}
        | {"name": name},
        {**plain, "y": middle, "line": {"width": 1.5, "dash": "dot", "color": SOFT.light}, "name": "their median"},
    ]


def shares(report: ReportData) -> Any:
    """The share of each client."""
    shown = ends(len(report.summaries), MOST_BARS)
    if report.rewards is None or not shown:
        return None
    levels = _levels(shown)
    of = [report.summaries[place].share or 0.0 for place in shown]
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": of,
        "y": [levels[place] for place in shown],
        "text": [percent(share, 1 if max(of) > 0.1 else 2) for share in of],
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": UP.light},
        "hovertemplate": "%{y}: %{x:.2%}<extra></extra>",
    }
    figure = plot_base.figure([bars], 80 + 24 * len(levels), "share")
    figure.update_xaxes(tickformat=".2~%", range=[0, max(of) * 1.12 or 1])
    name_rows(figure, {levels[place]: label(report.summaries[place]) for place in shown} | _gap(shown, report))
    return figure


def _interval(summary: ClientSummary) -> str:
    if summary.interval is None:
        return ""
    low, high = summary.interval
    return f" ({low:,.4g} to {high:,.4g})"


def _levels(shown: Places) -> dict[int, int]:
    """Where each of these places of the ranking is drawn; where some are left out, one line is left free."""
    return {place: at + (place != at) for at, place in enumerate(shown)}


def _gap(shown: Places, report: ReportData) -> dict[int, str]:
    left_out = len(report.summaries) - len(shown)
    free = next((at for at, place in enumerate(shown) if place != at), None)
    return {} if free is None else {free: f"… {left_out:,} more …"}


def accuracy(report: ReportData) -> Any:
    """The accuracy of the shared model over the rounds, as the server noted it."""
    if len(report.accuracy) < 2:
        return None
    rounds = list(report.accuracy)
    trace = {
        "type": "scatter",
        "mode": "lines",
        "x": rounds,
        "y": [report.accuracy[number] for number in rounds],
        "line": {"color": UP.light, "width": 2},
        "hovertemplate": "round %{x}: %{y:.1%}<extra></extra>",
    }
    figure = plot_base.figure([trace], 220, "round")
    figure.update_yaxes(tickformat=".0%", rangemode="tozero")
    figure.update_layout(showlegend=False)
    return figure


FIGURES: dict[str, Callable[[ReportData], Any]] = {
    "ranking": ranking,
    "accuracy": accuracy,
    "timeline": timeline,
    "heat-map": heatmaps.heat_map,
    "layers": heatmaps.layers,
    "above": heatmaps.above,
    "shares": shares,
    "agreement": heatmaps.agreement,
}
