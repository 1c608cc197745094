"""The health of the model in a report: the part of it that no client moves any more."""

from collections.abc import Sequence
from html import escape
from typing import Any

from fedcoast.analysis.health import LIMIT, Health
from fedcoast.methods.text import printable
from fedcoast.reports import markup
from fedcoast.reports.markup import Cell
from fedcoast.reports.overview import windows
from fedcoast.reports.phrasing import isolated, percent
from fedcoast.reports.plot_base import MOST_LAYERS
from fedcoast.reports.report_data import ReportData

_BARS = "▁▂▃▄▅▆▇█"
_HISTORY, _COLUMNS = 32, 12


def warning(report: ReportData) -> str:
    """The most important warning as plain text; empty if the model is healthy."""
    return report.health.warning(_named)


def notice(report: ReportData) -> str:
    """The same in HTML, for the top of a page."""
    text = warning(report)
    return markup.paragraph(f"<strong>Health of the model:</strong> {escape(text)}", "warning") if text else ""


def section(report: ReportData) -> str:
    """The health of the model, and a table of its layers: how much of each no client moved, now and over the rounds."""
    health = report.health
    if health.round is None:
        return ""
    text = health.line(_named).removeprefix("Health: ")
    explained = (
        "A parameter that no client moved in a round stands still: its unit never fires, its layer is frozen, or its"
        " input is always zero. Where that part grows, the model loses capacity, and scores rest on the rest of it. No"
        " test data were used."
    )
    layers_shown = _shown(health)
    table = _layers_table(health, layers_shown)
    return (
        markup.paragraph(escape(text[:1].upper() + text[1:]))
        + markup.paragraph(explained, "note")
        + table
        + markup.details("These numbers by round", _rounds_table(health, layers_shown), "health-details")
    )


def to_json(health: Health) -> dict[str, Any] | None:
    """What a report in JSON says of it: the last round in short, and the share of each layer in each round."""
    now = health.to_json()
    if now is None:
        return None
    layers = {layer: [None if of is None else of.get(layer) for of in health.shares.values()] for layer in health.now}
    return {**now, "rounds": list(health.shares), "unmoved_by_round": layers}


def _named(layer: str) -> str:
    return isolated(printable(layer))


def _shown(health: Health) -> list[str]:
    """The layers as the model has them; of very many, those of which most stands still."""
    worst = sorted(health.now, key=lambda layer: -health.now[layer])[:MOST_LAYERS]
    return [layer for layer in health.now if layer in set(worst)]


def _layers_table(health: Health, layers_shown: Sequence[str]) -> str:
    rows = []
    for layer in layers_shown:
        since, known = health.since(layer), [of[layer] for of in health.shares.values() if of and layer in of]
        rows.append(
            [
                _layer(layer),
                Cell(percent(health.now[layer], 1)),
                Cell(percent(max(known), 1)),
                Cell("–" if since is None else f"round {since}"),
                Cell(f'<span role="img" aria-label="over the rounds">{_bars(health, layer)}</span>', "", "words"),
            ]
        )
    some = (
        ""
        if len(layers_shown) == len(health.now)
        else f" (the {len(layers_shown)} worst of {len(health.now):,} layers)"
    )
    heads = ["layer", f"round {health.round}", "at most", f"above {LIMIT:.0%} since", "over the rounds, 0 to 100%"]
    return markup.table("health-table", f"Share of each layer that no client moved{some}", heads, rows)


def _rounds_table(health: Health, layers_shown: Sequence[str]) -> str:
    """Where rounds are many, means over neighbours."""
    numbers = list(health.shares)
    columns = windows(numbers, _COLUMNS)
    heads = ["layer", *(_span([numbers[place] for place in window]) for window in columns)]
    rows = [
        [_layer(layer), *(Cell(percent(_mean(health, layer, [numbers[p] for p in window]), 1)) for window in columns)]
        for layer in layers_shown
    ]
    return markup.table("health-rounds", "Share of each layer that no client moved, by round", heads, rows)


def _layer(layer: str) -> Cell:
    return Cell(f"<bdi>{escape(printable(layer))}</bdi>", "", "client")


def _span(numbers: Sequence[int]) -> str:
    return f"round {numbers[0]}" if len(numbers) == 1 else f"rounds {numbers[0]}–{numbers[-1]}"


def _mean(health: Health, layer: str, numbers: Sequence[int]) -> float | None:
    known = [of[layer] for number in numbers if (of := health.shares[number]) is not None and layer in of]
    return sum(known) / len(known) if known else None


def _bars(health: Health, layer: str) -> str:
    numbers = list(health.shares)
    means = [_mean(health, layer, [numbers[p] for p in window]) for window in windows(numbers, _HISTORY)]
    return "".join("·" if mean is None else _BARS[min(len(_BARS) - 1, int(mean * len(_BARS)))] for mean in means)
