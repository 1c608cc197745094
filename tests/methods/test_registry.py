"""Other packages can add methods, and everything that lists methods sees them."""

import importlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

from fedcoast import BadSetting, Recorder
from fedcoast.cli.comparing import method_names
from fedcoast.methods import METHODS, Assessor, Method, MethodConfig, register, register_method
from fedcoast.methods.comparison import compare
from fedcoast.methods.options import option
from fedcoast.methods.registry import GROUP, MethodRegistry, config_of
from fedcoast.methods.remaking import remade
from fedcoast.methods.similarity.norm import Norm
from fedcoast.testing import check_assessor
from federations import federation

STRANGER = '''
"""A package of somebody else."""

from fedcoast.methods import Norm


class Mine(Norm):
    """Measures the length of an update, once more.

    More words.
    """

    method = "mine"
'''


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a distribution that has entry points, as pip would lay it out."""

    def install(name, module, entry_points):
        (tmp_path / f"{name}.py").write_text(module)
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = "".join(f"{key} = {value}\n" for key, value in entry_points.items())
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}")

    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield install
    for name in ("strangers_package", "broken_package"):
        sys.modules.pop(name, None)


@pytest.fixture
def registered():
    """Forget what a test registers."""
    before = set(METHODS)
    yield
    for name in set(METHODS) - before:
        METHODS.remove(name)


def test_an_installed_package_adds_a_method(installed):
    installed("strangers_package", STRANGER, {"mine": "strangers_package:Mine"})
    registry = MethodRegistry()
    assert registry["mine"].measures == "Measures the length of an update, once more"
    assert registry["mine"].make().method == "mine"
    check_assessor(registry["mine"].make, needs=registry["mine"].needs)


def test_the_command_line_of_a_fresh_process_knows_an_installed_method(installed, tmp_path):
    installed("strangers_package", STRANGER, {"mine": "strangers_package:Mine"})
    with Recorder(tmp_path / "run") as recorder:
        for fl_round in federation(rounds=3):
            recorder.observe(fl_round)
    paths = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "fedcoast", "compare", str(tmp_path / "run"), "--methods", "mine,norm", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}, check=True)
    answers = {name: of["assessment"] for name, of in json.loads(done.stdout)["methods"].items()}
    assert answers["mine"]["method"] == "mine"
    assert answers["mine"]["scores"] == answers["norm"]["scores"]


def test_a_package_that_cannot_be_loaded_is_left_out_with_a_warning(installed, caplog):
    installed("broken_package", "raise RuntimeError('boo')", {"bad": "broken_package:Mine"})
    installed("strangers_package", STRANGER, {"mine": "strangers_package:Mine", "none": "strangers_package:__doc__"})
    registry = MethodRegistry()
    assert list(registry) == ["mine"]
    assert "Method 'bad' of broken_package:Mine could not be loaded: RuntimeError('boo')" in caplog.text
    assert "names an assessor class or a Method" in caplog.text


def test_a_registered_method_is_seen_by_compare_the_command_line_and_the_audit(registered):
    @register("my-norm", "the length of an update")
    class MyNorm(Norm):
        method = "my-norm"

    assert method_names("all")[-1] == "my-norm"
    answers = compare(federation(rounds=3), {"my-norm": METHODS["my-norm"].make()})
    assert answers.assessments["my-norm"].scores
    assert isinstance(remade("my-norm", MyNorm().assessment().settings), MyNorm)


def test_a_configuration_that_is_registered_gives_settings_and_glossary(registered):
    @dataclass(frozen=True, kw_only=True)
    class Options(MethodConfig):
        power: int = option(2, "Exponent of the norm.")

        @property
        def zero_is_idle(self):
            return True

    register_method("powered", Method(Norm, "a power of the length", config=Options))
    assert config_of("powered", {"power": 3, "bad_uploads": "raise"}) == Options(power=3)
    assert METHODS["powered"].config.glossary() == {"power": "Exponent of the norm."}


def test_a_name_is_registered_once():
    with pytest.raises(BadSetting, match="there is a method named 'coast' already"):
        register_method("coast", METHODS["coast"])
    with pytest.raises(BadSetting, match="registered under a name"):
        register_method("", METHODS["coast"])


def test_every_built_in_method_is_registered_under_its_own_assessor():
    assert len(METHODS) >= 28
    assert all(isinstance(method, Method) for method in METHODS.values())
    assert issubclass(METHODS["coast"].make, Assessor)
