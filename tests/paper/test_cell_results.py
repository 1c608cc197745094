import math
from dataclasses import replace

import pytest

from fedcoast.simulation.experiment import Experiment
from paper.cell_results import CellResult, average, comparable_scores, fill, published_average
from paper.cells import Cell, Table
from paper.method_specs import plain
from paper.pages import cell_text, grids, headline, page
from paper.run_results import RUN_KEY, Facts, RunResult, RunResults

RUN = Experiment(clients=3)
MADE = {"machine": "a machine", "python": "3", "commit": "abc", "versions": {}, "when": "now"}


def cell(**changes):
    given = {"spec": plain("cosine"), "published": 0.775, **changes}
    return Cell("noise", "cosine", "1", RUN, **given)


def run_result(scores, credits=None, seen=None):
    credits = {"1": scores} if credits is None else credits
    return RunResult({}, scores, seen or [1] * len(scores), credits, 0.5, None, MADE)


def keep(run_results, run, spec, scores):
    run_results.keep(run, RUN_KEY, Facts("Digits", [0.1, 0.2], [3.0, 2.0, 1.0]).to_json())
    run_results.keep(run, spec.key(run), run_result(scores).to_json())


def test_seeds_become_a_mean_and_a_spread(tmp_path):
    spec, table = plain("cosine"), Table("table1", "T", (cell(),), (0, 1, 2))
    keep(RunResults(tmp_path), replace(RUN, seed=0), spec, [3.0, 2.0, 1.0])
    keep(RunResults(tmp_path), replace(RUN, seed=2), spec, [1.0, 2.0, 3.0])
    (found,) = fill(table, RunResults(tmp_path))
    assert found.values == {0: pytest.approx(1), 2: pytest.approx(-1)}
    assert (found.mean, found.spread) == (pytest.approx(0), pytest.approx(math.sqrt(2)))
    assert cell_text(found) == "0.00 ± 1.41 (2) [0.78]"


def test_what_was_not_run_says_so_and_nothing_else(tmp_path):
    (found,) = fill(Table("table1", "T", (cell(),), (0,)), RunResults(tmp_path))
    assert found.values == {}
    assert cell_text(found) == "not run [0.78]"
    text = page(Table("table1", "T", (cell(),), (0,)), [found], RunResults(tmp_path), "the command")
    assert "not run" in text
    assert "the command" in text
    assert "What was trained" not in text
    assert "no runs yet" in headline([found])


def test_a_run_without_the_answer_is_not_run(tmp_path):
    RunResults(tmp_path).keep(RUN, RUN_KEY, Facts("Digits", [0.1], [3.0, 2.0, 1.0]).to_json())
    (found,) = fill(Table("table1", "T", (cell(),), (0,)), RunResults(tmp_path))
    assert found.values == {}


def test_scores_that_tell_nobody_apart_are_undefined_and_never_zero(tmp_path):
    keep(RunResults(tmp_path), RUN, plain("cosine"), [0.0, 0.0, 0.0])
    (found,) = fill(Table("table1", "T", (cell(),), (0,)), RunResults(tmp_path))
    assert found.mean is None
    assert cell_text(found) == "undefined (1) [0.78]"
    assert cell_text(CellResult(cell(), {0: 1.0, 1: math.nan})) == "1.00 (2, 1 undefined) [0.78]"


def test_an_average_counts_what_was_run_and_the_papers_numbers_for_the_same():
    run, idle = CellResult(cell(published=0.5), {0: 1.0}), CellResult(cell(published=-1.0), {})
    assert average([run, idle]) == (1.0, 1, 2)
    assert published_average([run, idle]) == 0.5
    assert published_average([idle, idle]) == -1.0
    assert published_average([run, CellResult(cell(published=None), {0: 1.0})]) is None


def test_accuracy_is_taken_after_the_round_it_is_asked_for(tmp_path):
    keep(RunResults(tmp_path), RUN, plain("cosine"), [3.0, 2.0, 1.0])
    (found,) = fill(Table("table6", "T", (cell(spec=None, at=2),), (0,)), RunResults(tmp_path))
    assert found.values == {0: 0.2}


def test_where_no_truth_is_known_the_reference_is_the_truth(tmp_path):
    run_results = RunResults(tmp_path)
    keep(run_results, RUN, plain("cosine"), [1.0, 2.0, 3.0])
    run_results.keep(RUN, plain("norm").key(RUN), run_result([10.0, 20.0, 30.0]).to_json())
    (found,) = fill(Table("beyond", "T", (cell(reference=plain("norm")),), (0,)), run_results)
    assert found.mean == pytest.approx(1)


def test_clients_that_miss_rounds_are_compared_by_the_round():
    half = replace(RUN, participation=0.5)
    often = run_result([4.0, 3.0, 0.0], {"1": [2.0, 3.0, None], "2": [2.0, None, None]}, [2, 1, 0])
    assert comparable_scores(often, RUN) == [4.0, 3.0, 0.0]
    assert comparable_scores(often, half)[:2] == [2.0, 3.0]
    assert math.isnan(comparable_scores(often, half)[2])
    assert comparable_scores(often, half, adjust=True)[:2] == pytest.approx([2.0, 3.0])
    assert math.isnan(comparable_scores(often, half, adjust=True)[2])
    state = run_result([0.5, 0.3, 0.2], {"1": [0.9, 0.9, 0.9]}, [1, 1, 1])
    assert comparable_scores(state, half) == comparable_scores(state, half, adjust=True) == [0.5, 0.3, 0.2]


def test_a_cell_may_adjust_for_the_rounds_its_clients_missed(tmp_path):
    half = replace(RUN, participation=0.5)
    rich_and_poor = {"1": [None, 9.0, 8.0], "2": [3.0, 2.0, None], "3": [3.0, None, 1.0]}
    run_results = RunResults(tmp_path)
    keep(run_results, half, plain("cosine"), [3.0, 2.0, 1.0])
    run_results.keep(half, plain("norm").key(half), run_result([6.0, 11.0, 9.0], rich_and_poor, [2, 2, 2]).to_json())
    cells = tuple(
        replace(cell(spec=plain("norm"), published=None, adjusted=even), experiment=half) for even in (False, True)
    )
    raw, adjusted = fill(Table("beyond", "T", cells, (0,)), run_results)
    assert (raw.mean, adjusted.mean) == (pytest.approx(-0.5), pytest.approx(1))
    columns = [replace(found, cell=replace(found.cell, column=f"{found.cell.adjusted}")) for found in (raw, adjusted)]
    assert grids(columns).splitlines()[-1].endswith("| −0.50 (1) | 1.00 (1) | −0.50 |")  # the average counts runs once
