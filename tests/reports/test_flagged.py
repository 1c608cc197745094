"""Flags in answers and reports: told beside the scores, never in them, and checked by `fedcoast verify`."""

import json

import numpy as np
import pytest

from command_line import fedcoast
from fedcoast import CoAst, Recorder, Round, replay
from fedcoast.audit import verify
from fedcoast.reports.assess_rounds import assess_rounds
from fedcoast.reports.following import RunFollower
from fedcoast.reports.forms import to_json, write
from fedcoast.reports.markdown import markdown
from fedcoast.reports.page import page

RIDER = "ri<b>der"
SIZE = 300


def rounds(idle=True):
    """Four clients of one mind; the rider returns what it was sent."""
    rng, start, found = np.random.default_rng(0), {"w": np.zeros(SIZE, np.float32)}, []
    for number in range(1, 8):
        common = rng.standard_normal(SIZE)
        local = {c: {"w": (start["w"] + common + rng.standard_normal(SIZE)).astype(np.float32)} for c in "abcd"}
        local[RIDER] = start if idle else local["a"] | {"w": local["a"]["w"] + rng.standard_normal(SIZE, np.float32)}
        end = {"w": np.mean([model["w"] for model in local.values()], axis=0, dtype=np.float32)}
        found.append(Round(number, start=start, local=local, end=end))
        start = end
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flagged") / "run"
    with Recorder(folder) as recorder:
        for fl_round in rounds():
            recorder.observe(fl_round)
    return folder


def test_every_form_of_a_report_says_who_is_flagged_and_why():
    report = assess_rounds(rounds())
    assert [(flag.client, flag.kind) for flag in report.flags] == [(RIDER, "idle")]
    html, text, data = page(report), markdown(report), json.loads(to_json(report))
    assert "ri&lt;b&gt;der" in html
    assert "<b>der" not in html
    assert "equals the model it was sent in 7 of 7 rounds" in html
    assert "equals the model it was sent in 7 of 7 rounds" in text
    assert [(flag["client"]["name"], flag["kind"], flag["rounds"]) for flag in data["flags"]] == [(RIDER, "idle", 7)]


def test_a_flag_changes_no_score():
    coast = CoAst(track_layers=True)
    for fl_round in rounds():
        coast.observe(fl_round)
    assert assess_rounds(rounds()).assessment.scores == coast.assessment().scores


def test_a_report_on_honest_clients_has_no_word_of_flags():
    report = assess_rounds(rounds(idle=False))
    assert report.flags == ()
    assert 'id="flags' not in page(report)


def test_whoever_pays_is_told_of_flags_and_the_amounts_stay(run):
    plain, told = (fedcoast("rewards", run, "--force", "--json", *option) for option in (["--no-flags"], []))
    assert told.code == plain.code == 0
    without, paid = json.loads(plain.stdout), json.loads(told.stdout)
    assert f"Flagged: {RIDER}, idle. The upload equals the model it was sent in 7 of 7 rounds." in paid["warnings"]
    assert not any("Flagged" in warning for warning in without["warnings"])
    assert {**paid, "warnings": []} == {**without, "warnings": []}


def test_the_live_page_says_who_is_flagged(run):
    follower = RunFollower(run)
    follower.catch_up()
    assert "equals the model it was sent in 7 of 7 rounds" in page(follower.report())


def test_a_flag_in_an_answer_or_report_is_checked_by_verify(run, tmp_path):
    answer = fedcoast("assess", run, "--json").stdout
    assert [flag["kind"] for flag in json.loads(answer)["flags"]] == ["idle"]
    (tmp_path / "answer.json").write_text(answer)
    write(assess_rounds(replay(run)), tmp_path / "report.json")
    found = verify(run, [tmp_path / "answer.json", tmp_path / "report.json"])
    assert found.agrees, found.findings
    forged = {**json.loads(answer), "flags": []}
    (tmp_path / "answer.json").write_text(json.dumps(forged))
    found = verify(run, [tmp_path / "answer.json"])
    assert not found.agrees
    assert any("flags []" in finding.what for finding in found.findings)
