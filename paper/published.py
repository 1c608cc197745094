"""The numbers that the paper prints (published.json); a test checks them against its averages and text."""

import functools
import json
from importlib.resources import files
from typing import Any


@functools.cache
def paper() -> dict[str, Any]:
    """All printed numbers."""
    data: dict[str, Any] = json.loads(files(__package__).joinpath("published.json").read_text(encoding="utf-8"))
    return data


def published(table: str, *path: str | int) -> float:
    """One printed number: keys are settings, methods or rows, then the position in the list.

    >>> published("table1", "resolution", "Ours", 2)
    0.2
    """
    found = paper()[table]["values"]
    for step in path:
        found = found[step]
    return float(found)
