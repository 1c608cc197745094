import json
import random
import shutil

import pytest
from typer.testing import CliRunner

from fedcoast.errors import BadFile, BadSetting
from little_tables import at_once, little_table, reproduce
from paper.__main__ import app
from paper.jobs import RUN, do, recorded
from paper.pages import refresh
from paper.reproduction import Places, missing, write
from paper.run_results import RUN_KEY

TIMES = ("seconds", "made")


def numbers(places, table):
    """The table's JSON without what a clock or a machine decides."""
    write([table], places, lambda table: "the command")
    data = json.loads((places.results / "little.json").read_text(encoding="utf-8"))
    for run in data["runs"].values():
        for run_result in run["answers"].values():
            for name in TIMES:
                del run_result[name]
    del data["made"]
    return data


def copied(reproduced, folder):
    shutil.copytree(reproduced.runs, folder / "runs")
    shutil.copytree(reproduced.results, folder / "results")
    return Places(folder / "runs", folder / "results")


def test_what_is_answered_is_never_asked_again(reproduced):
    assert missing([little_table()], reproduced, only_recorded=False) == []


def test_answers_outlive_the_runs_they_came_from(reproduced, tmp_path):
    places = copied(reproduced, tmp_path)
    shutil.rmtree(places.runs)
    assert missing([little_table()], places, only_recorded=True) == []
    assert numbers(places, little_table()) == numbers(reproduced, little_table())


