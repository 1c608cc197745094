"""The core needs NumPy and safetensors; the command line is an extra that explains itself when it is absent."""

import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
HIDDEN = ("typer", "rich", "click", "numba", "scipy", "torch", "flwr", "ray", "plotly", "starlette", "nvflare")
WITHOUT = f"import sys\nfor name in {HIDDEN!r}:\n    sys.modules[name] = None\n"

ASSESS = """
import numpy as np
from fedcoast import CoAst, Recorder, Round, replay
coast, model = CoAst(keep=0.5, horizon=1), {"w": np.zeros(4)}
with Recorder(sys.argv[1]) as recorder:
    for number in range(1, 4):
        local = {"helps": {"w": model["w"] + [4, 3, 2, 1]}, "hurts": {"w": model["w"] - [1, 1, 0, 0]}}
        end = {"w": sum(one["w"] for one in local.values()) / 2}
        for observer in (coast, recorder):
            observer.observe(Round(number, start=model, local=local, end=end))
        model = end
assert len(list(replay(sys.argv[1]))) == 3
print(coast.assessment())
"""


def run(code, *arguments):
    command = [sys.executable, "-c", WITHOUT + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_core_depends_on_two_packages():
    names = {requirement.partition(">")[0] for requirement in PROJECT["dependencies"]}
    assert names == {"numpy", "safetensors"}


def test_all_brings_the_command_line():
    assert "cli" in PROJECT["optional-dependencies"]["all"][0]


def test_assessing_recording_and_printing_need_no_extra(tmp_path):
    done = run(ASSESS, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    header, first, second = done.stdout.splitlines()[:3]
    assert header.split()[:2] == ["client", "type"]
    assert {first.split()[0], second.split()[0]} == {"helps", "hurts"}


def test_the_command_line_says_what_to_install():
    done = run("sys.argv = ['fedcoast', '--help']\nfrom fedcoast.__main__ import main\nmain()")
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr == "fedcoast: this needs typer, which is not installed; run: pip install 'fedcoast[cli]'\n"


def test_python_runs_the_package_as_the_command_line():
    done = subprocess.run([sys.executable, "-m", "fedcoast", "--version"], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("fedcoast "), done.stderr
