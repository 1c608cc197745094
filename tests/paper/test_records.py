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
from paper.run_results import FACTS


def written(table, places):
    """The table made and written: the bytes of its record and of its page."""
    write([table], places, lambda table: "the command")
    return tuple((places.results / f"{table.name}.{kind}").read_bytes() for kind in ("json", "md"))


def bereft(places, folder):
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
    slots = tuple(Cell("", f"{even}", "1", half, coast("votes", half), evened=even) for even in (False, True))
    places, table = Places(folder / "runs", folder / "results"), Table("halves", "Halves", slots, (0, 1))
    reproduce([table], places)
    return table, places, written(table, places)


def test_a_table_is_made_again_from_what_it_tells_alone(made, tmp_path):
    before = written(little_table(), made)
    elsewhere = bereft(made, tmp_path / "elsewhere")
    assert missing([little_table()], elsewhere, only_recorded=False) == []
    assert written(little_table(), elsewhere) == before


def test_what_a_table_tells_is_not_trained_again_for_more_seeds(made, tmp_path):
    written(little_table(), made)
    elsewhere = bereft(made, tmp_path / "elsewhere")
    chains = missing([little_table(seeds=(0, 1, 2))], elsewhere, only_recorded=False)
    assert {job.experiment.seed for chain in chains for job in chain} == {2}
    reproduce([little_table(seeds=(0, 1, 2))], elsewhere)
    (values, *_) = json.loads(written(little_table(seeds=(0, 1, 2)), elsewhere)[0])["slots"]
    assert values["values"].keys() == {"0", "1", "2"}


def test_an_answer_here_comes_before_what_a_table_tells(made, tmp_path):
    places = Places(made.runs, tmp_path / "results")
    shutil.copytree(made.results, places.results)
    written(little_table(), places)
    altered(places, lambda data: [run.update(dataset="another") for run in data["runs"].values()])
    (slot, *_) = little_table().slots
    run = next(little_table().runs(slot))
    assert places.answers.facts(run).dataset == "Digits (scikit-learn)"
    assert places.answers.answer(run, slot.question).credits is not None
    assert bereft(places, tmp_path / "elsewhere").answers.facts(run).dataset == "another"


def other_training(places):
    """The tables as somebody has them whose processor trained otherwise: other accuracies, other scores."""

    def change(data):
        for run in data["runs"].values():
            run["test accuracy"] = [value / 2 for value in run["test accuracy"]]
            for answer in run["answers"].values():
                answer["scores"] = [-score for score in answer["scores"]]

    altered(places, change)


def facts_and_scores(places):
    record = json.loads(written(little_table(), places)[0])
    return {
        name: (run["test accuracy"], [answer["scores"] for answer in run["answers"].values()])
        for name, run in record["runs"].items()
    }


def test_a_run_of_another_training_than_the_table_tells_of_is_asked_everything(made, tmp_path):
    before = facts_and_scores(made)
    elsewhere = replace(bereft(made, tmp_path / "elsewhere"), runs=made.runs)
    other_training(elsewhere)
    reproduce([little_table()], elsewhere, only_recorded=True)
    assert missing([little_table()], elsewhere, only_recorded=False) == []
    assert facts_and_scores(elsewhere) == before


def test_a_run_that_has_to_be_trained_for_one_answer_is_asked_all_of_them(made, tmp_path):
    before = facts_and_scores(made)
    elsewhere = bereft(made, tmp_path / "elsewhere")
    other_training(elsewhere)
    (name, _) = next(iter(before.items()))
    altered(elsewhere, lambda data: data["runs"][name]["answers"].popitem())
    (chain,) = missing([little_table()], elsewhere, only_recorded=False)
    assert all(job.experiment.name == name for job in chain)
    reproduce([little_table()], elsewhere)
    assert facts_and_scores(elsewhere)[name] == before[name]


def test_facts_of_another_training_put_an_end_to_the_answers_of_the_former(made, tmp_path):
    places = Places(made.runs, tmp_path / "results")
    shutil.copytree(made.results / "answers", places.results / "answers")
    (slot, *_) = little_table().slots
    run = next(little_table().runs(slot))
    answers = places.answers
    facts = vars(answers.facts(run))
    answers.keep(run, FACTS, facts)
    assert answers.answer(run, slot.question) is not None
    answers.keep(run, FACTS, {**facts, "accuracy": [value / 2 for value in facts["accuracy"]]})
    assert answers.answer(run, slot.question) is None
    assert places.answers.answer(run, slot.question) is None


def test_a_run_that_cannot_be_read_is_no_reason_to_ask_again(made, tmp_path):
    places = Places(tmp_path / "runs", made.results)
    shutil.copytree(made.runs, places.runs)
    for file in places.runs.glob("*/rounds/*/round.json"):
        file.write_text("torn", encoding="utf-8")
    assert missing([little_table()], places, only_recorded=False) == []


def test_where_clients_miss_rounds_a_table_tells_the_credits_its_numbers_are_made_of(halves, tmp_path):
    table, places, before = halves
    assert written(table, bereft(places, tmp_path / "elsewhere")) == before


def test_a_table_that_kept_no_credits_is_asked_again_where_they_are_needed(halves, tmp_path):
    table, places, _ = halves
    elsewhere = bereft(places, tmp_path / "elsewhere")

    def forget(data):
        for run in data["runs"].values():
            for answer in run["answers"].values():
                del answer["credits"]

    altered(elsewhere, forget)
    assert write([table], elsewhere, lambda table: "the command") == {}
    assert len(missing([table], elsewhere, only_recorded=False)) == 2
    assert missing([table], elsewhere, only_recorded=True) == []


def test_credits_that_a_table_does_not_keep_are_not_made_up(made, tmp_path):
    written(little_table(), made)
    (slot, *_) = little_table().slots
    answer = bereft(made, tmp_path / "elsewhere").answers.answer(slot.experiment, slot.question)
    assert answer.credits is None
    with pytest.raises(FedcoastError, match="ask the run again"):
        answer.by_round  # noqa: B018


def test_an_experiment_that_is_not_what_its_name_stands_for_is_refused(made, tmp_path):
    written(little_table(), made)
    elsewhere = bereft(made, tmp_path / "elsewhere")
    altered(elsewhere, lambda data: next(iter(data["runs"].values()))["experiment"].update(rounds=6))
    with pytest.raises(BadFile, match=r"little\.json .* it was altered"):
        missing([little_table()], elsewhere, only_recorded=True)


@pytest.mark.parametrize("part", ["runs", "questions", "made"])
def test_a_table_with_a_part_torn_out_is_refused_by_name(made, tmp_path, part):
    written(little_table(), made)
    elsewhere = bereft(made, tmp_path / "elsewhere")
    altered(elsewhere, lambda data: data.pop(part))
    with pytest.raises(BadFile, match=r"little\.json is not as a table is kept"):
        missing([little_table()], elsewhere, only_recorded=True)


def test_other_files_beside_the_tables_tell_nothing(made, tmp_path):
    elsewhere = bereft(made, tmp_path / "elsewhere")
    for name, text in (("speed", '{"format": "another"}'), ("list", "[1]")):
        (elsewhere.results / f"{name}.json").write_text(text, encoding="utf-8")
    assert missing([little_table()], elsewhere, only_recorded=True) == []


def test_names_of_runs_tell_experiments_apart(made):
    (slot, *_) = little_table().slots
    assert made.answers.facts(slot.experiment) is not None
    assert made.answers.facts(replace(slot.experiment, keep=0.2)) is None
