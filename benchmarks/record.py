"""Where measurements are kept."""

import json
from pathlib import Path
from typing import Any

from fedcoast.simulation.provenance import provenance

RESULTS = Path(__file__).parents[1] / "results"


def keep(name: str, command: str, measured: dict[str, Any]) -> None:
    """Write `results/NAME.json`: the figures, the command and the circumstances."""
    facts = {"command": command, **provenance(), **measured}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
