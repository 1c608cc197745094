"""The figures of a report, by plotly: each takes an account, and answers None where there is nothing to draw.

They stand alone too: `ranking(account).show()` in a notebook. A client's name reaches plotly escaped, since plotly
reads some HTML in its texts, and never as part of a template.
"""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np

from fedcoast.errors import require
from fedcoast.reports.account import Account, Standing
from fedcoast.reports.overview import Floats, Places, ends, groups, means, windows
from fedcoast.reports.palette import BAND, CARD, DOWN, INK, LINES, RULE, SOFT, UP, ZERO
from fedcoast.reports.wording import isolated

MOST_BARS, MOST_LINES, MOST_ROWS, MOST_COLUMNS, MOST_PAIRS, MOST_LAYERS = 30, 12, 45, 200, 24, 60
_DIVERGING = [[0.0, DOWN.light], [0.5, ZERO.light], [1.0, UP.light]]
_VERDICTS = {
    "helps": ("helps", UP.light, "circle"),
    "unclear": ("cannot be told from idle", SOFT.light, "circle-open"),
    "hurts": ("hurts", DOWN.light, "diamond"),
    None: ("score", UP.light, "circle"),
}


def ranking(account: Account) -> Any:
    """Scores with their intervals, the best on top; behind them bands of clients that cannot be told apart."""
    shown = ends(len(account.standings), MOST_BARS)
    if not shown or not account.rounds:
        return None
    levels = _levels(shown)
    traces = []
    for verdict, (words, colour, symbol) in _VERDICTS.items():
        of = [place for place in shown if account.standings[place].verdict == verdict]
        if of:
            traces.append(_dots(account, of, levels, words, colour, symbol))
    figure = _figure(traces, 90 + 26 * len(levels), "score")
    _rows(figure, {levels[place]: label(account.standings[place]) for place in shown} | _gap(shown, account))
    for group in account.groups:
        within = [levels[place] for place in group if place in levels]
        if 1 < len(group) < len(account.standings) and within:
            band = {"fillcolor": BAND.light, "line_width": 0, "layer": "below"}
            figure.add_hrect(y0=min(within) - 0.42, y1=max(within) + 0.42, **band)
    figure.update_layout(showlegend=len(traces) > 1, margin_t=40 if len(traces) > 1 else 10)
    figure.update_xaxes(zeroline=True, rangemode="tozero" if account.zero_is_idle else "normal")
    return figure


def _dots(
    account: Account, of: Sequence[int], levels: dict[int, int], words: str, colour: str, symbol: str
) -> dict[str, Any]:
    standings = [account.standings[place] for place in of]
    spans = [(s.score - s.interval[0], s.interval[1] - s.score) if s.interval else (0.0, 0.0) for s in standings]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": words,
        "x": [standing.score for standing in standings],
        "y": [levels[place] for place in of],
        "customdata": [[label(standing, 80), _interval(standing), f"{standing.rank}"] for standing in standings],
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


def timeline(account: Account) -> Any:
    """Credit added up round by round; of many clients the best and the worst, over the middle of all others."""
    count = len(account.standings)
    if not account.rounds or not count:
        return None
    columns = windows(account.rounds, MOST_COLUMNS)
    at = [window[-1] for window in columns]
    numbers = [account.rounds[place] for place in at]
    sums = account.cumulative[:, at]
    shown = ends(count, MOST_LINES)
    traces = [] if len(shown) == count else _crowd(np.delete(sums, shown, axis=0), numbers)
    for place, colour in zip(shown, LINES, strict=False):
        traces.append(
            {
                "type": "scatter",
                "mode": "lines" if len(numbers) > 1 else "markers",
                "name": label(account.standings[place], 24),
                "x": numbers,
                "y": sums[place].astype(np.float32),
                "line": {"color": colour.light, "width": 2.2},
                "meta": place,
                "hovertemplate": "%{fullData.name}<br>round %{x}: %{y:,.4~r}<extra></extra>",
            }
        )
    figure = _figure(traces, 440, "round", "credit so far")
    figure.update_layout(
        showlegend=True, legend={"orientation": "v", "x": 1.01, "y": 1, "yanchor": "top", "traceorder": "normal"}
    )
    figure.update_yaxes(zeroline=True)
    return figure


