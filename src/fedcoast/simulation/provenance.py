"""Provenance of a measurement: machine, versions, commit, time."""

import functools
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("fedcoast", "numpy", "numba", "torch", "flwr", "ray")


def provenance() -> dict[str, Any]:
    """The current provenance, in JSON types."""
    return {"when": datetime.now(UTC).isoformat(timespec="seconds"), **_machine_facts()}


@functools.cache
def _machine_facts() -> dict[str, Any]:
    return {
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": {package: found for package in PACKAGES if (found := _version(package)) is not None},
        "commit": _commit(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _commit() -> str:
    """The commit of the checkout that contains this file; "unknown" for an installed copy."""
    try:
        if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
            return "unknown"
        return _git("describe", "--always", "--dirty") or "unknown"
    except OSError:  # no git here
        return "unknown"


def _git(*arguments: str) -> str | None:
    here = Path(__file__).parent
    done = subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None
