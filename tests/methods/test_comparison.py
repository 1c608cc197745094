"""Methods side by side: one pass over the rounds, costs, agreement, and nobody takes the others down."""

import csv
import io
import json
import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from fedcoast import METHODS, Assessment, BadSetting, CoAst
from fedcoast.methods import Chance, Constant, Cosine, Norm, Shapley, Size
from fedcoast.methods.comparison import Comparison, compare
from fedcoast.stats.ranking import kendall, spearman
from fedcoast.testing import toy_rounds, toy_utility
from federations import federation, show

TRUTH = {"ann": 3.0, "bob": 2.0, "cid": 1.0}


class Falling(Norm):
    """Fails in round 3, in a way nobody planned."""

    def _step(self, view, state):
        if view.number == 3:
            raise IndexError("list index out of range")
        return super()._step(view, state)


class Undefined(Norm):
    def _scores(self, sums):
        return dict.fromkeys(sums, float("nan"))


def test_every_assessor_answers_as_it_would_alone():
    shown = federation()
    comparison = compare(iter(shown), {"coast": CoAst(), "cosine": Cosine()})
    assert comparison.assessments == {"coast": show(CoAst(), shown), "cosine": show(Cosine(), shown)}
    assert comparison.clients == ("ann", "bob", "cid")
    assert not comparison.errors


def test_the_rounds_are_drunk_once():
    drawn = []

    def rounds():
        for fl_round in federation():
            drawn.append(fl_round.number)
            yield fl_round

    calls = []
    compare(rounds(), {"a": Cosine(), "b": Norm()}, on_round=lambda fl_round: calls.append(fl_round.number))
    assert drawn == calls == [1, 2, 3, 4, 5, 6]


def test_who_fails_is_dropped_with_the_reason_and_the_others_go_on():
    assessors = {"falling": Falling(), "size": Size(), "undefined": Undefined(), "norm": Norm()}
    comparison = compare(federation(), assessors)
    assert list(comparison.assessments) == ["norm"]
    assert comparison.errors["falling"] == "round 3: IndexError: list index out of range"
    assert comparison.errors["size"].startswith("round 1 has no aggregation weights")
    assert comparison.errors["undefined"].startswith("its answer: ValueError: Out of range float values")
    assert comparison.assessments["norm"] == show(Norm(), federation())
    assert comparison.seconds.keys() == {"norm"}
    assert assessors["falling"].last_round == 2  # it is not shown what follows


def test_a_round_of_ballots_drops_those_who_need_more():
    shown = [replace(fl_round, ballot_keep=0.1) for fl_round in federation()]
    comparison = compare(shown, {"coast": CoAst(), "cosine": Cosine()})
    assert list(comparison.assessments) == ["coast"]
    assert "holds ballots of keep=0.1 only; cosine needs the whole uploads" in comparison.errors["cosine"]


def test_a_folder_that_breaks_off_is_the_callers_affair():
    def rounds():
        yield from federation()[:2]
        raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone"):
        compare(rounds(), {"norm": Norm()})


def test_what_is_compared_are_assessors_by_name():
    with pytest.raises(BadSetting, match="assessors by name; got 'cosine': ABCMeta"):
        compare([], {"cosine": Cosine})


def test_agreement_is_symmetric_and_undefined_beside_a_constant():
    comparison = compare(federation(), {"cosine": Cosine(), "norm": Norm(), "constant": Constant()})
    scores = {name: list(answer.scores.values()) for name, answer in comparison.assessments.items()}
    for by, function in (("spearman", spearman), ("kendall", kendall)):
        table = comparison.agreement(by)
        assert table["cosine"]["norm"] == table["norm"]["cosine"] == function(scores["cosine"], scores["norm"])
        assert table["cosine"]["cosine"] == pytest.approx(1)
        assert all(math.isnan(value) for value in table["constant"].values())


def test_the_planted_truth_is_found_or_not():
    comparison = compare(federation(), {"cosine": Cosine(), "norm": Norm()}, truth=TRUTH)
    assert comparison.spearman() == {"cosine": -0.5, "norm": -1}  # the noisiest takes the largest steps
    assert compare(federation(), {"cosine": Cosine()}).spearman() == {}
    assert compare(federation(), {"cosine": Cosine()}, truth={"ann": 1.0}).spearman() == {}