def _crowd(sums: Floats, numbers: list[int]) -> list[dict[str, Any]]:
    low, middle, high = np.quantile(sums, [0.1, 0.5, 0.9], axis=0).astype(np.float32)
    plain = {"type": "scatter", "mode": "lines", "x": numbers, "hoverinfo": "skip"}
    name = f"the middle 80 % of the other {len(sums):,}"
    return [
        {**plain, "y": low, "line": {"width": 0, "color": RULE.light}, "showlegend": False},
        {**plain, "y": high, "line": {"width": 0, "color": RULE.light}, "fill": "tonexty", "fillcolor": BAND.light}
        | {"name": name},
        {**plain, "y": middle, "line": {"width": 1.5, "dash": "dot", "color": SOFT.light}, "name": "their median"},
    ]


def heat_map(account: Account) -> Any:
    """Credit for each client and round; where they are many, means over neighbours in the ranking and in time."""
    rows = [group.places for group in groups(len(account.standings), MOST_ROWS)]
    columns = windows(account.rounds, MOST_COLUMNS)
    if not rows or not columns:
        return None
    credit = means(account.credits, rows, columns)
    numbers = [float(np.mean([account.rounds[place] for place in window])) for window in columns]
    width = len(columns[0])
    when = "round %{x}" if width == 1 else f"{width} rounds around %{{x}}"
    figure = _figure([_heat(credit, f"%{{y}}<br>{when}: %{{z:,.4~r}}")], 80 + _room(len(rows), 20), "round")
    figure.update_traces(x=numbers, colorbar_title_text="credit a round")
    _rows(figure, {place: _row_label(account, row) for place, row in enumerate(rows)})
    if len(rows) == len(account.standings):
        _cross_out(figure, account)
    return figure


def _cross_out(figure: Any, account: Account) -> None:
    """Crosses where an upload was quarantined."""
    places = {standing.client: place for place, standing in enumerate(account.standings)}
    if account.quarantined:
        figure.add_scatter(
            x=[number for number, _, _ in account.quarantined],
            y=[places[client] for _, client, _ in account.quarantined],
            mode="markers",
            marker={"symbol": "x-thin", "size": 8, "line": {"width": 2, "color": INK.light}},
            name="quarantined",
            hovertemplate="%{y}<br>round %{x}: quarantined<extra></extra>",
        )


def layers(account: Account) -> Any:
    """How many of the votes cast in a layer pointed where the model went, net; layers as the model has them."""
    shown = ends(len(account.standings), MOST_BARS)
    rows = windows(range(len(account.layers.names)), MOST_LAYERS)
    if not rows or not shown or not account.rounds:
        return None
    clients = [account.standings[place].client for place in shown]
    net, cast = (
        np.array([[of[client][list(row)].sum() for client in clients] for row in rows], dtype=np.float64)
        for of in (account.layers.agreement, account.layers.votes)
    )
    rate = np.divide(net, cast, out=np.full_like(net, np.nan), where=cast > 0)
    hover = "%{y}<br>%{x}<br>net %{customdata[0]:,} of %{customdata[1]:,} votes: %{z:+.1%}"
    figure = _figure([_heat(rate, hover)], 50 + _room(len(rows), 22))
    figure.update_traces(customdata=np.stack([net, cast], axis=-1), colorbar_tickformat="+.0%")
    figure.update_traces(colorbar_title_text="net agreement")
    _rows(figure, {place: _layer_label(account.layers.names, row) for place, row in enumerate(rows)})
    _columns(figure, [label(account.standings[place], 18) for place in shown])
    return figure


def above(account: Account) -> Any:
    """The probability that the client of the row is really above that of the column."""
    shown = list(ends(len(account.standings), MOST_PAIRS))
    if account.above is None or len(shown) < 2:
        return None
    table = account.above[np.ix_(shown, shown)].copy()
    np.fill_diagonal(table, np.nan)
    figure = _figure([_heat(table, "%{y}<br>above %{x}: %{z:.0%}", middle=0.5)], 50 + _room(len(shown), 24))
    figure.update_traces(zmin=0, zmax=1, colorbar_tickformat=".0%")
    if len(shown) <= 12:
        figure.update_traces(texttemplate="%{z:.0%}")
    names = [label(account.standings[place], 18) for place in shown]
    _rows(figure, dict(enumerate(names)))
    _columns(figure, names)
    return figure


