"""Small pieces of HTML; everything from outside is escaped."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from fedcoast.reports.phrasing import Passage
from fedcoast.reports.report_data import ClientSummary


@dataclass(frozen=True)
class Cell:
    """A cell of a table: what it shows (HTML), what it is sorted by, and the class it is styled by."""

    html: str
    value: float | str = ""
    kind: str = ""


def named(summary: ClientSummary) -> str:
    """A client's name as text with its own direction of writing, whatever is in it; a short one is never broken.

    >>> named(ClientSummary("<b>", 1, 0, None, 0)), named(ClientSummary("St. Bartholomew’s", 1, 0, None, 0))
    ('<bdi class="short">&lt;b&gt;</bdi>', '<bdi title="St. Bartholomew’s">St. Bartholomew’s</bdi>')
    """
    name = escape(summary.name)
    kind = styled("short") if len(summary.name) <= 16 else f' title="{name}"'
    return f"<bdi{kind}>{name}</bdi>"


def passage(parts: Passage) -> str:
    return "".join(escape(part) if isinstance(part, str) else named(part) for part in parts)


def paragraph(html: str, kind: str = "") -> str:
    return f"<p{styled(kind)}>{html}</p>"


def styled(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def table(
    name: str,
    caption: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    sortable: bool = False,
    places: Sequence[int] = (),
) -> str:
    """A real table: caption, column heads that sort, the client of a row as its head.

    `places` are those of its rows in the ranking, if a reader may choose rows; a cell of kind "client" heads its row.
    """
    columns = "".join(_head(name, place, head, sortable) for place, head in enumerate(heads))
    named = heads if places else ()  # where rows become cards on a phone, each number says what it is
    body = "".join(
        _row(cells, places[row] if places else None, _skips(places, row), named) for row, cells in enumerate(rows)
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table id="{name}"{styled("sortable" if sortable else "")}><caption>{escape(caption)}</caption>'
        f"<thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _head(name: str, place: int, head: str, sortable: bool) -> str:
    text = escape(head)
    if sortable:
        text = f'<button type="button" id="{name}-sort-{place}" data-column="{place}">{text}</button>'
    return f'<th scope="col">{text}</th>'


def _skips(places: Sequence[int], row: int) -> bool:
    return bool(places) and row > 0 and places[row] != places[row - 1] + 1


def _row(cells: Sequence[Cell], place: int | None, after_gap: bool, heads: Sequence[str]) -> str:
    marked = "" if place is None else f' data-place="{place}"'
    shown = "".join(_cell(cell, heads[at] if heads else "") for at, cell in enumerate(cells))
    return f"<tr{styled('after-gap' if after_gap else '')}{marked}>{shown}</tr>"


def _cell(cell: Cell, head: str) -> str:
    tag, scope = ("th", ' scope="row"') if cell.kind == "client" else ("td", "")
    value = f' data-value="{escape(str(cell.value))}"' if cell.value != "" else ""
    label = f' data-head="{escape(head)}"' if head and tag == "td" else ""
    return f"<{tag}{scope}{styled(cell.kind)}{value}{label}>{cell.html}</{tag}>"


def details(summary: str, html: str, name: str) -> str:
    return f'<details id="{name}"><summary>{escape(summary)}</summary>{html}</details>'


def figure(name: str, words: str, height: int, caption: str) -> str:
    """Room for a figure of that height, with a description for readers who cannot see it."""
    return (
        f'<figure class="plot"><figcaption>{escape(caption)}</figcaption><div id="figure-{name}" data-figure="{name}"'
        f' role="img" aria-label="{escape(words)}" style="min-height:{height}px"></div></figure>'
    )


def inert(data: object) -> str:
    """JSON for a script element: nothing in it can end the element or the line.

    >>> inert("</script>\u2028")
    '"\\\\u003c/script\\\\u003e\\\\u2028"'
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
