import math
import shutil

import numpy as np
import pytest

from fedcoast.simulation.experiment import Experiment
from little_tables import SMALL, reproduce
from paper.cell_results import fill
from paper.curves import band, running_scores, window_agreement
from paper.paper_tables import TABLES
from paper.plots import draw
from paper.reproduction import Places, write
from paper.run_results import RunResult

ANSWER = RunResult({}, [3.0, 1.0], [3, 2], {"3": [1.0, None], "1": [2.0, 0.5], "2": [0.0, 0.5]}, 0.0, None)


def test_scores_add_up_in_the_order_of_the_rounds():
    numbers, scores = running_scores(ANSWER)
    assert numbers == [1, 2, 3]
    np.testing.assert_array_equal(scores, [[2, 0.5], [2, 1], [3, 1]])


def test_a_window_of_all_rounds_is_the_agreement_of_the_total():
    assert window_agreement(ANSWER, [2.0, 1.0], 3) == ([3], [pytest.approx(1)])
    numbers, values = window_agreement(ANSWER, [2.0, 1.0], 1)
    assert numbers == [1, 2, 3]
    assert values == [pytest.approx(1), pytest.approx(-1), pytest.approx(1)]
    assert window_agreement(ANSWER, [2.0, 1.0], 4) == ([], [])


def test_a_band_leaves_undefined_numbers_out():
    least, mean, most = band([[1.0, math.nan, math.nan], [0.0, 0.5, math.nan]])
    np.testing.assert_array_equal(least, [0, 0.5, np.nan])
    np.testing.assert_array_equal(mean, [0.5, 0.5, np.nan])
    np.testing.assert_array_equal(most, [1, 0.5, np.nan])


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """Tables 1, 2 and 6 of little federations, drawn into a folder of one's choice."""
    monkeypatch.setattr(
        "paper.paper_tables.experiment",
        lambda size, column, **changes: Experiment(**{**SMALL, **changes}),
    )
    places = Places(tmp_path / "runs", tmp_path / "results")
    tables = [TABLES[name]("smoke", (0,)) for name in ("table1", "table2", "table6")]
    reproduce(tables, places)
    write(tables, places, lambda table: "the command")
    found = {table.name: fill(table, places.run_results) for table in tables}
    return lambda folder: draw(tables, found, places.run_results, tmp_path / folder)


@pytest.mark.slow
def test_every_picture_is_drawn_and_is_the_same_file_for_the_same_numbers(drawn):
    once, again = drawn("once"), drawn("again")
    assert (once[1], again[1]) == ([], [])
    assert [file.name for file in once[0]] == [
        "methods.svg",
        "windows-digits.svg",
        "scores-digits.svg",
        "horizons.svg",
        "accuracy.svg",
    ]
    assert [file.read_bytes() for file in once[0]] == [file.read_bytes() for file in again[0]]


@pytest.mark.slow
def test_pictures_of_credits_are_left_where_only_tables_tell_the_answers(drawn, tmp_path):
    whole, _ = drawn("whole")
    shutil.rmtree(tmp_path / "results" / "answers")
    recorded_only, left = drawn("recorded only")
    assert [file.name for file in left] == ["windows-digits.svg", "scores-digits.svg"]
    assert not any(file.exists() for file in left)
    same = [file.read_bytes() for file in whole if file.name in {other.name for other in recorded_only}]
    assert [file.read_bytes() for file in recorded_only] == same


def test_nothing_is_drawn_of_what_was_not_run(tmp_path):
    tables = [TABLES[name]("quick", (0,)) for name in TABLES]
    run_results = Places(tmp_path, tmp_path).run_results
    found = {table.name: fill(table, run_results) for table in tables}
    assert draw(tables, found, run_results, tmp_path / "images") == ([], [])