def shares(account: Account) -> Any:
    """What each client would get of a whole."""
    shown = ends(len(account.standings), MOST_BARS)
    if account.rewards is None or not shown:
        return None
    levels = _levels(shown)
    of = [account.standings[place].share or 0.0 for place in shown]
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": of,
        "y": [levels[place] for place in shown],
        "text": [f"{share:.1%}" for share in of],
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": UP.light},
        "hovertemplate": "%{y}: %{x:.2%}<extra></extra>",
    }
    figure = _figure([bars], 80 + 24 * len(levels), "share")
    figure.update_xaxes(tickformat=".0%", range=[0, max(of) * 1.12 or 1])
    _rows(figure, {levels[place]: label(account.standings[place]) for place in shown} | _gap(shown, account))
    return figure


def agreement(account: Account) -> Any:
    """How alike the methods rank the clients, if several were asked."""
    if account.comparison is None or len(account.comparison.assessments) < 2:
        return None
    table = account.comparison.agreement()
    values = np.array([list(row.values()) for row in table.values()], dtype=np.float64)
    figure = _figure([_heat(values, "%{y} and %{x}: ρ = %{z:+.2f}")], 50 + _room(len(table), 32))
    figure.update_traces(zmin=-1, zmax=1, texttemplate="%{z:+.2f}", colorbar_title_text="Spearman’s ρ")
    _rows(figure, dict(enumerate(map(escape, table))))
    _columns(figure, [escape(name) for name in table])
    return figure


FIGURES: dict[str, Callable[[Account], Any]] = {
    "ranking": ranking,
    "timeline": timeline,
    "heat-map": heat_map,
    "layers": layers,
    "above": above,
    "shares": shares,
    "agreement": agreement,
}


def label(standing: Standing, most: int = 28) -> str:
    """A client's name as plotly may show it: short, escaped, and with its own direction of writing."""
    name = standing.name if len(standing.name) <= most else standing.name[: most - 1] + "…"
    return isolated(escape(name, quote=False))


def _interval(standing: Standing) -> str:
    if standing.interval is None:
        return ""
    low, high = standing.interval
    return f" ({low:,.4g} to {high:,.4g})"


def _levels(shown: Places) -> dict[int, int]:
    """Where each of these places of the ranking is drawn; where some are left out, one line is left free."""
    return {place: at + (place != at) for at, place in enumerate(shown)}


def _gap(shown: Places, account: Account) -> dict[int, str]:
    left_out = len(account.standings) - len(shown)
    free = next((at for at, place in enumerate(shown) if place != at), None)
    return {} if free is None else {free: f"… {left_out:,} more …"}


def _row_label(account: Account, row: Places) -> str:
    if len(row) == 1:
        return label(account.standings[row[0]])
    return f"places {row[0] + 1:,}–{row[-1] + 1:,}, mean"


def _layer_label(names: Sequence[str], row: Places) -> str:
    name = names[row[0]]
    first = escape(name if len(name) <= 30 else "…" + name[-29:], quote=False)
    return first if len(row) == 1 else f"{first} + {len(row) - 1}"


def _heat(table: Floats, hover: str, middle: float = 0.0) -> dict[str, Any]:
    known = np.abs(table[np.isfinite(table)] - middle)
    most = float(np.quantile(known, 0.98)) if known.size else 1.0
    return {
        "type": "heatmap",
        "z": table.astype(np.float32),
        "zmin": middle - (most or 1.0),
        "zmax": middle + (most or 1.0),
        "colorscale": _DIVERGING,
        "hoverongaps": False,
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


def _figure(traces: list[Any], height: int, x: str = "", y: str = "") -> Any:
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


def _rows(figure: Any, names: dict[int, str]) -> None:
    """Names at the heights given, the first on top."""
    figure.update_yaxes(
        tickvals=list(names),
        ticktext=list(names.values()),
        range=[max(names) + 0.5, -0.5],
        showgrid=False,
        zeroline=False,
        ticks="",
    )


def _room(rows: int, each: int) -> int:
    """Pixels for so many rows; a scale stands beside them, which needs some itself."""
    return max(120, each * rows)


def _columns(figure: Any, names: Sequence[str]) -> None:
    """Names above the columns, aslant, and room for them."""
    places = list(range(len(names)))
    figure.update_xaxes(tickvals=places, ticktext=list(names), showgrid=False, side="top", tickangle=-45, ticks="")
    slanted = 5 * max(len(name) for name in names)
    figure.update_layout(margin={"r": 50, "t": 20, "b": 15}, height=figure.layout.height + slanted)
