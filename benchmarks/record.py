"""Where a measurement was made, and where it is kept."""

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"


def circumstances() -> dict[str, Any]:
    """Machine, versions and commit."""
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for package in ("fedcoast", "numpy", "numba", "torch", "flwr", "ray"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": versions,
        "commit": _commit(),
    }


def keep(name: str, command: str, measured: dict[str, Any]) -> None:
    """Write `results/NAME.json`: the figures, the command and the circumstances."""
    facts = {"command": command, **circumstances(), **measured}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=RESULTS.parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"
