"""The shape of the code: modules, functions and constructors stay small, and rooms do not reach into each other."""

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "paper").rglob("*.py")])
TREES = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}

MOST_LINES = 300
MOST_PARAMETERS = 8  # of a constructor, beside its configuration object
LONGEST_FUNCTION = 70

METHOD_ROOMS = ("src/fedcoast/methods/coast/", "src/fedcoast/methods/__init__.py", "src/fedcoast/methods/registry.py")
# Files of earlier versions name their method: their settings are translated before any method is made.
READERS_OF_OLD_FILES = ("src/fedcoast/storage/old_settings.py",)
# Arguments of public functions whose default is a method of the registry, by name.
NAMES_OF_METHODS = (
    "src/fedcoast/integrations/flower/interventions.py",
    "src/fedcoast/integrations/nvflare/component.py",
)


def nodes(kind):
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, kind):
                yield name, node


def test_no_module_is_longer_than_300_lines():
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {name: length for name, length in lengths.items() if length >= MOST_LINES} == {}


def test_no_function_is_longer_than_a_screen():
    long = [
        (name, node.name) for name, node in nodes(ast.FunctionDef) if node.end_lineno - node.lineno >= LONGEST_FUNCTION
    ]
    assert long == []


def test_no_constructor_has_more_than_eight_parameters():
    for name, node in nodes(ast.ClassDef):
        for part in node.body:
            if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                parameters = [*part.args.posonlyargs, *part.args.args, *part.args.kwonlyargs]
                names = {parameter.arg for parameter in parameters} - {"self", "config"}
                assert len(names) <= MOST_PARAMETERS, f"{name}: {node.name} takes {sorted(names)}"


def test_coast_is_named_only_by_itself_its_presets_and_the_registry():
    for name, node in nodes(ast.Compare):
        values = [node.left, *node.comparators]
        found = any(isinstance(value, ast.Constant) and value.value == "coast" for value in values)
        assert not found or name.startswith(METHOD_ROOMS), f"{name}:{node.lineno} compares a method's name with coast"
    for name, node in nodes(ast.Constant):
        allowed = (*METHOD_ROOMS, *READERS_OF_OLD_FILES, *NAMES_OF_METHODS, "paper/")
        assert node.value != "coast" or name.startswith(allowed), f"{name}:{node.lineno}"


def test_no_room_reads_options_out_of_the_settings_of_an_answer():
    for name, node in nodes(ast.Subscript | ast.Call):
        target = node.value if isinstance(node, ast.Subscript) else node.func
        get = isinstance(target, ast.Attribute) and target.attr == "get"
        owner = target.value if get else target
        dictionary = getattr(owner, "attr", getattr(owner, "id", "")) == "settings"
        own = name.startswith(("src/fedcoast/methods/", "src/fedcoast/storage/old_settings.py", "paper/"))
        reads = dictionary and not own and (get or isinstance(node, ast.Subscript))
        assert not reads, f"{name}:{node.lineno} reads a setting; the answer or its configuration should say it"


def test_no_parameter_hides_the_function_round():
    assert [(name, node.lineno) for name, node in nodes(ast.arg) if node.arg == "round"] == []


def test_logs_are_named_after_their_module():
    for name, node in nodes(ast.Call):
        muted = name == "src/fedcoast/testing/demands.py"  # the contract suite silences the whole package
        if ast.unparse(node.func) == "logging.getLogger" and not muted:
            wrapper = name == "src/fedcoast/integrations/named_log.py"  # is given the name by its users
            assert wrapper or ast.unparse(node.args[0]) == "__name__", f"{name}:{node.lineno}"


def test_only_writers_and_pools_catch_everything():
    """They clean up and raise again: a half-written file, or workers that would never be told to stop."""
    allowed = {
        "src/fedcoast/methods/coalition/utility.py",
        "src/fedcoast/storage/files.py",
        "src/fedcoast/storage/recorder.py",
        "paper/pools.py",
    }
    found = {
        name
        for name, node in nodes(ast.ExceptHandler)
        if node.type is None or ast.unparse(node.type) == "BaseException"
    }
    assert found <= allowed


@pytest.mark.parametrize("private", ["ray._private", "ray._raylet", "flwr.simulation.ray_transport", "_patch"])
def test_no_private_part_of_ray_is_used(private):
    assert not [
        name for name in TREES if name.startswith("src") and private in (ROOT / name).read_text(encoding="utf-8")
    ]


def test_no_class_extends_a_private_hook_of_another_room():
    """Methods extend their base classes; nothing else overrides `_step`, `_credits` or `_scores` of a method."""
    hooks = {"_step", "_values", "_credits", "_scores"}
    for name, node in nodes(ast.ClassDef):
        methods = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
        bases = {ast.unparse(base).partition("[")[0] for base in node.bases}
        extends = bases & {"Assessor", "ConfiguredAssessor", "UtilityAssessor", "GameAssessor", "CoAst"}
        wraps = name.endswith("integrations/trackers/tracker.py")  # hands everything to the assessor inside it
        is_method = name.startswith(("src/fedcoast/methods/", "paper/research_code/"))
        assert not (extends and methods & hooks) or wraps or is_method, name


def test_no_step_of_a_method_assigns_to_its_assessor():
    """A step returns its state, and the base class commits it. A counter of what a step cost is not state."""
    counters = {"evaluations"}
    for name, node in nodes(ast.FunctionDef):
        if node.name != "_step":
            continue
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                assert part.attr in counters, f"{name}:{part.lineno} assigns to {ast.unparse(part)}"


def test_the_paper_is_no_part_of_the_package():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'packages = ["src/fedcoast"]' in text
    assert "/paper" not in text.partition("[tool.hatch.build.targets.sdist]")[2].partition("[tool.pytest")[0]


def test_every_module_that_a_docstring_names_exists():
    """`room.module`, `module.function`: a renamed module must not live on in the words about it."""
    elsewhere = {"fedcoast", "inspect", "sys", "flwr", "result", "train_test_split"}  # modules, a variable, a file
    root = ROOT / "src/fedcoast"
    known = {path.stem for path in root.rglob("*") if path.suffix == ".py" or path.is_dir()} | elsewhere
    lost = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted(root.rglob("*.py"))
        for name in re.findall(r"`(?:fedcoast\.)?([a-z_]+)\.[a-z_][\w.]*`", path.read_text(encoding="utf-8"))
        if name not in known
    ]
    assert lost == []


@functools.cache
def names_in(module):
    """What a module defines or imports at its top, read without importing it; None if there is no such module."""
    base = ROOT / "src" / module.replace(".", "/")
    file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    if not file.exists():
        return None
    names = {path.stem for path in base.iterdir()} if base.is_dir() else set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


@pytest.mark.parametrize("folder", ["benchmarks", "examples", "docs", "tests"])
def test_what_scripts_import_from_the_package_exists(folder):
    """No type checker looks at these, and some run only for hours, so a renamed function would be noticed late."""
    lost = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.module}.{alias.name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "fedcoast"
        for alias in node.names
        if alias.name not in (names_in(node.module) or ())
    ]
    assert lost == []


def test_the_scripts_of_ci_name_tests_that_exist():
    named = [
        (script.name, file, test)
        for script in (ROOT / ".ci").iterdir()
        for file, test in re.findall(r"(tests/[\w/]+(?:\.py)?)(?:::(\w+))?", script.read_text(encoding="utf-8"))
    ]
    assert named
    for script, file, test in named:
        assert (ROOT / file).exists(), f"{script}: {file}"
        assert not test or f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), f"{script}: {file}::{test}"