def test_half_of_the_caches_deleted_gives_the_same_numbers(reproduced, tmp_path):
    places, table, chance = copied(reproduced, tmp_path), little_table(), random.Random(0)
    before = numbers(places, table)
    (places.results / "little.json").unlink()  # which would tell what is deleted below
    run_results = sorted((places.results / "answers").rglob("*.json"))
    runs = sorted(places.runs.iterdir())
    for file in chance.sample(run_results, len(run_results) // 2):
        file.unlink()
    for run in chance.sample(runs, len(runs) // 2):
        rounds = sorted((run / "rounds").iterdir())
        for fl_round in chance.sample(rounds[3:], 1) + rounds[4:]:  # stopped somewhere in the second half
            shutil.rmtree(fl_round, ignore_errors=True)
    outcomes = reproduce([table], places)
    assert outcomes
    assert not any(outcome.errors for outcome in outcomes)
    assert numbers(places, table) == before


def test_only_recorded_trains_nothing_and_leaves_half_trained_runs_alone(reproduced, tmp_path):
    places, table = copied(reproduced, tmp_path), little_table()
    shutil.rmtree(places.results)
    stopped, gone = sorted(places.runs.iterdir())[:2]
    shutil.rmtree(stopped / "rounds" / "0000000005")
    shutil.rmtree(gone)
    reproduce([table], places, only_recorded=True)
    assert not gone.exists()
    assert not (stopped / "rounds" / "0000000005").exists()
    runs = numbers(places, table)["runs"]
    assert {stopped.name, gone.name}.isdisjoint(runs)
    assert len(runs) == 6


def test_a_job_that_fails_is_told_and_the_others_go_on(reproduced, tmp_path):
    places, table = copied(reproduced, tmp_path), little_table()
    shutil.rmtree(places.results)
    broken = sorted(places.runs.iterdir())[0]
    (broken / "run.json").write_text("{", encoding="utf-8")
    outcomes = reproduce([table], places)
    assert [outcome.job.folder for outcome in outcomes if outcome.errors] == [broken]  # and nothing more is asked of it
    assert len(numbers(places, table)["runs"]) == 7


def test_a_fault_in_a_worker_costs_its_own_job_only(places):
    table = little_table(seeds=(0,))

    def faulty(job):
        future = at_once(job)
        if job.experiment.aggregation == "pruned":
            future = type(future)()
            future.set_exception(RuntimeError("the machine is gone"))
        return future

    outcomes = reproduce([table], places, faulty)
    assert {RUN: "RuntimeError: the machine is gone"} in [outcome.errors for outcome in outcomes]
    assert len(numbers(places, table)["runs"]) == 2


def test_a_run_under_a_wrong_name_is_refused(reproduced, tmp_path):
    places = copied(reproduced, tmp_path)
    shutil.rmtree(places.results)
    one, other = sorted(places.runs.iterdir())[:2]
    shutil.rmtree(one)
    shutil.copytree(other, one)
    (chain,) = [chain for chain in missing([little_table()], places, True) if chain[0].folder == one]
    assert "another experiment" in do(chain[0]).errors[RUN]


def test_an_altered_answer_is_refused_by_name(reproduced, tmp_path):
    places = copied(reproduced, tmp_path)
    file = next((places.results / "answers").rglob(f"{RUN_KEY}.json"))
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(BadFile, match="delete it to compute it again"):
        missing([little_table()], places, False)


def test_marked_parts_of_a_page_are_made_new_and_the_rest_stays(reproduced, tmp_path):
    file = tmp_path / "page.md"
    file.write_text("above\n<!-- begin: little -->\nold\n<!-- end: little -->\nbelow \\1\n", encoding="utf-8")
    refresh(file, {"little": "new \\1 text", "another": "nothing"})
    refresh(file, {"little": "new \\1 text"})
    assert file.read_text(encoding="utf-8") == (
        "above\n<!-- begin: little -->\n\nnew \\1 text\n\n<!-- end: little -->\nbelow \\1\n"
    )


def test_a_table_is_written_as_json_and_as_a_page(reproduced):
    data = numbers(reproduced, little_table())
    assert len(data["runs"]) == 8
    for run in data["runs"].values():
        assert run["dataset"] == "Digits (scikit-learn)"
        assert len(run["test accuracy"]) == 5
        assert all(len(run_result["scores"]) == 5 for run_result in run["answers"].values())
        assert all(data["questions"][key]["settings"] for key in run["answers"])
    assert all(cell["question"] in data["questions"] for cell in data["slots"] if cell["question"])
    raw = json.loads((reproduced.results / "little.json").read_text(encoding="utf-8"))
    assert {"machine", "python", "versions", "commit", "when"} <= raw["made"][0].keys()
    text = (reproduced.results / "little.md").read_text(encoding="utf-8")
    assert "(2) [1.00]" in text
    assert "**digits** Digits (scikit-learn), mlp" in text
    assert "| not run" not in text


def test_a_table_with_numbers_that_cannot_be_made_here_is_left_as_it_is(reproduced, tmp_path):
    places = copied(reproduced, tmp_path)
    write([little_table()], places, lambda table: "the command")
    record, text = places.results / "little.json", places.results / "little.md"
    data = json.loads(record.read_text(encoding="utf-8"))
    next(iter(data["runs"].values()))["answers"].clear()
    record.write_text(json.dumps(data), encoding="utf-8")
    before = record.read_bytes(), text.read_bytes()
    page = tmp_path / "page.md"
    page.write_text("<!-- begin: little -->\nmany\n<!-- end: little -->\n", encoding="utf-8")
    records_only = Places(tmp_path / "none", places.results, (page,))
    shutil.rmtree(places.results / "answers")
    assert write([little_table()], records_only, lambda table: "the command") == {}
    assert (record.read_bytes(), text.read_bytes()) == before
    assert "many" in page.read_text(encoding="utf-8")
    record.unlink()
    assert write([little_table()], records_only, lambda table: "the command").keys() == {"little"}
    assert "many" not in page.read_text(encoding="utf-8")


def test_a_torn_table_is_refused_by_name(reproduced, tmp_path):
    places = copied(reproduced, tmp_path)
    (places.results / "little.json").write_text('{"slots": [{"row": 1}]}', encoding="utf-8")
    with pytest.raises(BadFile, match=r"little\.json is not a valid table record"):
        write([little_table()], places, lambda table: "the command")


def test_claims_are_made_new_only_from_all_the_tables_they_compare(reproduced, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- begin: claims -->\nall of them\n<!-- end: claims -->\n", encoding="utf-8")
    write([little_table()], Places(reproduced.runs, reproduced.results, (page,)), lambda table: "the command")
    assert "all of them" in page.read_text(encoding="utf-8")


def test_the_command_says_which_tables_it_left_and_what_to_do(tmp_path):
    ask = ["table4", "--only-recorded", "--runs", str(tmp_path / "none"), "--results", str(tmp_path)]
    assert CliRunner().invoke(app, ask).exit_code == 0
    record = tmp_path / "table4.json"
    data = json.loads(record.read_text(encoding="utf-8"))
    data["slots"][0]["values"] = {"0": 0.9}
    record.write_text(json.dumps(data), encoding="utf-8")
    result = CliRunner().invoke(app, ask)
    assert isinstance(result.exception, BadSetting)
    assert "numbers that these seeds and runs do not provide: table4.json" in str(result.exception)
    assert json.loads(record.read_text(encoding="utf-8")) == data


def test_the_command_trains_nothing_where_only_recorded_runs_are_wanted(tmp_path):
    result = CliRunner().invoke(
        app,
        ["table4", "--only-recorded", "--runs", str(tmp_path / "none"), "--results", str(tmp_path / "r")],
    )
    assert result.exit_code == 0, result.output
    assert "0 of 48 cells filled" in result.output
    assert "not run [0.40]" in (tmp_path / "r" / "table4.md").read_text(encoding="utf-8")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("arguments", "expected"), [(["table7"], "tables are table1"), (["all", "--seeds", "0"], "seeds")]
)
def test_the_command_refuses_what_it_does_not_know(arguments, expected):
    result = CliRunner().invoke(app, [*arguments])
    assert isinstance(result.exception, BadSetting)
    assert expected in str(result.exception)


def test_a_run_is_recorded_when_its_last_round_is(reproduced):
    run = next(little_table().runs(little_table().cells[0]))
    assert recorded(run, reproduced.runs)
    assert not recorded(type(run)(**{**run.to_json(), "seed": 9}), reproduced.runs)
