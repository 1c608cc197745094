"""The tables in results/ and the pages about them: nothing in a page that does not follow from the records."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paper.__main__ import app
from paper.paper_tables import TABLES
from paper.reproduction import Places, missing, write

HERE = Path(__file__).parents[2]
PAGES = ("README.md", "docs/replication.md", "docs/default.md")
PAPER = tuple(name for name in TABLES if name.startswith("table") or name == "beyond")


def reproduce_from_records(names, folder):
    """Tables and pages, made from the committed records alone."""
    for file in (*(f"results/{name}.json" for name in TABLES), *PAGES):
        (folder / file).parent.mkdir(exist_ok=True)
        shutil.copy(HERE / file, folder / file)
    places = Places(folder / "no runs", folder / "results", tuple(folder / page for page in PAGES))
    records = {name: json.loads((HERE / "results" / f"{name}.json").read_text(encoding="utf-8")) for name in names}
    tables = [TABLES[name]("quick", tuple(record["seeds"])) for name, record in records.items()]
    assert missing(tables, places, only_recorded=True) == []
    assert write(tables, places, lambda table: records[table.name]["command"]).keys() == set(names)


def assert_as_committed(names, folder):
    reproduce_from_records(names, folder)
    for file in (*(f"results/{name}.{kind}" for name in names for kind in ("json", "md")), *PAGES):
        assert (folder / file).read_text(encoding="utf-8") == (HERE / file).read_text(encoding="utf-8"), file


def test_the_papers_tables_and_their_pages_follow_from_the_records(tmp_path):
    assert_as_committed(PAPER, tmp_path)


def test_all_tables_tell_of_the_same_training_of_a_run():
    accuracies = {}
    for name in TABLES:
        for run, entry in json.loads((HERE / "results" / f"{name}.json").read_text(encoding="utf-8"))["runs"].items():
            assert accuracies.setdefault(run, entry["test accuracy"]) == entry["test accuracy"], (name, run)


@pytest.mark.slow
def test_the_command_makes_a_table_from_its_record_and_says_what_it_cannot_draw(tmp_path):
    shutil.copy(HERE / "results" / "table1.json", tmp_path)
    slots = json.loads((tmp_path / "table1.json").read_text(encoding="utf-8"))["slots"]
    filled = sum(any(value is not None for value in slot["values"].values()) for slot in slots)
    result = CliRunner().invoke(app, ["table1", "--only-recorded", "--results", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert f"{filled} of {len(slots)} cells filled" in result.output
    assert "not drawn: windows-1.svg, scores-1.svg" in result.output
    committed = (HERE / "results" / "table1.md").read_text(encoding="utf-8")
    expected = committed.replace("--seeds 3\n", "--seeds 3 --only-recorded\n")
    assert (tmp_path / "table1.md").read_text(encoding="utf-8") == expected
    assert [file.name for file in (tmp_path / "images").iterdir()] == ["methods.svg"]


def test_the_judgement_of_the_default_follows_from_its_record(tmp_path):
    assert_as_committed(("holdout",), tmp_path)
