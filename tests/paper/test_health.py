import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from fedcoast.simulation.experiment import Experiment
from health import of_before
from little_tables import SMALL, little_table
from paper.cell_results import fill
from paper.cells import Cell, Table
from paper.health import columns, health, note, rows
from paper.jobs import Job, do
from paper.method_specs import plain
from paper.pages import page
from paper.records import results_in_records
from paper.reproduction import Places, write
from paper.run_results import RUN_KEY, Facts, RunResults

RESULTS = Path(__file__).parents[2] / "results"
RUN = Experiment(**{**SMALL, "rounds": 2})
WELL, ILL = [{"a": 0.5, "b": 0.0}, {"a": 0.1, "b": 0.0}], [{"a": 0.0, "b": 0.0}, {"a": 0.0, "b": 0.1234}]
TABLE = Table("little", "T", (Cell("noise", "cosine", "1", RUN, plain("cosine")),), (0, 1, 2, 3))


def name(seed):
    return replace(RUN, seed=seed).name


def keep(folder, *unmoved):
    run_results = RunResults(folder / "answers")
    for seed, shares in enumerate(unmoved):
        run_results.keep(replace(RUN, seed=seed), RUN_KEY, Facts("Digits", [0.1, seed], [1.0], shares).to_json())
    return Places(folder / "no runs", folder)


def test_a_table_names_its_unhealthy_runs_and_counts_the_unknown(tmp_path):
    run_results = keep(tmp_path, WELL, ILL, None, ILL).run_results
    expected = (
        "Health: 2 of the 3 runs where it is known are unhealthy (more than 10% of a layer was not moved by any"
        f" client in the last round): `{name(1)}`, `{name(3)}`; unknown for 1 more."
    )
    assert note(TABLE, run_results) == expected
    assert expected in page(TABLE, fill(TABLE, run_results), run_results, "the command")


@pytest.mark.parametrize(
    ("unmoved", "expected"),
    [
        ((WELL, ILL), "1 of the 2 runs where it is known is unhealthy"),
        ((WELL, WELL), "none of the 2 runs where it is known are unhealthy"),
        ((None, None, None), "Health: unknown for all 3 runs, which were assessed before health was recorded."),
    ],
)
def test_what_is_said_of_the_others(tmp_path, unmoved, expected):
    assert expected in note(TABLE, keep(tmp_path, *unmoved).run_results)


def test_of_a_table_without_runs_nothing_is_said(tmp_path):
    assert note(TABLE, keep(tmp_path).run_results) == ""


def test_the_health_of_all_runs_is_written_beside_the_tables(tmp_path):
    places = keep(tmp_path, WELL, ILL, None)
    write([TABLE], places, lambda table: "the command")
    assert json.loads((tmp_path / "health.json").read_text()) == {
        "format": "fedcoast-health",
        "version": 1,
        "limit": 0.1,
        "runs": {
            name(0): {"healthy": True, "worst layer": "a", "share": 0.1, "unmoved": {"a": [0.5, 0.1], "b": 0.0}},
            name(1): {"healthy": False, "worst layer": "b", "share": 0.1234, "unmoved": {"a": 0.0, "b": [0.0, 0.1234]}},
        },
        "unknown": 1,
    }


def test_a_table_tells_the_health_of_its_runs_to_who_has_neither_runs_nor_answers(tmp_path):
    places = keep(tmp_path, WELL, ILL, None)
    write([TABLE], places, lambda table: "the command")
    before = note(TABLE, places.run_results), (tmp_path / "health.json").read_bytes()
    shutil.rmtree(tmp_path / "answers")
    assert [places.run_results.facts(replace(RUN, seed=seed)).unmoved for seed in range(3)] == [WELL, ILL, None]
    write([TABLE], places, lambda table: "the command")
    assert (note(TABLE, places.run_results), (tmp_path / "health.json").read_bytes()) == before


def test_an_older_table_with_the_same_run_does_not_make_its_health_unknown(tmp_path):
    places = keep(tmp_path, ILL)
    write([replace(TABLE, name="a"), replace(TABLE, name="z")], places, lambda table: "the command")
    data = json.loads((tmp_path / "z.json").read_text())
    del data["runs"][name(0)]["unmoved"]
    (tmp_path / "z.json").write_text(json.dumps(data))
    assert results_in_records(tmp_path)[name(0)][RUN_KEY]["unmoved"] == ILL
    data["runs"][name(0)]["test accuracy"] = [0.9, 0.9]
    (tmp_path / "z.json").write_text(json.dumps(data))
    assert results_in_records(tmp_path)[name(0)][RUN_KEY]["unmoved"] is None


def test_answers_of_before_are_read_and_their_health_is_unknown(tmp_path):
    facts = Facts.from_json({"dataset": "Digits", "accuracy": [0.1], "planted": None})
    assert (facts.unmoved, health(facts).healthy) == (None, None)
    data = json.loads((RESULTS / "table4.json").read_text(encoding="utf-8"))
    for run in data["runs"].values():
        run.pop("unmoved", None)
    (tmp_path / "table4.json").write_text(json.dumps(data))
    known = results_in_records(tmp_path)
    assert len(known) == len(data["runs"]) > 0
    assert all(Facts.from_json(entry[RUN_KEY]).unmoved is None for entry in known.values())


def test_rounds_that_do_not_tell_stay_unknown_in_a_record():
    unmoved = [None, {"a": 0.0, "b": 0.2}, {"a": 0.0, "b": 0.2}]
    assert columns(unmoved) == {"a": [None, 0.0, 0.0], "b": [None, 0.2, 0.2]}
    assert rows(columns(unmoved), 3) == unmoved


def test_a_run_of_the_lab_comes_with_its_health(reproduced, tmp_path):
    (cell, *_) = little_table().cells
    facts = reproduced.run_results.facts(cell.experiment)
    assert len(facts.unmoved) == cell.experiment.rounds
    assert all(share == round(share, 4) for shares in facts.unmoved for share in shares.values())
    shutil.copytree(reproduced.runs / cell.experiment.name, tmp_path / cell.experiment.name)
    of_before(tmp_path / cell.experiment.name)
    outcome = do(Job(cell.experiment, tmp_path, (), facts=True))
    assert outcome.results[RUN_KEY] == facts.to_json()
