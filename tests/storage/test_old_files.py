"""Files of commit 4893105, before rooms and options were renamed, are read or refused with the command that mends them.

`fixtures/before_renames.zip` holds what that commit wrote of eight rounds of three clients: a run with credits, answers
of four methods, two saved states and a report. One client is absent in round 3, one upload is not finite in round 5.
"""

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from fedcoast import METHODS, Assessment, CoAst, Recorder, replay
from fedcoast.audit import verify
from fedcoast.methods.remaking import remade
from fedcoast.reports.assess_rounds import build_report
from fedcoast.reports.page import page
from federations import show

ARCHIVE = Path(__file__).parent.parent / "fixtures" / "before_renames.zip"
# What was the default then, with another horizon.
THEN = {"reference": "movement", "horizon": 1, "past_weight": 0.5, "line_weight": 0, "layers": "first+head"}
FINISHED = ("cgsv", "shapfed")  # need nothing but the rounds


@pytest.fixture
def old(tmp_path):
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path)
    return tmp_path


def answer(old, name):
    return Assessment.from_json((old / f"{name}.json").read_text())


def test_an_old_run_needs_no_conversion_and_gives_the_same_answer(old):
    coast = CoAst(keep=0.5, **THEN)
    assert show(coast, list(replay(old / "old_run"))) == answer(old, "coast")


@pytest.mark.parametrize("name", FINISHED)
def test_old_answers_of_other_methods_are_made_again_from_the_run(old, name):
    recorded = answer(old, name)
    again = remade(recorded.method, recorded.settings)
    scores = show(again, list(replay(old / "old_run"))).scores
    assert scores == pytest.approx(recorded.scores, rel=1e-12)  # sums of floats differ in their last bits by processor


def test_old_answers_are_read_under_the_options_of_today(old):
    for name in ("coast", "cgsv", "shapfed", "gtg-shapley"):
        recorded = answer(old, name)
        assert set(recorded.settings) - {"utility"} == set(METHODS[name].config.options())
        assert name in page(build_report(recorded, title="old"))
    assert Assessment.from_csv((old / "coast.csv").read_text(encoding="utf-8")).scores == answer(old, "coast").scores


def test_old_states_go_on(old):
    for name, options in {"coast": {"keep": 0.5, "horizon": 1}, "cgsv": {"momentum": 0.9}}.items():
        if name == "coast":
            options |= THEN
        assessor = METHODS[name].make(**options)
        assessor.restore(old / f"{name}.state")
        assert assessor.last_round == 8
        found, recorded = assessor.assessment(), answer(old, name)
        assert found.scores == pytest.approx(recorded.scores, rel=1e-12)  # Python 3.12 adds floats more exactly
        assert replace(found, scores=recorded.scores) == recorded


def test_an_old_recording_with_credits_goes_on(old):
    coast = CoAst(keep=0.5, **THEN)
    coast.restore(old / "coast.state")
    last = list(replay(old / "old_run"))[-1]
    with Recorder(old / "old_run", ledger=coast) as recorder:
        more = type(last)(9, start=last.end, local=dict(last.local), end=last.end)
        coast.observe(more)
        recorder.observe(more)
    assert verify(old / "old_run").findings == ()


def test_old_answers_and_states_are_verified(old):
    found = verify(old / "old_run", [old / name for name in ("coast.json", "coast.state", "cgsv.json", "shapfed.json")])
    assert found.findings == ()


def test_an_old_report_is_refused_with_the_command_that_makes_it_again(old):
    (finding,) = verify(old / "old_run", [old / "report.json"]).findings
    assert "does not say how it was made" in str(finding)
    assert f"fedcoast report {old / 'old_run'} -o NEW_FILE" in str(finding)
    assert json.loads((old / "report.json").read_text())["clients"]
