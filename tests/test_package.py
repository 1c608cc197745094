"""What `import fedcoast` gives, and what it costs."""

import importlib
import subprocess
import sys

import pytest

import fedcoast
from fedcoast.errors import require

PUBLIC = [
    "METHODS",
    "Assessment",
    "Assessor",
    "BFloat16",
    "BadFile",
    "BadRound",
    "BadSetting",
    "BadUpload",
    "CoAst",
    "Comparison",
    "FedcoastError",
    "LazyModels",
    "MissingExtra",
    "Observer",
    "RecordedRun",
    "Recorder",
    "Round",
    "compare",
    "load",
    "read_about",
    "replay",
]
HEAVY = [
    "torch",
    "flwr",
    "plotly",
    "sklearn",
    "pandas",
    "scipy",
    "numba",
    "rich",
    "typer",
    "starlette",
    "PIL",
    "matplotlib",
    "tensorboard",
    "mlflow",
    "wandb",
]


def test_the_public_names_are_exactly_these_and_all_are_there():
    assert fedcoast.__all__ == PUBLIC
    for name in PUBLIC:
        assert getattr(fedcoast, name) is not None


def test_nothing_else_of_ours_is_public():
    own = {
        name
        for name, value in vars(fedcoast).items()
        if not name.startswith("_") and getattr(value, "__name__", "").partition(".")[0] != "fedcoast"
    }
    assert own - set(PUBLIC) == set()


def python(code):
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return run.stdout.strip()


def test_importing_loads_nothing_heavy_and_says_nothing():
    loaded = python(f"import sys, fedcoast; print([name for name in {HEAVY} if name in sys.modules])")
    assert loaded == "[]"


def test_importing_costs_little_more_than_importing_numpy():
    code = "import time, numpy; before = time.process_time(); import fedcoast; print(time.process_time() - before)"
    assert min(float(python(code)) for _ in range(3)) < 0.3


def test_importing_starts_no_thread_and_opens_no_file():
    code = """
import os, sys, threading
opened = []
def hook(event, args):
    if event == "open" and "w" in str(args[1]):
        opened.append(args)
sys.addaudithook(hook)
import fedcoast
print(threading.active_count(), opened)
"""
    assert python(code) == "1 []"


@pytest.mark.parametrize("name", ["BadFile", "BadRound", "BadSetting", "BadUpload", "MissingExtra"])
def test_every_error_of_ours_is_a_fedcoast_error_and_a_value_error(name):
    error = getattr(fedcoast, name)
    assert issubclass(error, fedcoast.FedcoastError)
    assert issubclass(error, ValueError)


def test_a_missing_extra_says_what_to_install():
    with pytest.raises(fedcoast.MissingExtra, match=r"needs no_such_thing, .*; run: pip install 'fedcoast\[lab\]'"):
        require("no_such_thing.inner", extra="lab")
    with pytest.raises(ImportError):
        require("no_such_thing", extra="lab")
    assert require("json", extra="lab") is importlib.import_module("json")


def test_a_broken_dependency_is_not_mistaken_for_a_missing_one(tmp_path, monkeypatch):
    (tmp_path / "broken_one.py").write_text("import something_it_needs")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="something_it_needs") as caught:
        require("broken_one", extra="lab")
    assert not isinstance(caught.value, fedcoast.FedcoastError)


@pytest.mark.parametrize("module", ["federation", "simulation", "retraining"])
def test_simulating_without_torch_says_what_to_install(module):
    code = f"import sys; sys.modules['torch'] = None; import fedcoast.simulation.{module}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'fedcoast[lab]'" in run.stderr.splitlines()[-1]
