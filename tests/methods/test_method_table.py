"""The table in the docs is the one that METHODS gives."""

import ast
import sys
from functools import partial
from pathlib import Path

import pytest

from fedcoast import METHODS
from fedcoast.methods.table import method_table

DOCS = Path(__file__).parents[2] / "docs" / "methods.md"


def owner(method):
    return method.make.func if isinstance(method.make, partial) else method.make


BUILT_IN = {name: method for name, method in METHODS.items() if owner(method).__module__.startswith("fedcoast.")}


def test_the_docs_have_the_table_of_all_methods():
    begin, end = "<!-- python -m fedcoast.methods.table -->\n", "<!-- end -->\n"
    text = DOCS.read_text(encoding="utf-8")
    assert text.count(begin) == text.count(end) == 1
    shown = text.split(begin)[1].split(end)[0]
    assert shown == method_table(BUILT_IN), (
        "docs/methods.md is behind; put the output of python -m fedcoast.methods.table there"
    )


def test_every_method_has_a_row():
    rows = method_table(BUILT_IN).splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == list(BUILT_IN)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_file_opens_with_formula_paper_needs_cost_and_deviations(name):
    module = sys.modules[owner(METHODS[name]).__module__]
    for part in ("Paper:", "Needs:", "Cost:", "Deviations:"):
        assert f"\n{part}" in module.__doc__, f"{module.__name__} says nothing of {part}"


@pytest.mark.parametrize("name", METHODS)
def test_methods_never_import_each_other(name):
    methods = {owner(method).__module__ for method in METHODS.values()}
    own = owner(METHODS[name]).__module__
    tree = ast.parse(Path(sys.modules[own].__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not imported & (methods - {own})
