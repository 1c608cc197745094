"""What a package index would get: built twice to the same bytes, checked, installed in empty environments and used."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email.parser import HeaderParser
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import fedcoast
from benchmarks.installs import USES, tried

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SAVES_AND_RESTORES = """
from fedcoast import METHODS
from fedcoast.testing import toy_rounds
for name in ("coast", "cgsv", "cosine", "shapfed"):  # states with arrays and without
    before, after = METHODS[name].make(), METHODS[name].make()
    for fl_round in toy_rounds():
        before.observe(fl_round)
    before.save(name)
    after.restore(name)
    assert after.assessment() == before.assessment()
"""
MARKERS = ("/work/", "/root/", "/home/")


def build(folder):
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(tmp_path_factory.mktemp("dist"))


def test_the_same_commit_gives_the_same_bytes(built, tmp_path):
    for first, second in zip(built, build(tmp_path), strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name


def test_the_wheel_holds_the_package_and_nothing_else(built):
    names = zipfile.ZipFile(built[0]).namelist()
    assert {name.split("/")[0] for name in names} == {"fedcoast", f"fedcoast-{fedcoast.__version__}.dist-info"}
    for needed in (
        "fedcoast/py.typed",
        "fedcoast/reports/assets/report.html",
        "fedcoast/simulation/datasets/heart_disease/processed.va.data",
        "fedcoast/simulation/datasets/heart_disease/README.md",
        f"fedcoast-{fedcoast.__version__}.dist-info/licenses/LICENSE",
    ):
        assert needed in names
    assert not [name for name in names if re.search(r"__pycache__|\.pyc$|test_|conftest", name)]
    assert built[0].stat().st_size < 2_000_000


def test_the_sdist_holds_the_sources_and_the_documentation(built):
    with tarfile.open(built[1]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CITATION.cff", "mkdocs.yml", "docs/index.md"} <= names
    assert {name.split("/")[0] for name in names} <= {
        *("src", "docs", "mkdocs.yml", "CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md"),
        *("pyproject.toml", "PKG-INFO", ".gitignore"),
    }
    assert built[1].stat().st_size < 5_000_000


def test_no_file_names_the_machine_it_was_built_on(built):
    wheel = zipfile.ZipFile(built[0])
    for name in wheel.namelist():
        if name.endswith((".py", ".md", "METADATA", "RECORD")):
            text = wheel.read(name).decode("utf-8")
            assert not [marker for marker in MARKERS if marker in text], name


def test_the_metadata_say_what_a_visitor_needs(built):
    wheel = zipfile.ZipFile(built[0])
    facts = HeaderParser().parsestr(wheel.read(f"fedcoast-{fedcoast.__version__}.dist-info/METADATA").decode("utf-8"))
    assert facts["Version"] == fedcoast.__version__
    assert facts["License-Expression"] == "MIT"
    assert facts["Requires-Python"] == ">=3.11"
    assert {url.partition(",")[0] for url in facts.get_all("Project-URL")} >= {"Source", "Documentation", "Changelog"}
    assert "federated" in facts["Summary"]


def test_the_readme_renders_on_an_index(built):
    run = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *built], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_citation_is_of_this_version():
    assert f"version: {fedcoast.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


def install(folder, wheel, extra=""):
    """An environment in which nothing was installed but the wheel; returns a function that runs Python there."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    command = [python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wanted]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr

    def use(*arguments):
        return subprocess.run([python, *arguments], cwd=folder, env=environment, capture_output=True, text=True)

    return use


def test_the_core_alone_runs_the_code_of_the_readme_and_explains_the_demo(built, tmp_path):
    use = install(tmp_path / "core", built[0])
    (code, printed), *_ = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, flags=re.DOTALL)
    run = use("-c", code)
    assert run.stdout == printed, run.stderr
    demo = use("-m", "fedcoast", "demo")
    assert demo.returncode != 0
    assert re.search(r"pip install 'fedcoast\[\w+\]'", demo.stderr), demo.stderr
    assert "Traceback" not in demo.stderr


@pytest.mark.parametrize("extra", USES)
def test_each_extra_brings_what_its_part_needs(built, extra):
    """In an environment with nothing in it but the wheel and the extra, with a line that uses its part."""
    with TemporaryDirectory() as folder:  # not tmp_path: pytest would keep gigabytes
        found = tried(Path(folder) / extra, built[0], extra)
    assert found["packages"] >= 3


def test_the_oldest_packages_that_are_allowed_are_enough(built, tmp_path):
    uv, python = Path(sys.executable).with_name("uv"), tmp_path / "oldest" / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*command):
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout, done.stderr

    def install(*wanted):
        run(uv, "pip", "install", "--quiet", "--only-binary", ":all:", "--python", python, *wanted)

    run(uv, "venv", "--quiet", "--python", sys.executable, tmp_path / "oldest")
    extras = [option for extra in ("cli", "report", "methods", "audit") for option in ("--extra", extra)]
    install("--resolution", "lowest-direct", "-r", ROOT / "pyproject.toml", *extras)
    install("--no-deps", built[0])
    numpy, _ = run(python, "-c", "import numpy; print(numpy.__version__)")
    assert f"numpy>={numpy.strip().removesuffix('.0')}," in PROJECT["dependencies"][0]
    (code, printed), *_ = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, flags=re.DOTALL)
    assert run(python, "-c", code) == (printed, "")
    run(python, "-c", SAVES_AND_RESTORES)
    run(python, "-m", "fedcoast", "demo", "--dataset", "heart", "--out", "heart.html")
    assert run(python, "-m", "fedcoast", "assess", "demo-heart", "--json")[1] == ""


def test_the_command_line_comes_with_its_extra(built, tmp_path):
    use = install(tmp_path / "cli", built[0], "cli")
    assert use("-m", "fedcoast", "--version").stdout == f"fedcoast {fedcoast.__version__}\n"
    refused = use("-m", "fedcoast", "assess", "nowhere")
    assert refused.returncode == 3
    assert "Traceback" not in refused.stderr


def test_with_reports_the_demo_on_hospitals_runs_without_a_checkout(built, tmp_path):
    use = install(tmp_path / "report", built[0], "report,cli")
    demo = use("-m", "fedcoast", "demo", "--dataset", "heart", "--out", "heart.html")
    assert demo.returncode == 0, demo.stderr
    assert "switzerland" in demo.stdout
    assert (tmp_path / "report" / "heart.html").stat().st_size > 100_000
