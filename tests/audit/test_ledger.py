"""Credits written down with the rounds: what the assessor said then is in the chain, and follows from the rounds."""

import json
import logging

import numpy as np
import pytest

from audit.runs import answer, coast, rounds
from audit.test_tampering import relinked
from fedcoast import BadRound, BadSetting, CoAst, Recorder, replay
from fedcoast.audit import verify
from fedcoast.methods import ComFedSV
from fedcoast.storage.credit_log import read_credit_log
from federations import federation


def record(folder, first=0, last=None, recorder_first=False):
    assessor = coast()
    with Recorder(folder, ledger=assessor) as recorder:
        for fl_round in replay(folder):
            assessor.observe(fl_round)
        for fl_round in rounds()[first:last]:
            for observer in (recorder, assessor) if recorder_first else (assessor, recorder):
                observer.observe(fl_round)
    return assessor


@pytest.mark.parametrize("recorder_first", [True, False])
def test_the_credits_that_are_final_lie_with_the_rounds_and_are_confirmed(tmp_path, recorder_first):
    record(tmp_path / "run", recorder_first=recorder_first)
    log, whole = read_credit_log(tmp_path / "run"), answer(tmp_path / "run")
    assert whole.credits.keys() == {1, 2, 3}
    assert log.credits == {n: of for n, of in whole.credits.items() if n < 3 or not recorder_first}
    found = verify(tmp_path / "run")
    assert found.agrees, found.findings
    assert found.confirmed[0].startswith(
        "rounds/*/credits.json: its record of credits follows from the rounds, by coast("
    )


def test_a_ledger_goes_on_after_a_restart_and_writes_no_credit_twice(tmp_path):
    record(tmp_path / "run", last=3)
    record(tmp_path / "run", first=3)
    rows = [json.loads(path.read_text())["credits"] for path in sorted(tmp_path.glob("run/rounds/*/credits.json"))]
    assert [[number for number, _ in row] for row in rows] == [[], [], [1], [2], [3]]
    assert verify(tmp_path / "run").agrees


def test_a_credit_that_was_changed_is_found_by_the_chain(tmp_path):
    record(tmp_path / "run")
    path = tmp_path / "run" / "rounds" / "0000000003" / "credits.json"
    path.write_text(path.read_text().replace("[\n     {\n", "[\n      {\n", 1) + " ")
    assert {finding.file for finding in verify(tmp_path / "run").findings} == {"rounds/0000000003/credits.json"}
    path.write_text("{")
    assert {finding.file for finding in verify(tmp_path / "run").findings} == {"rounds/0000000003/credits.json"}


def test_a_credit_that_was_forged_with_its_link_is_found_because_it_does_not_follow(tmp_path):
    record(tmp_path / "run")
    path = tmp_path / "run" / "rounds" / "0000000005" / "credits.json"
    content = json.loads(path.read_text())
    content["credits"][0][1][1][1] += 1000
    path.write_text(json.dumps(content))
    relinked(tmp_path / "run", 5)
    (finding,) = verify(tmp_path / "run").findings
    assert finding.file == "rounds/*/credits.json"
    assert "round 3, the credit of 'ann' is" in finding.what


def test_another_assessor_is_refused_the_ledger(tmp_path):
    record(tmp_path / "run")
    with pytest.raises(BadSetting, match="keeps the ledger of coast"):
        Recorder(tmp_path / "run", ledger=CoAst(keep=0.2))
    for stranger in (CoAst, "coast"):
        with pytest.raises(BadSetting, match="ledger must be the assessor"):
            Recorder(tmp_path / "run", ledger=stranger)
    Recorder(tmp_path / "run").close()


class Late(CoAst):
    """Has no answer before it was shown so many rounds."""

    before = 4

    def assessment(self):
        if 0 < (self.last_round or 0) < self.before:
            raise BadRound("not everyone was heard")
        return super().assessment()


def test_while_the_assessor_has_no_answer_rounds_are_recorded_and_their_credits_come_later(tmp_path, caplog):
    assessor = Late(keep=0.3, horizon=2)
    with caplog.at_level(logging.WARNING, "fedcoast"), Recorder(tmp_path / "run", ledger=assessor) as recorder:
        for fl_round in rounds():
            assessor.observe(fl_round)
            recorder.observe(fl_round)
    rows = [json.loads(path.read_text())["credits"] for path in sorted(tmp_path.glob("run/rounds/*/credits.json"))]
    assert [[number for number, _ in row] for row in rows] == [[], [], [], [1, 2], [3]]
    assert "round 2 is recorded without new credits: not everyone was heard" in caplog.text
    found = verify(tmp_path / "run")
    assert found.agrees, found.findings
    assert "its record of credits follows from the rounds" in found.confirmed[0]


def test_a_method_that_never_hears_everyone_together_costs_no_round(tmp_path):
    assessor = ComFedSV(lambda model: float(np.sum(model["scale"])))
    shown = federation(rounds=4, present=lambda number, client: (client == "ann") == (number % 2 == 0))
    with Recorder(tmp_path / "run", ledger=assessor) as recorder:
        for fl_round in shown:
            assessor.observe(fl_round)
            recorder.observe(fl_round)
    assert [fl_round.number for fl_round in replay(tmp_path / "run")] == [1, 2, 3, 4]
    assert read_credit_log(tmp_path / "run").credits == {}
