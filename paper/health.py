"""Health of the runs behind the tables: in which runs had part of the model stopped moving at the end?"""

from pathlib import Path
from typing import Any

from fedcoast.analysis.health import LIMIT, Health
from fedcoast.storage.files import write_json
from paper.cells import Table
from paper.run_results import RUN_KEY, Facts, Known, RunResults, Unmoved

FILE = "health.json"
FORMAT = "fedcoast-health"
VERSION = 1


def health(facts: Facts) -> Health:
    """The health of a run; its rounds are numbered from 1."""
    return Health(dict(enumerate(facts.unmoved or (), start=1)))


def note(table: Table, run_results: RunResults) -> str:
    """How many of the table's runs are unhealthy, and which; empty where there are no runs."""
    runs = dict.fromkeys(run for cell in table.cells for run in table.runs(cell))
    found = {run.name: health(facts).healthy for run in runs if (facts := run_results.facts(run)) is not None}
    unhealthy = [f"`{name}`" for name, healthy in found.items() if healthy is False]
    unknown = sum(healthy is None for healthy in found.values())
    if not found:
        return ""
    if unknown == len(found):
        return f"Health: unknown for all {len(found)} runs, which were assessed before health was recorded."
    known = len(found) - unknown
    text = f"Health: {len(unhealthy) or 'none'} of the {known} runs where it is known"
    text += f" {'is' if len(unhealthy) == 1 else 'are'} unhealthy (more than {LIMIT:.0%} of a layer was not moved"
    text += " by any client in the last round)" + (f": {', '.join(unhealthy)}" if unhealthy else "")
    return text + (f"; unknown for {unknown} more." if unknown else ".")


def write_health(folder: Path, known: Known) -> None:
    """Write the health of every run in the tables, and count the runs where it is unknown."""
    runs: dict[str, dict[str, Any]] = {}
    unknown = 0
    for name in sorted(known):
        facts = Facts.from_json(known[name][RUN_KEY])
        state = health(facts)
        if state.healthy is None or facts.unmoved is None or state.worst is None:
            unknown += 1
            continue
        runs[name] = {
            "healthy": state.healthy,
            "worst layer": state.worst,
            "share": state.now[state.worst],
            "unmoved": columns(facts.unmoved),
        }
    data = {"format": FORMAT, "version": VERSION, "limit": LIMIT, "runs": runs, "unknown": unknown}
    write_json(folder / FILE, data)


def columns(unmoved: Unmoved) -> dict[str, float | list[float | None]]:
    """The share of each layer in each round, or one number where it is the same in all rounds.

    >>> columns([{"a": 0.0, "b": 0.1}, {"a": 0.0, "b": 0.2}])
    {'a': 0.0, 'b': [0.1, 0.2]}
    """
    layers = dict.fromkeys(layer for shares in unmoved for layer in shares or ())
    table = {layer: [None if shares is None else shares[layer] for shares in unmoved] for layer in layers}
    return {layer: row[0] if row[0] is not None and len(set(row)) == 1 else row for layer, row in table.items()}


def rows(columns: dict[str, Any], rounds: int) -> Unmoved:
    """The inverse of `columns`: the shares of each round, for this many rounds.

    >>> rows({"a": 0.0, "b": [0.1, 0.2]}, 2)
    [{'a': 0.0, 'b': 0.1}, {'a': 0.0, 'b': 0.2}]
    """
    table = {layer: row if isinstance(row, list) else [row] * rounds for layer, row in columns.items()}
    by_round: list[dict[str, float] | None] = []
    for place in range(rounds):
        shares = {layer: row[place] for layer, row in table.items()}
        by_round.append(None if None in shares.values() else shares)
    return by_round
