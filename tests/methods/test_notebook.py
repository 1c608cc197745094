"""What notebooks show of an answer."""

import sys

import pytest

from fedcoast import CoAst, MissingExtra
from fedcoast.methods.assessment import Assessment
from fedcoast.testing import toy_rounds


@pytest.fixture(scope="module")
def answer():
    assessor = CoAst(keep=0.5)
    for view in toy_rounds():
        assessor.observe(view)
    return assessor.assessment()


def test_a_frame_has_a_row_for_each_client_best_first(answer):
    frame = answer.to_frame()
    assert tuple(frame.index) == answer.ranking
    assert frame.index.name == "client"
    assert frame["score"].to_dict() == dict(answer.scores)
    assert frame["rank"].to_dict() == answer.ranks


def test_a_frame_has_a_column_for_each_round_and_nan_for_absences(answer):
    frame = answer.to_frame()
    for number, credits in answer.credits.items():
        column = frame[f"round {number}"]
        assert column.dropna().to_dict() == dict(credits)


def test_without_pandas_the_error_says_what_to_install(answer, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"pandas.*pip install 'fedcoast\[plots\]'"):
        answer.to_frame()


def test_a_notebook_shows_a_table_in_which_names_are_data():
    hostile = Assessment(
        "coast", {"<script>alert(1)</script>": 2.0, "b": 1.0}, rounds_scored={"<script>alert(1)</script>": 1, "b": 1}
    )
    shown = hostile._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert shown.index("&lt;script") < shown.index(">b<")


def test_a_long_table_says_that_there_is_more():
    clients = range(100)
    shown = Assessment("coast", dict.fromkeys(clients, 0.0), rounds_scored=dict.fromkeys(clients, 1))._repr_html_()
    assert shown.count("<tr>") == 31
    assert "70 more clients" in shown


def test_text_is_text_in_a_notebook_too(answer, monkeypatch):
    outside = str(answer)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert str(answer) == outside != ""
