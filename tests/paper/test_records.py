import json
import shutil
from dataclasses import replace

import pytest

from fedcoast.errors import BadFile, FedcoastError
from fedcoast.simulation.experiment import Experiment
from little_tables import SMALL, little_table, reproduce
from paper.cells import Cell, Table
from paper.method_specs import coast
from paper.reproduction import Places, missing, write
from paper.run_results import RUN_KEY


def written(table, places):
    """The table made and written: the bytes of its record and of its page."""
    write([table], places, lambda table: "the command")
    return tuple((places.results / f"{table.name}.{kind}").read_bytes() for kind in ("json", "md"))


def records_only(places, folder):
    """Somewhere that has the tables and neither runs nor answers, as who clones a repository has them."""
    folder.mkdir()
    for file in places.results.glob("*.json"):
        shutil.copy(file, folder)
    return Places(folder / "no runs", folder)


def altered(places, change):
    (file,) = (file for file in places.results.glob("*.json") if file.name != "health.json")
    data = json.loads(file.read_text(encoding="utf-8"))
    change(data)
    file.write_text(json.dumps(data), encoding="utf-8")


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """A table of a federation in which half of the clients take part, by plain means and evened out."""
    folder = tmp_path_factory.mktemp("halves")
    half = Experiment(**SMALL, participation=0.5)
    cells = tuple(Cell("", f"{even}", "1", half, coast("votes", half), adjusted=even) for even in (False, True))
    places, table = Places(folder / "runs", folder / "results"), Table("halves", "Halves", cells, (0, 1))
    reproduce([table], places)
    return table, places, written(table, places)


def test_a_table_is_made_again_from_what_it_tells_alone(reproduced, tmp_path):
    before = written(little_table(), reproduced)
    elsewhere = records_only(reproduced, tmp_path / "elsewhere")
    assert missing([little_table()], elsewhere, only_recorded=False) == []
    assert written(little_table(), elsewhere) == before


def test_what_a_table_tells_is_not_trained_again_for_more_seeds(reproduced, tmp_path):
    written(little_table(), reproduced)
    elsewhere = records_only(reproduced, tmp_path / "elsewhere")
    chains = missing([little_table(seeds=(0, 1, 2))], elsewhere, only_recorded=False)
    assert {job.experiment.seed for chain in chains for job in chain} == {2}
    reproduce([little_table(seeds=(0, 1, 2))], elsewhere)
    (values, *_) = json.loads(written(little_table(seeds=(0, 1, 2)), elsewhere)[0])["slots"]
    assert values["values"].keys() == {"0", "1", "2"}


def test_an_answer_here_comes_before_what_a_table_tells(reproduced, tmp_path):
    places = Places(reproduced.runs, tmp_path / "results")
    shutil.copytree(reproduced.results, places.results)
    written(little_table(), places)
    altered(places, lambda data: [run.update(dataset="another") for run in data["runs"].values()])
    (cell, *_) = little_table().cells
    run = next(little_table().runs(cell))
    assert places.run_results.facts(run).dataset == "Digits (scikit-learn)"
    assert places.run_results.get(run, cell.spec).credits is not None
    assert records_only(places, tmp_path / "elsewhere").run_results.facts(run).dataset == "another"


def other_training(places):
    """The tables as somebody has them whose processor trained otherwise: other accuracies, other scores."""

    def change(data):
        for run in data["runs"].values():
            run["test accuracy"] = [value / 2 for value in run["test accuracy"]]
            for run_result in run["answers"].values():
                run_result["scores"] = [-score for score in run_result["scores"]]

    altered(places, change)


def facts_and_scores(places):
    record = json.loads(written(little_table(), places)[0])
    return {
        name: (run["test accuracy"], [run_result["scores"] for run_result in run["answers"].values()])
        for name, run in record["runs"].items()
    }


def test_a_run_of_another_training_than_the_table_tells_of_is_asked_everything(reproduced, tmp_path):
    before = facts_and_scores(reproduced)
    elsewhere = replace(records_only(reproduced, tmp_path / "elsewhere"), runs=reproduced.runs)
    other_training(elsewhere)
    reproduce([little_table()], elsewhere, only_recorded=True)
    assert missing([little_table()], elsewhere, only_recorded=False) == []
    assert facts_and_scores(elsewhere) == before


