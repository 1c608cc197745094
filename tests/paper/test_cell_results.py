import math
from dataclasses import asdict, replace

import pytest

from fedcoast.simulation.experiment import Experiment
from paper.cell_results import CellResult, average, find, published_average, worths
from paper.cells import Cell, Table
from paper.method_specs import plain
from paper.pages import cell, grids, headline, page
from paper.run_results import FACTS, Facts, RunResult, RunResults

RUN = Experiment(clients=3)
MADE = {"machine": "a machine", "python": "3", "commit": "abc", "versions": {}, "when": "now"}


def slot(**changes):
    given = {"question": plain("cosine"), "published": 0.775, **changes}
    return Cell("noise", "cosine", "1", RUN, **given)


def answer(scores, credits=None, seen=None):
    credits = {"1": scores} if credits is None else credits
    return RunResult({}, scores, seen or [1] * len(scores), credits, 0.5, None, MADE)


def keep(answers, run, question, scores):
    answers.keep(run, FACTS, asdict(Facts("Digits", [0.1, 0.2], [3.0, 2.0, 1.0])))
    answers.keep(run, question.key(run), asdict(answer(scores)))


def test_seeds_become_a_mean_and_a_spread(tmp_path):
    asked, table = plain("cosine"), Table("table1", "T", (slot(),), (0, 1, 2))
    keep(RunResults(tmp_path), replace(RUN, seed=0), asked, [3.0, 2.0, 1.0])
    keep(RunResults(tmp_path), replace(RUN, seed=2), asked, [1.0, 2.0, 3.0])
    (found,) = find(table, RunResults(tmp_path))
    assert found.values == {0: pytest.approx(1), 2: pytest.approx(-1)}
    assert (found.mean, found.spread) == (pytest.approx(0), pytest.approx(math.sqrt(2)))
    assert cell(found) == "0.00 ± 1.41 (2) [0.78]"


def test_what_was_not_run_says_so_and_nothing_else(tmp_path):
    (found,) = find(Table("table1", "T", (slot(),), (0,)), RunResults(tmp_path))
    assert found.values == {}
    assert cell(found) == "not run [0.78]"
    text = page(Table("table1", "T", (slot(),), (0,)), [found], RunResults(tmp_path), "the command")
    assert "not run" in text
    assert "the command" in text
    assert "What was trained" not in text
    assert "no runs yet" in headline([found])


def test_a_run_without_the_answer_is_not_run(tmp_path):
    RunResults(tmp_path).keep(RUN, FACTS, asdict(Facts("Digits", [0.1], [3.0, 2.0, 1.0])))
    (found,) = find(Table("table1", "T", (slot(),), (0,)), RunResults(tmp_path))
    assert found.values == {}


def test_scores_that_tell_nobody_apart_are_undefined_and_never_zero(tmp_path):
    keep(RunResults(tmp_path), RUN, plain("cosine"), [0.0, 0.0, 0.0])
    (found,) = find(Table("table1", "T", (slot(),), (0,)), RunResults(tmp_path))
    assert found.mean is None
    assert cell(found) == "undefined (1) [0.78]"
    assert cell(CellResult(slot(), {0: 1.0, 1: math.nan})) == "1.00 (2, 1 undefined) [0.78]"


def test_an_average_counts_what_was_run_and_the_papers_numbers_for_the_same():
    run, idle = CellResult(slot(published=0.5), {0: 1.0}), CellResult(slot(published=-1.0), {})
    assert average([run, idle]) == (1.0, 1, 2)
    assert published_average([run, idle]) == 0.5
    assert published_average([idle, idle]) == -1.0
    assert published_average([run, CellResult(slot(published=None), {0: 1.0})]) is None


def test_accuracy_is_taken_after_the_round_it_is_asked_for(tmp_path):
    keep(RunResults(tmp_path), RUN, plain("cosine"), [3.0, 2.0, 1.0])
    (found,) = find(Table("table6", "T", (slot(question=None, at=2),), (0,)), RunResults(tmp_path))
    assert found.values == {0: 0.2}


def test_where_nothing_is_planted_the_reference_is_the_truth(tmp_path):
    answers = RunResults(tmp_path)
    keep(answers, RUN, plain("cosine"), [1.0, 2.0, 3.0])
    answers.keep(RUN, plain("norm").key(RUN), asdict(answer([10.0, 20.0, 30.0])))
    (found,) = find(Table("beyond", "T", (slot(reference=plain("norm")),), (0,)), answers)
    assert found.mean == pytest.approx(1)


def test_clients_that_miss_rounds_are_compared_by_the_round():
    half = replace(RUN, participation=0.5)
    often = answer([4.0, 3.0, 0.0], {"1": [2.0, 3.0, None], "2": [2.0, None, None]}, [2, 1, 0])
    assert worths(often, RUN) == [4.0, 3.0, 0.0]
    assert worths(often, half)[:2] == [2.0, 3.0]
    assert math.isnan(worths(often, half)[2])
    assert worths(often, half, even=True)[:2] == pytest.approx([2.0, 3.0])
    assert math.isnan(worths(often, half, even=True)[2])
    state = answer([0.5, 0.3, 0.2], {"1": [0.9, 0.9, 0.9]}, [1, 1, 1])
    assert worths(state, half) == worths(state, half, even=True) == [0.5, 0.3, 0.2]


def test_a_slot_may_even_out_which_rounds_its_clients_were_in(tmp_path):
    half = replace(RUN, participation=0.5)
    rich_and_poor = {"1": [None, 9.0, 8.0], "2": [3.0, 2.0, None], "3": [3.0, None, 1.0]}
    answers = RunResults(tmp_path)
    keep(answers, half, plain("cosine"), [3.0, 2.0, 1.0])
    answers.keep(half, plain("norm").key(half), asdict(answer([6.0, 11.0, 9.0], rich_and_poor, [2, 2, 2])))
    slots = tuple(
        replace(slot(question=plain("norm"), published=None, evened=even), experiment=half) for even in (False, True)
    )
    plainly, evenly = find(Table("beyond", "T", slots, (0,)), answers)
    assert (plainly.mean, evenly.mean) == (pytest.approx(-0.5), pytest.approx(1))
    columns = [replace(found, slot=replace(found.slot, column=f"{found.slot.evened}")) for found in (plainly, evenly)]
    assert grids(columns).splitlines()[-1].endswith("| −0.50 (1) | 1.00 (1) | −0.50 |")  # the average counts runs once
