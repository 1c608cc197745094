"""What a seed does not fix: runs of a table that were trained twice, with the same seeds, on different processors.

    python -m benchmarks.processors COMMIT TABLE COLUMNS

compares the table's record of that commit with the one in `results/`, in the columns whose name begins so.
"""

import json
import subprocess
import sys
from statistics import fmean
from typing import Any

from benchmarks.record import RESULTS, keep

Record = dict[str, Any]


def run(commit: str, table: str, columns: str) -> None:
    show = ["git", "show", f"{commit}:results/{table}.json"]
    old: Record = json.loads(subprocess.run(show, check=True, capture_output=True, cwd=RESULTS.parent).stdout)
    new: Record = json.loads((RESULTS / f"{table}.json").read_text(encoding="utf-8"))
    measured = {"runs": accuracies(old, new), "ρ": gaps(old, new, columns)}
    for row, gap in measured["ρ"].items():
        print(f"{row}: ρ differs by {gap['mean']:.2f} on average, {gap['most']:.2f} at most; {gap['numbers']} numbers")
    keep("processors", f'python -m benchmarks.processors {commit} {table} "{columns}"', measured)


def accuracies(old: Record, new: Record) -> Record:
    """Runs of both records whose trainings were not the same: how far apart test accuracy is after a round."""
    both = sorted(old["runs"].keys() & new["runs"].keys())
    curves = {name: [record["runs"][name]["test accuracy"] for record in (old, new)] for name in both}
    apart = {name: [abs(a - b) for a, b in zip(*pair, strict=True)] for name, pair in curves.items()}
    return {name: {"mean": fmean(by), "most": max(by), "last": by[-1]} for name, by in apart.items() if max(by) > 0}


def gaps(old: Record, new: Record, columns: str) -> Record:
    """How far a row's ρ moved from one record to the other, over the columns and the seeds that both have."""
    before = {(cell["row"], cell["column"]): cell["values"] for cell in old["slots"]}
    moved: dict[str, list[float]] = {}
    for cell in new["slots"]:
        if cell["column"].startswith(columns):
            values = before[cell["row"], cell["column"]]
            row = cell["row"] + (", evened" if cell["column"].endswith("evened") else "")
            moved.setdefault(row, []).extend(abs(values[seed] - cell["values"][seed]) for seed in sorted(values))
    return {row: {"mean": fmean(by), "most": max(by), "numbers": len(by)} for row, by in moved.items()}


if __name__ == "__main__":
    run(*sys.argv[1:])