def test_a_run_that_has_to_be_trained_for_one_answer_is_asked_all_of_them(reproduced, tmp_path):
    before = facts_and_scores(reproduced)
    elsewhere = records_only(reproduced, tmp_path / "elsewhere")
    other_training(elsewhere)
    (name, _) = next(iter(before.items()))
    altered(elsewhere, lambda data: data["runs"][name]["answers"].popitem())
    (chain,) = missing([little_table()], elsewhere, only_recorded=False)
    assert all(job.experiment.name == name for job in chain)
    reproduce([little_table()], elsewhere)
    assert facts_and_scores(elsewhere)[name] == before[name]


def test_facts_of_another_training_put_an_end_to_the_answers_of_the_former(reproduced, tmp_path):
    places = Places(reproduced.runs, tmp_path / "results")
    shutil.copytree(reproduced.results / "answers", places.results / "answers")
    (cell, *_) = little_table().cells
    run = next(little_table().runs(cell))
    run_results = places.run_results
    facts = run_results.facts(run).to_json()
    run_results.keep(run, RUN_KEY, facts)
    assert run_results.get(run, cell.spec) is not None
    run_results.keep(run, RUN_KEY, {**facts, "accuracy": [value / 2 for value in facts["accuracy"]]})
    assert run_results.get(run, cell.spec) is None
    assert places.run_results.get(run, cell.spec) is None


def test_a_run_that_cannot_be_read_is_no_reason_to_ask_again(reproduced, tmp_path):
    places = Places(tmp_path / "runs", reproduced.results)
    shutil.copytree(reproduced.runs, places.runs)
    for file in places.runs.glob("*/rounds/*/round.json"):
        file.write_text("torn", encoding="utf-8")
    assert missing([little_table()], places, only_recorded=False) == []


def test_where_clients_miss_rounds_a_table_tells_the_credits_its_numbers_are_made_of(halves, tmp_path):
    table, places, before = halves
    assert written(table, records_only(places, tmp_path / "elsewhere")) == before


def test_a_table_that_kept_no_credits_is_asked_again_where_they_are_needed(halves, tmp_path):
    table, places, _ = halves
    elsewhere = records_only(places, tmp_path / "elsewhere")

    def forget(data):
        for run in data["runs"].values():
            for run_result in run["answers"].values():
                del run_result["credits"]

    altered(elsewhere, forget)
    assert write([table], elsewhere, lambda table: "the command") == {}
    assert len(missing([table], elsewhere, only_recorded=False)) == 2
    assert missing([table], elsewhere, only_recorded=True) == []


def test_credits_that_a_table_does_not_keep_are_not_made_up(reproduced, tmp_path):
    written(little_table(), reproduced)
    (cell, *_) = little_table().cells
    run_result = records_only(reproduced, tmp_path / "elsewhere").run_results.get(cell.experiment, cell.spec)
    assert run_result.credits is None
    with pytest.raises(FedcoastError, match="assess the run again"):
        run_result.by_round  # noqa: B018


def test_an_experiment_that_is_not_what_its_name_stands_for_is_refused(reproduced, tmp_path):
    written(little_table(), reproduced)
    elsewhere = records_only(reproduced, tmp_path / "elsewhere")
    altered(elsewhere, lambda data: next(iter(data["runs"].values()))["experiment"].update(rounds=6))
    with pytest.raises(BadFile, match=r"little\.json .* it has been altered"):
        missing([little_table()], elsewhere, only_recorded=True)


@pytest.mark.parametrize("part", ["runs", "questions", "made"])
def test_a_table_with_a_part_torn_out_is_refused_by_name(reproduced, tmp_path, part):
    written(little_table(), reproduced)
    elsewhere = records_only(reproduced, tmp_path / "elsewhere")
    altered(elsewhere, lambda data: data.pop(part))
    with pytest.raises(BadFile, match=r"little\.json is not a valid table record"):
        missing([little_table()], elsewhere, only_recorded=True)


def test_other_files_beside_the_tables_tell_nothing(reproduced, tmp_path):
    elsewhere = records_only(reproduced, tmp_path / "elsewhere")
    for name, text in (("speed", '{"format": "another"}'), ("list", "[1]")):
        (elsewhere.results / f"{name}.json").write_text(text, encoding="utf-8")
    assert missing([little_table()], elsewhere, only_recorded=True) == []


def test_names_of_runs_tell_experiments_apart(reproduced):
    (cell, *_) = little_table().cells
    assert reproduced.run_results.facts(cell.experiment) is not None
    assert reproduced.run_results.facts(replace(cell.experiment, keep=0.2)) is None
