"""The judgement of the default: nothing is judged by what it was chosen on."""

import pytest

from fedcoast import CoAst
from paper.bank import read_all
from paper.bank_page import RESULTS, is_tuning
from paper.cell_results import CellResult
from paper.cells import experiment
from paper.default_selection import RIVALS, SHAPLEY, compared, default_cells, holdout, holdout_summary, in_short

SEEDS = tuple(range(6))


def runs(table):
    return {run for cell in table.cells for run in table.runs(cell)}


def test_no_run_that_the_default_was_chosen_by_judges_it():
    chosen_by = {run.experiment for run in read_all(RESULTS / "bank") if is_tuning(run)}
    assert len(chosen_by) >= 58
    assert not chosen_by & runs(holdout("quick", SEEDS))


@pytest.mark.parametrize("size", ["smoke", "quick", "paper"])
def test_configuration_1_judges_with_odd_seeds_and_the_others_with_all(size):
    table = holdout(size, SEEDS)
    for cell in table.cells:
        seeds = {run.seed for run in table.runs(cell)}
        assert seeds == ({1, 3, 5} if cell.column in ("1", "digits") else set(SEEDS))


def test_the_default_is_judged_beside_shapley_the_readings_and_every_rival_without_validation_data():
    observed, in_loop = (experiment("quick", "1", aggregation=way) for way in ("fedavg", "pruned"))
    rows = dict(compared(observed))
    assert rows["CoAst, our default"].assessor().settings == CoAst().settings
    assert {"cgsv", "fed-pca", "cosine", "norm", "shapfed", "spectralfed", "fedce-novelty"} <= set(RIVALS) <= set(rows)
    assert rows.keys() - dict(compared(in_loop)).keys() == {SHAPLEY[0]}


def test_the_page_shows_means_over_the_cells_that_were_run_and_the_default_in_each():
    table = holdout("quick", (0, 1))
    values = {"CoAst, our default, observer": 0.75, "cgsv, in-loop": -1.0}
    found = [
        CellResult(cell, {1: values[cell.row]} if cell.row in values and cell.column == "1" else {})
        for cell in table.cells
    ]
    page = holdout_summary(found).splitlines()
    assert next(line for line in page if line.startswith("| CoAst, our default, observer |")).count("0.75") == 5
    in_loop = ["in-loop" in line for line in page[2:-2]]
    assert in_loop == sorted(in_loop)  # those that observe come first
    short = in_short(found).splitlines()
    assert short[2] == "| CoAst, our default | 0.75 ± 0.00 (4 of 16) | not run |"
    assert next(line for line in short if line.startswith("| SV")) == "| SV (exact Shapley) | not run | – |"
    lines = default_cells(found).splitlines()
    (line,) = [line for line in lines if line.startswith("| quantity, observer |")]
    assert line == "| quantity, observer | 0.75 (1) | not run | not run | not run | 0.75 (1 of 4) |"
    assert sum("in-loop" in line for line in lines) == sum("observer" in line for line in lines) == 4