def test_costs_are_counted():
    comparison = compare(toy_rounds(), {"shapley": Shapley(toy_utility()), "norm": Norm()})
    assert comparison.evaluations == {"shapley": 5 * 2**4}
    assert all(seconds > 0 for seconds in comparison.seconds.values())
    assert comparison.peak_bytes == {}


def test_memory_is_measured_when_asked():
    class Greedy(Norm):
        def _step(self, view, state):
            hold = np.ones(500_000)  # four megabytes, for the time of a round
            return super()._step(view, state) if hold.any() else ({}, state)

    class Hoarding(Greedy):
        def _step(self, view, state):
            self.attic = [*getattr(self, "attic", []), np.ones(250_000)]
            return super()._step(view, state)

    comparison = compare(
        federation(rounds=3), {"norm": Norm(), "greedy": Greedy(), "hoarding": Hoarding()}, measure_memory=True
    )
    assert comparison.peak_bytes["norm"] < 1e6
    assert 4e6 < comparison.peak_bytes["greedy"] < 5e6
    assert 10e6 < comparison.peak_bytes["hoarding"] < 11e6  # three times two megabytes held, four on top
    assert not tracemalloc.is_tracing()


def test_whoever_traces_memory_already_goes_on_tracing():
    tracemalloc.start()
    try:
        compare(federation(rounds=1), {"norm": Norm()}, measure_memory=True)
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


def test_json_holds_everything_with_null_for_what_is_undefined():
    comparison = compare(
        federation(), {"cosine": Cosine(), "constant": Constant(), "falling": Falling()}, TRUTH, measure_memory=True
    )
    data = json.loads(comparison.to_json())
    assert data["format"] == "fedcoast-comparison"
    assert data["planted"] == [3.0, 2.0, 1.0]
    assert data["methods"]["cosine"]["spearman_with_planted"] == -0.5
    assert data["methods"]["constant"]["spearman_with_planted"] is None
    assert data["agreement"]["kendall"]["cosine"] == {"cosine": pytest.approx(1), "constant": None}
    assert data["errors"] == {"falling": "round 3: IndexError: list index out of range"}
    inner = Assessment.from_json(json.dumps(data["methods"]["cosine"]["assessment"]))
    assert inner == comparison.assessments["cosine"]
    assert data["methods"]["cosine"]["peak_bytes"] > 0


def test_csv_has_a_row_for_each_method_and_client():
    odd = ("=cmd()", 'a,b\n"c"', 7)
    comparison = compare(federation(clients=odd), {"cosine": Cosine(), "chance": Chance()})
    text = comparison.to_csv()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(rows) == 6
    assert {row["client"] for row in rows} == {"'=cmd()", 'a,b\n"c"', "7"}  # no spreadsheet runs a client's name
    assert [row["method"] for row in rows] == ["cosine"] * 3 + ["chance"] * 3
    best = next(row for row in rows if row["method"] == "cosine" and row["rank"] == "1")
    assert float(best["score"]) == max(comparison.assessments["cosine"].scores.values())
    assert float(best["seconds"]) > 0
    assert Comparison({}).to_csv() == ""


def test_it_prints_scores_agreement_and_cost():
    comparison = compare(federation(), {"coast": CoAst(), "cosine": Cosine(), "falling": Falling()}, TRUTH)
    text = str(comparison)
    for word in ("scores", "agreement of the methods", "cost", "planted order", "coast", "cid", "(1)", "-.50"):
        assert word in text
    assert "no answer from falling: round 3: IndexError" in text
    assert str(Comparison({}, errors={"x": "why\x1b[2J"})) == "no answer from x: why\\x1b[2J"


@pytest.mark.parametrize("width", [40, 80, 200])
def test_tables_fit_the_width_they_are_given(width):
    from rich.console import Console

    many = federation(rounds=3, clients=tuple(f"client{place}" for place in range(30)), layers={"w": (30, 4)})
    names = ["coast", "cgsv", "cosine", "norm", "chance", "fed-pca", "shapfed"]
    comparison = compare(many, {name: METHODS[name].make() for name in names})
    out = io.StringIO()
    Console(file=out, width=width, color_system=None, force_terminal=False).print(comparison)
    assert max(map(len, out.getvalue().splitlines())) <= width
    assert "…" not in out.getvalue()  # nothing is cut off
    assert all(out.getvalue().count(f"client{place} ") >= 1 for place in range(30))


def test_a_client_may_be_called_what_rich_would_take_for_markup():
    comparison = compare(federation(clients=("[red]ann", "bob", "cid")), {"norm": Norm()})
    assert "[red]ann" in str(comparison)
