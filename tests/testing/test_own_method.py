"""The example of an outsider's method: it runs, keeps the contract, and is what the docs print."""

import runpy
from pathlib import Path

from fedcoast.testing import CHECKS

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "own_method.py"
DOCS = ROOT / "docs" / "own-method.md"


def test_the_example_runs(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    out = capsys.readouterr().out
    assert out.startswith("SignAgreement keeps the contract of an assessor.")
    assert "sign-agreement" in out


def test_the_docs_print_the_example_as_it_is():
    assert f"```python\n{EXAMPLE.read_text(encoding='utf-8')}```\n" in DOCS.read_text(encoding="utf-8")


def test_the_docs_list_every_promise():
    text = DOCS.read_text(encoding="utf-8")
    assert [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")][1:] == list(
        CHECKS
    )
