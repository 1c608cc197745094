"""A comparison as tables for a terminal: scores and ranks, agreement of the methods, cost."""

import math

from rich.box import HEAVY_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fedcoast.methods.comparison import Comparison
from fedcoast.methods.text import printable


def tables(comparison: Comparison, width: int) -> list[RenderableType]:
    """For a terminal of so many characters."""
    if not comparison.assessments:
        return []
    return [*_scores(comparison, width), *_agreement(comparison, width), *_costs(comparison, width)]


def _scores(comparison: Comparison, width: int) -> list[RenderableType]:
    """The rank of each client in brackets; the shorter list runs across."""
    found = comparison.spearman()
    clients = [printable(client) for client in comparison.clients]
    ranks = {name: assessment.ranks for name, assessment in comparison.assessments.items()}
    rows = {
        name: [f"{assessment.scores[client]:.4g} ({ranks[name][client]})" for client in comparison.clients]
        + ([_short(found[name])] if found else [])
        for name, assessment in comparison.assessments.items()
    }
    heads = clients + (["true order"] if found else [])
    caption = "ranks in brackets" + ("; true order: Spearman's ρ with it" if found else "")
    if len(heads) <= len(rows):
        return _grid("scores", heads, list(rows.items()), width, caption)
    turned = [(head, [row[place] for row in rows.values()]) for place, head in enumerate(heads)]
    return _grid("scores", list(rows), turned, width, caption)


def _agreement(comparison: Comparison, width: int) -> list[RenderableType]:
    above, below = comparison.agreement("spearman"), comparison.agreement("kendall")
    rows = []
    for row, one in enumerate(above):
        cells = [
            "·" if row == column else _short(above[one][other] if row < column else below[one][other])
            for column, other in enumerate(above)
        ]
        rows.append((f"{row + 1:>2} {one}", cells))
    caption = "above the diagonal Spearman's ρ, below it Kendall's τ; – beside a constant"
    heads = [str(place + 1) for place in range(len(rows))]
    return _grid("agreement of the methods", heads, rows, width, caption, lines=False)


def _costs(comparison: Comparison, width: int) -> list[RenderableType]:
    rows = []
    for name in comparison.assessments:
        evaluations = f"{comparison.evaluations[name]:,}" if name in comparison.evaluations else "–"
        memory = [f"{comparison.peak_bytes[name] / 1e6:,.1f} MB"] if name in comparison.peak_bytes else []
        rows.append((name, [f"{comparison.seconds.get(name, math.nan):.3f}", evaluations, *memory]))
    heads = ["seconds", "models evaluated"] + (["peak memory"] if comparison.peak_bytes else [])
    shared = "a model that several methods need is evaluated once: the first method has its seconds"
    return _grid("cost", heads, rows, width, shared if comparison.evaluations else "")


def _grid(
    title: str, heads: list[str], rows: list[tuple[str, list[str]]], width: int, caption: str, lines: bool = True
) -> list[RenderableType]:
    """One table, or several below each other where its columns do not fit; each begins with the names of the rows."""
    around = 3 if lines else 1
    names = max(len(name) for name, _ in rows) + around + 1
    blocks: list[list[int]] = [[]]
    room = width - names
    for place, head in enumerate(heads):
        needs = max(len(head), *(len(cells[place]) for _, cells in rows)) + around
        if blocks[-1] and needs > room:
            blocks.append([])
            room = width - names
        blocks[-1].append(place)
        room -= needs
    parts: list[RenderableType] = [Text(title, style="bold")]
    for block in blocks:
        table = Table(box=HEAVY_HEAD if lines else None, padding=(0, 1) if lines else (0, 1, 0, 0))
        table.add_column("", no_wrap=True)
        for place in block:
            table.add_column(Text(heads[place]), justify="right", no_wrap=True)
        for name, cells in rows:
            table.add_row(Text(name), *(Text(cells[place]) for place in block))
        parts.append(table)
    return [*parts, Text(f"{caption}\n" if caption else "", style="dim")]


def _short(value: float) -> str:
    """Two decimals in four characters.

    >>> _short(0.9), _short(-0.25), _short(1.0), _short(float("nan"))
    ('+.90', '-.25', '+1.0', '–')
    """
    if math.isnan(value):
        return "–"
    text = f"{value:+.2f}"
    return text[:4] if text[1] == "1" else text[0] + text[2:]
