"""How an answer was made: the settings of the method, the metadata of the run, the versions."""

from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fedcoast.methods import METHODS
from fedcoast.reports import markup
from fedcoast.reports.markup import Cell
from fedcoast.reports.report_data import ReportData


def facts(report: ReportData) -> str:
    """Three tables, in HTML."""
    method = {"method": report.method, **report.settings}
    drawn = {"draws of luck": report.options["draws"]} if "draws" in report.options else {}
    made = {**report.versions, "on": report.made, **drawn} | ({"chain head": report.head} if report.head else {})
    config = METHODS[report.method].config if report.method in METHODS else None
    notes = {"method": report.measures, **(config.glossary() if config else {})}
    parts = [("Method", method, notes), ("Run", flat(report.facts), {}), ("Made with", made, {})]
    return '<div class="columns">' + "".join(_table(*part) for part in parts if part[1]) + "</div>"


def _table(title: str, rows_of: Mapping[str, Any], notes: Mapping[str, str]) -> str:
    rows = [
        [Cell(escape(str(name).replace("_", " ")), "", "client"), Cell(escape(in_words(value)), "", "words")]
        + ([Cell(escape(notes.get(name, "")), "", "words note")] if notes else [])
        for name, value in rows_of.items()
    ]
    heads = ["what", "value", *(["meaning"] if notes else [])]
    return markup.table(f"facts-{title.lower().replace(' ', '-')}", title, heads, rows)


def in_words(value: object) -> str:
    """A value of a setting in words."""
    if value == [None, None] or value is None:
        return "all" if value else "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(in_words, value)) if isinstance(value, list) else str(value)


def flat(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts within facts, by their own name where it is the only one; the true order has its column elsewhere.

    >>> flat({"experiment": {"rounds": 40, "name": "x", "model": {"name": "mlp"}}, "planted": []})
    {'rounds': 40, 'experiment name': 'x', 'experiment model name': 'mlp'}
    """
    found = list(_leaves(facts, ()))
    last = Counter(names[-1] for names, _ in found)
    return {names[-1] if last[names[-1]] == 1 else " ".join(names): value for names, value in found}


def _leaves(facts: Mapping[str, Any], within: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*within, name))
        elif name != "planted":
            yield (*within, name), value
