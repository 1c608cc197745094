"""Answers as text that is safe to show: one line of a terminal, one cell of a spreadsheet."""

import csv
import io
from collections.abc import Iterable
from typing import Any

from fedcoast.errors import Client
from fedcoast.errors import printable as printable

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "'")


def as_text(table: object) -> str:
    """A table as rich prints it, a hundred columns wide and without colours; without rich, plain columns."""
    try:
        from rich.console import Console
    except ModuleNotFoundError:  # an extra: see pyproject.toml
        return plain_columns(table)

    out = io.StringIO()
    # In a notebook rich would display the table and write nothing: the text is wanted, wherever this runs.
    Console(file=out, width=100, color_system=None, force_terminal=False, force_jupyter=False).print(table)
    return out.getvalue().rstrip("\n")


def number(value: float | None) -> str:
    """As many digits as a reader can use.

    >>> number(12345), number(118.41), number(-3.14159), number(0.012345), number(None)
    ('12,345', '118', '−3.14', '0.0123', '–')
    """
    if value is None:
        return "–"
    size = abs(value)
    whole = isinstance(value, int) or size >= 100 or value == 0
    text = (
        f"{value:,.0f}" if whole else f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.3g}"
    )
    return text.replace("-", "−")


def plain_columns(table: object) -> str:
    """The CSV of an answer as aligned columns; of one that has no CSV, where to get its table.

    >>> class Answer:
    ...     def to_csv(self):
    ...         return "client,score\\noslo,12\\n"
    >>> print(plain_columns(Answer()))
    client  score
    oslo    12
    """
    to_csv = getattr(table, "to_csv", None)
    if not callable(to_csv):
        return f"<{type(table).__name__}: run pip install 'fedcoast[cli]' to print it as a table>"
    rows = list(csv.reader(io.StringIO(to_csv())))
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(printable(line.rstrip()) for line in lines)


def csv_name(client: Client) -> str:
    """A client's name as a cell: a spreadsheet runs what starts like a formula, and an apostrophe before keeps it text.

    >>> csv_name("=1+1"), csv_name("oslo"), csv_name(-7)
    ("'=1+1", 'oslo', "'-7")
    """
    return "'" + str(client) if str(client).startswith(_FORMULA_STARTS) else str(client)


def csv_row(cells: Iterable[Any]) -> str:
    """One line of CSV, whatever is in its cells.

    >>> csv_row(["a,b", "c\\rd", 1])
    '"a,b","c\\rd",1\\n'
    """
    out = io.StringIO()
    csv.writer(out).writerow(cells)  # its own line end, \r\n, makes it quote both characters in a name
    return out.getvalue().removesuffix("\r\n") + "\n"
