import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from fedcoast.simulation.experiment import Experiment
from health import of_before
from little_tables import SMALL, little_table
from paper.cell_results import find
from paper.cells import Cell, Table
from paper.health import columns, health, note, rows
from paper.jobs import Job, do
from paper.method_specs import plain
from paper.pages import page
from paper.records import told
from paper.reproduction import Places, write
from paper.run_results import FACTS, Facts, RunResults

RESULTS = Path(__file__).parents[2] / "results"
RUN = Experiment(**{**SMALL, "rounds": 2})
WELL, ILL = [{"a": 0.5, "b": 0.0}, {"a": 0.1, "b": 0.0}], [{"a": 0.0, "b": 0.0}, {"a": 0.0, "b": 0.1234}]
TABLE = Table("little", "T", (Cell("noise", "cosine", "1", RUN, plain("cosine")),), (0, 1, 2, 3))


def name(seed):
    return replace(RUN, seed=seed).name


def keep(folder, *unmoved):
    answers = RunResults(folder / "answers")
    for seed, shares in enumerate(unmoved):
        answers.keep(replace(RUN, seed=seed), FACTS, asdict(Facts("Digits", [0.1, seed], [1.0], shares)))
    return Places(folder / "no runs", folder)


def test_a_table_names_its_unhealthy_runs_and_counts_the_unknown(tmp_path):
    answers = keep(tmp_path, WELL, ILL, None, ILL).answers
    said = (
        "Health: 2 of the 3 runs where it is known are unhealthy (more than 10% of a layer was moved by nobody in the"
        f" last round): `{name(1)}`, `{name(3)}`; unknown for 1 more."
    )
    assert note(TABLE, answers) == said
    assert said in page(TABLE, find(TABLE, answers), answers, "the command")


@pytest.mark.parametrize(
    ("unmoved", "said"),
    [
        ((WELL, ILL), "1 of the 2 runs where it is known is unhealthy"),
        ((WELL, WELL), "none of the 2 runs where it is known are unhealthy"),
        ((None, None, None), "Health: unknown for all 3 runs, which were answered before it was kept."),
    ],
)
def test_what_is_said_of_the_others(tmp_path, unmoved, said):
    assert said in note(TABLE, keep(tmp_path, *unmoved).answers)


def test_of_a_table_without_runs_nothing_is_said(tmp_path):
    assert note(TABLE, keep(tmp_path).answers) == ""


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
    before = note(TABLE, places.answers), (tmp_path / "health.json").read_bytes()
    shutil.rmtree(tmp_path / "answers")
    assert [places.answers.facts(replace(RUN, seed=seed)).unmoved for seed in range(3)] == [WELL, ILL, None]
    write([TABLE], places, lambda table: "the command")
    assert (note(TABLE, places.answers), (tmp_path / "health.json").read_bytes()) == before


def test_an_older_table_with_the_same_run_does_not_make_its_health_unknown(tmp_path):
    places = keep(tmp_path, ILL)
    write([replace(TABLE, name="a"), replace(TABLE, name="z")], places, lambda table: "the command")
    data = json.loads((tmp_path / "z.json").read_text())
    del data["runs"][name(0)]["unmoved"]
    (tmp_path / "z.json").write_text(json.dumps(data))
    assert told(tmp_path)[name(0)][FACTS]["unmoved"] == ILL
    data["runs"][name(0)]["test accuracy"] = [0.9, 0.9]
    (tmp_path / "z.json").write_text(json.dumps(data))
    assert told(tmp_path)[name(0)][FACTS]["unmoved"] is None


def test_answers_of_before_are_read_and_their_health_is_unknown(tmp_path):
    facts = Facts(**{"dataset": "Digits", "accuracy": [0.1], "planted": None})
    assert (facts.unmoved, health(facts).healthy) == (None, None)
    data = json.loads((RESULTS / "table4.json").read_text(encoding="utf-8"))
    for run in data["runs"].values():
        run.pop("unmoved", None)
    (tmp_path / "table4.json").write_text(json.dumps(data))
    known = told(tmp_path)
    assert len(known) == len(data["runs"]) > 0
    assert all(Facts(**entry[FACTS]).unmoved is None for entry in known.values())


def test_rounds_that_do_not_tell_stay_unknown_in_a_record():
    unmoved = [None, {"a": 0.0, "b": 0.2}, {"a": 0.0, "b": 0.2}]
    assert columns(unmoved) == {"a": [None, 0.0, 0.0], "b": [None, 0.2, 0.2]}
    assert rows(columns(unmoved), 3) == unmoved


def test_a_run_of_the_lab_comes_with_its_health(made, tmp_path):
    (slot, *_) = little_table().slots
    facts = made.answers.facts(slot.experiment)
    assert len(facts.unmoved) == slot.experiment.rounds
    assert all(share == round(share, 4) for shares in facts.unmoved for share in shares.values())
    shutil.copytree(made.runs / slot.experiment.name, tmp_path / slot.experiment.name)
    of_before(tmp_path / slot.experiment.name)
    outcome = do(Job(slot.experiment, tmp_path, (), facts=True))
    assert outcome.kept[FACTS] == asdict(facts)
