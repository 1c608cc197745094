"""`fedcoast compare`."""

import csv
import io
import json
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from fedcoast import METHODS, BadSetting, Recorder
from fedcoast.cli.comparing import compare
from fedcoast.cli.method_choice import method_names
from fedcoast.rounds.clients import client_to_json
from federations import federation

app = typer.Typer()
app.command()(compare)

FREE = [name for name, method in METHODS.items() if not {"utility", "gradient"} & set(method.needs)]


def record(folder, rounds, about=None):
    with Recorder(folder, about=about or {}) as recorder:
        for fl_round in rounds:
            recorder.observe(fl_round)
    return str(folder)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    planted = [{"client": client_to_json(c), "value": v} for c, v in (("ann", 3), ("bob", 2), ("cid", 1))]
    return record(tmp_path_factory.mktemp("runs") / "run", federation(rounds=4), {"planted": planted})


def ask(*arguments):
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_all_asks_everyone_and_says_who_cannot_answer(run):
    data = json.loads(ask(run, "--json").stdout)
    assert {*data["methods"], *data["errors"]} == set(METHODS)
    assert set(data["methods"]) == set(FREE) - {"size"}
    assert "has no aggregation weights" in data["errors"]["size"]
    assert (
        data["errors"]["shapley"]
        == "it needs validation data: give your own (--utility module:function, which values a model)"
    )


def test_some_are_asked_by_name(run):
    text = ask(run, "--methods", "coast, cosine").stdout
    for word in ("scores", "agreement of the methods", "cost", "coast", "cosine", "true order", "ann"):
        assert word in text
    assert "norm" not in text


def test_csv_is_for_spreadsheets(run):
    rows = list(csv.DictReader(io.StringIO(ask(run, "--methods", "norm,cosine", "--csv").stdout)))
    assert [(row["method"], row["rank"]) for row in rows] == [(m, r) for m in ("norm", "cosine") for r in "123"]


def test_memory_is_measured_unless_it_should_not_be(run):
    assert "peak memory" in ask(run, "--methods", "norm").stdout
    assert "peak memory" not in ask(run, "--methods", "norm", "--no-memory").stdout


@pytest.mark.parametrize(("given", "hint"), [("cosin", r"got 'cosin' \(did you mean cosine\?\)"), (",", "got ','")])
def test_an_unknown_name_is_refused(run, given, hint):
    with pytest.raises(BadSetting, match=rf"methods must be all, or names among coast, .*{hint}"):
        ask(run, "--methods", given)


def test_if_nobody_can_answer_the_reasons_are_the_error(run):
    with pytest.raises(BadSetting, match=r"no method has an answer about .*run. size: round 1 has no"):
        ask(run, "--methods", "size")


def test_too_few_rounds_for_anybody_is_an_exit_code_of_its_own(tmp_path):
    short = record(tmp_path / "short", federation(rounds=1))
    assert ask(short, "--methods", "coast").exit_code == 4
    assert ask(short, "--methods", "coast,norm").exit_code == 0


def test_bad_uploads_may_stop_a_method(tmp_path):
    (first, *rest) = federation(rounds=4)
    folder = record(tmp_path / "run", [replace(first, quarantined={"dan": "sent NaN"}), *rest])
    answer = json.loads(ask(folder, "--methods", "norm", "--bad-uploads", "raise", "--json").stdout)
    assert answer["methods"]["norm"]["assessment"]["settings"]["bad_uploads"] == "raise"


def test_names_are_taken_once():
    assert method_names("norm, norm,cosine") == ["norm", "cosine"]
    assert method_names(" all ") == list(METHODS)


@pytest.mark.slow
def test_a_run_of_the_lab_has_an_answer_from_every_method(tmp_path):
    from fedcoast.simulation.federation import Federation
    from fedcoast.simulation.presets import preset
    from fedcoast.simulation.simulation import simulate

    changes = {"rounds": 6, "clients": 5, "weighting": "samples", "setting": "quantity"}
    simulate(Federation(preset("quick", "digits", "mlp", **changes)), tmp_path / "run")
    result = ask(str(tmp_path / "run"), "--json")
    data = json.loads(result.stdout)
    assert set(data["methods"]) == set(METHODS)
    assert data["errors"] == {}
    assert data["methods"]["size"]["spearman_with_planted"] == 1
    assert data["methods"]["shapley"]["evaluations"] == 6 * 2**5
    assert data["methods"]["constant"]["spearman_with_planted"] is None
