"""Every extra of the wheel in an empty environment: that it installs, that its part works, its size and its seconds.

    python -m benchmarks.installs [--only EXTRA ...]

Writes results/installs.json and the table of docs/supported-versions.md. The wheel is built from this checkout, the
versions are those of constraints.txt. Needs uv (which Flower brings), a package index, and 6 GB of disk for a moment.
Files are downloaded before the seconds are taken, so that they do not depend on the network. Where pip is told of a
folder with wheels (PIP_FIND_LINKS), uv looks there too: for PyTorch's build without CUDA, 4 GB smaller on Linux.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from benchmarks.record import RESULTS, keep
from paper.pages import refresh

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "supported-versions.md"
EMPTY = "import fedcoast; answer = fedcoast.CoAst().assessment()"
TRACKERS = "from fedcoast.integrations.trackers import {0}; import {1}"
# What the extra is for, in a line of Python; "core" is the package alone.
USES = {
    "core": f"{EMPTY}; print(answer)",
    "cli": "import sys; sys.argv[1:] = ['--version']; from fedcoast.__main__ import main; main()",
    "fast": f"import numba; {EMPTY}",
    "lab": "from fedcoast.simulation.federation import Federation",
    "methods": "import scipy, fedcoast; fedcoast.METHODS['least-core'].make",
    "flower": "from fedcoast import CoAst; from fedcoast.integrations.flower import watch, Observed",
    "nvflare": "from fedcoast.integrations.nvflare import ContributionObserver; ContributionObserver()",
    "plots": f"{EMPTY}; answer.to_frame(); import matplotlib; matplotlib.use('Agg'); answer.plot('timeline')",
    "cluster": "import fedcoast.integrations.ray, ray",
    "tensorboard": TRACKERS.format("TensorBoard", "tensorboard"),
    "mlflow": TRACKERS.format("MLflow", "mlflow"),
    "wandb": TRACKERS.format("WandB", "wandb"),
    "report": "import plotly, starlette, uvicorn, fedcoast.reports.page, fedcoast.reports.live",
    "audit": "import pathlib; from fedcoast.audit.signing import new_key; new_key(pathlib.Path('key'))",
    "all": "import sys; sys.argv[1:] = ['demo', '--dataset', 'heart', '--out', 'heart.html'];"
    " from fedcoast.__main__ import main; main()",
}


def run(only: list[str]) -> None:
    file = RESULTS / "installs.json"
    known = json.loads(file.read_text("utf-8"))["extras"] if file.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        wheel = built(Path(folder))
        for extra in only or USES:
            tried(Path(folder) / "before" / extra, wheel, extra)  # downloads what uv does not have yet
            known[extra] = {"wheel_kb": wheel.stat().st_size // 1000, **tried(Path(folder) / extra, wheel, extra)}
            print(extra, known[extra], flush=True)
    extras = {extra: known[extra] for extra in USES if extra in known}
    keep("installs", "python -m benchmarks.installs", {"extras": extras})
    refresh(PAGE, {"installs": table(extras)})


def built(folder: Path) -> Path:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def tried(place: Path, wheel: Path, extra: str) -> dict[str, float | int]:
    """Install into an environment with nothing in it and run the extra's line there."""
    uv = Path(sys.executable).with_name("uv")
    python = place / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment.setdefault("UV_FIND_LINKS", ",".join(environment.get("PIP_FIND_LINKS", "").split()))
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, place], check=True, env=environment)
    wanted = str(wheel) if extra == "core" else f"{wheel}[{extra}]"
    command = [uv, "pip", "install", "--quiet", "--python", python, "--constraint", ROOT / "constraints.txt", wanted]
    began = time.perf_counter()
    subprocess.run(command, check=True, env=environment)
    installed = time.perf_counter()
    subprocess.run([python, "-W", "ignore", "-c", USES[extra]], check=True, env=environment, cwd=place)
    used = time.perf_counter()
    packages = next(place.glob("lib/python*/site-packages"))
    size = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file() and path.suffix != ".pyc")
    count = len([*packages.glob("*.dist-info")])
    seconds = {"install_seconds": round(installed - began, 1), "first_use_seconds": round(used - installed, 1)}
    return {"packages": count, "megabytes": round(size / 1e6), **seconds}


def table(extras: dict[str, dict[str, float | int]]) -> str:
    lines = ["| `pip install fedcoast[…]` | packages | MB on disk | seconds to install | seconds of first use |"]
    lines.append("|---|---|---|---|---|")
    for extra, found in extras.items():
        seconds = f"{found['install_seconds']:.1f} | {found['first_use_seconds']:.1f}"
        lines.append(f"| {extra} | {found['packages']} | {found['megabytes']:,} | {seconds} |")
    return "\n".join(lines) + "\n"


def missing() -> set[str]:
    """Extras of the package that are neither tried here nor for its developers only."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return {*project["optional-dependencies"]} - {*USES} - {"dev", "docs"}


if __name__ == "__main__":
    run([name for name in sys.argv[1:] if name != "--only"])
