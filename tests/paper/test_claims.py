from dataclasses import replace

from paper.cell_results import CellResult
from paper.claims import claims, default_margins, faults
from paper.default_selection import RIVALS
from paper.pages import headline
from paper.paper_tables import TABLES

VOTES = "CoAst, votes against movement, in-loop"


def table1(**values):
    """Table 1 of the quick size with these rows run in the first cell of the first setting."""
    cells = TABLES["table1"]("quick", (0, 1)).cells
    cell = ("quantity", "1")
    return [CellResult(s, values.get(s.row, {}) if (s.section, s.column) == cell else {}) for s in cells]


def row_of(text, words):
    (line,) = [line for line in text.splitlines() if words in line]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_claim_is_a_difference_over_the_cells_and_seeds_that_both_rows_have():
    found = table1(**{VOTES: {0: 1.0}, "SV (exact Shapley)": {0: 0.5, 1: 0.9}})
    assert row_of(claims({"table1": found}), "less SV")[:5] == [
        "1",
        "CoAst less SV (exact Shapley)",
        "0.02",
        "not run",  # our default
        "0.50 (1 of 16)",
    ]
    assert row_of(claims({"table1": found}), "less CGSV")[2:4] == ["0.61", "not run"]


def test_a_difference_comes_with_the_standard_error_over_its_cells():
    cells = TABLES["table1"]("quick", (0,)).cells
    ours = {"1": 1.0, "2": 0.6}
    found = [CellResult(s, {0: ours[s.column] if s.row == VOTES else 0.5} if s.column in ours else {}) for s in cells]
    # Eight cells, four at 0.5 and four at 0.1: a standard deviation of 0.2 √(8/7), divided by √8.
    assert row_of(claims({"table1": found}), "less SV")[4] == "0.30 ± 0.08 (8 of 16)"
    assert row_of(headline(found), VOTES)[-1] == "0.80 ± 0.08 (8 of 16) [0.99]"


def test_the_default_is_held_against_every_other_method_on_the_same_cells():
    cells = TABLES["holdout"]("quick", (0,)).cells
    low = {"cgsv, observer": 0.4, "norm, in-loop": 1.0}
    text = default_margins([CellResult(cell, {0: low.get(cell.row, 0.9)}) for cell in cells])
    assert row_of(text, "| cgsv |") == ["cgsv", "0.50 ± 0.00", "0.00 ± 0.00"]
    assert row_of(text, "| norm |") == ["norm", "0.00 ± 0.00", "−0.10 ± 0.00"]
    assert len(text.splitlines()) == 2 + 4 + len(RIVALS)  # head, readings and SV, rivals


def test_the_published_differences_are_those_the_paper_states_where_it_is_right():
    found = {name: [CellResult(cell, {}) for cell in TABLES[name]("quick", (0,)).cells] for name in TABLES}
    text = claims(found)
    assert row_of(text, "less Fed-PCA")[2] == "0.94"
    assert row_of(text, "less Exp2")[2] == "0.41"
    assert row_of(text, "less Exp3")[2] == "0.26"
    assert row_of(text, "less Exp3")[-1] == "–"  # trained in-loop only
    assert row_of(text, "10 clients")[2] == "−0.07"
    assert "0.0 " not in text


def test_the_public_codes_baselines_are_held_against_the_methods_seed_by_seed():
    found = table1(**{"CGSV": {0: 1.0, 1: 0.0}, "CGSV, the public code": {0: 0.5}})
    assert row_of(faults(found), "CGSV") == ["CGSV", "0.50", "0.50", "1.00", "0.50", "1"]
    assert row_of(faults(found), "Fed-PCA")[1:] == ["not run"] * 4 + ["0"]


def test_nothing_is_concluded_from_what_was_not_run():
    found = [replace(cell_result, values={}) for cell_result in table1()]
    text = claims({"table1": found})
    assert text.count("not run") == 3 * 8
