"""The health of the runs behind the tables: in which of them a part of the model was moved by nobody in the end."""

from pathlib import Path
from typing import Any

from fedcoast.analysis.health import LIMIT, Health
from fedcoast.storage.files import write_json
from paper.cells import Table
from paper.run_results import FACTS, Facts, Known, RunResults, Unmoved

FILE = "health.json"
FORMAT = "fedcoast-health"
VERSION = 1


def health(facts: Facts) -> Health:
    """The health of a run; its rounds are numbered from 1."""
    return Health(dict(enumerate(facts.unmoved or (), start=1)))


def note(table: Table, answers: RunResults) -> str:
    """How many of the table's runs are unhealthy, and which; empty where there are no runs."""
    runs = dict.fromkeys(run for slot in table.slots for run in table.runs(slot))
    found = {run.name: health(facts).healthy for run in runs if (facts := answers.facts(run)) is not None}
    unhealthy = [f"`{name}`" for name, healthy in found.items() if healthy is False]
    unknown = sum(healthy is None for healthy in found.values())
    if not found:
        return ""
    if unknown == len(found):
        return f"Health: unknown for all {len(found)} runs, which were answered before it was kept."
    known = len(found) - unknown
    said = f"Health: {len(unhealthy) or 'none'} of the {known} runs where it is known"
    said += f" {'is' if len(unhealthy) == 1 else 'are'} unhealthy (more than {LIMIT:.0%} of a layer was moved by nobody"
    said += " in the last round)" + (f": {', '.join(unhealthy)}" if unhealthy else "")
    return said + (f"; unknown for {unknown} more." if unknown else ".")


def write_health(folder: Path, known: Known) -> None:
    """Write down the health of every run that the tables tell of; of those where it is unknown, how many they are."""
    runs: dict[str, dict[str, Any]] = {}
    unknown = 0
    for name in sorted(known):
        facts = Facts(**known[name][FACTS])
        of = health(facts)
        if of.healthy is None or facts.unmoved is None or of.worst is None:
            unknown += 1
            continue
        runs[name] = {
            "healthy": of.healthy,
            "worst layer": of.worst,
            "share": of.now[of.worst],
            "unmoved": columns(facts.unmoved),
        }
    data = {"format": FORMAT, "version": VERSION, "limit": LIMIT, "runs": runs, "unknown": unknown}
    write_json(folder / FILE, data)


def columns(unmoved: Unmoved) -> dict[str, float | list[float | None]]:
    """By layer the share in each round, or one number where it is the same in all.

    >>> columns([{"a": 0.0, "b": 0.1}, {"a": 0.0, "b": 0.2}])
    {'a': 0.0, 'b': [0.1, 0.2]}
    """
    layers = dict.fromkeys(layer for shares in unmoved for layer in shares or ())
    table = {layer: [None if shares is None else shares[layer] for shares in unmoved] for layer in layers}
    return {layer: row[0] if row[0] is not None and len(set(row)) == 1 else row for layer, row in table.items()}


def rows(columns: dict[str, Any], rounds: int) -> Unmoved:
    """The shares by round again, of that many rounds.

    >>> rows({"a": 0.0, "b": [0.1, 0.2]}, 2)
    [{'a': 0.0, 'b': 0.1}, {'a': 0.0, 'b': 0.2}]
    """
    table = {layer: row if isinstance(row, list) else [row] * rounds for layer, row in columns.items()}
    made: list[dict[str, float] | None] = []
    for place in range(rounds):
        shares = {layer: row[place] for layer, row in table.items()}
        made.append(None if None in shares.values() else shares)
    return made
