"""The choice of a default: nothing is judged by what it was tuned on."""

import pytest

from fedcoast import CoAst
from paper.cell_results import CellResult
from paper.cells import experiment
from paper.default_selection import DIGITS, RIVALS, candidates, default_cells, grid, holdout, shortlist, tuning

SEEDS = tuple(range(6))


def runs(table):
    return {run for cell in table.cells for run in table.runs(cell)}


@pytest.mark.parametrize("size", ["smoke", "quick", "paper"])
def test_no_run_is_both_tuned_on_and_judged_by(size):
    tuned, judged = runs(tuning(size, SEEDS)), runs(holdout(size, SEEDS))
    assert tuned
    assert judged
    assert not tuned & judged


def test_what_was_tuned_on_is_cifar10_fashion_mnist_and_digits_with_even_seeds_in_six_settings():
    tuned = runs(tuning("quick", SEEDS))
    assert {(run.dataset, run.seed % 2) for run in tuned} == {("cifar10", 0), ("fashion-mnist", 0), ("digits", 0)}
    assert len(tuned) == 3 * 6 * 2 * 3  # datasets, settings, modes, seeds
    judged = {(run.dataset, run.model, run.seed % 2) for run in runs(holdout("quick", SEEDS))}
    assert ("cifar10", "tiny-resnet", 1) in judged
    assert len(judged) == 1 + 2 * 3


def test_both_tables_have_every_candidate_and_one_is_the_default():
    rows = [{cell.row for cell in table("quick", SEEDS).cells} for table in (tuning, holdout)]
    assert rows[0] == rows[1]
    trained = experiment("quick", "1")
    specs = dict(candidates(trained))
    assert specs["CoAst, our default"].assessor().settings == CoAst().settings
    former = CoAst(reference="movement", horizon=2, past_weight=0.5, line_weight=0, layers="first+head")
    assert specs["votes, ends, k = 2, past 0.5"].assessor().settings == former.settings
    assert {"cgsv", "fed-pca", "cosine", "norm", "shapfed"} <= set(RIVALS)


def test_the_pages_show_means_over_the_cells_that_were_run():
    table = tuning("quick", (0,))
    values = {
        "votes, ends, k = 2, past 0.5, observer": 0.5,
        "CoAst, our default, observer": 0.75,
        "cgsv, in-loop": -1.0,
    }
    found = [
        CellResult(cell, {0: values[cell.row]} if cell.row in values and cell.column == DIGITS else {})
        for cell in table.cells
    ]
    (line,) = [line for line in grid(found).splitlines() if line.startswith("| ends, k = 2 ")]
    assert line.split("|")[2:10] == [f" {cell} " for cell in ["not run", "not run", "0.50", *["not run"] * 5]]
    short = shortlist(found).splitlines()
    assert next(line for line in short if line.startswith("| CoAst, our default, observer |")).count("0.75") == 7
    cells = default_cells(found).splitlines()
    (line,) = [line for line in cells if line.startswith("| quantity, observer |")]
    assert line == "| quantity, observer | not run | not run | 0.75 (1) | 0.75 (1 of 3) |"
    assert sum("in-loop" in line for line in cells) == sum("observer" in line for line in cells) == 6
    in_loop = ["in-loop" in line for line in short[2:-2]]
    assert in_loop == sorted(in_loop)  # those that observe come first
