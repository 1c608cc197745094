"""Whoever answers from a run says when the run is not what was recorded."""

import shutil

import pytest

from audit.runs import record
from command_line import fedcoast
from fedcoast.reports.signature import read_signature


@pytest.fixture
def run(tmp_path):
    record(tmp_path / "run", 8)
    return tmp_path / "run"


def asked(command, run, *options):
    return fedcoast(command, run, *options, *(["-o", run.parent / "report.json"] if command == "report" else []))


@pytest.mark.parametrize("command", ["assess", "rewards", "report"])
def test_a_replaced_upload_is_told_and_ends_in_one(run, command):
    options = ("--force",) if command == "rewards" else ()
    assert (asked(command, run, *options).code, asked(command, run, *options).stderr) == (0, "")
    place = run / "rounds" / "0000000003"
    shutil.copy(place / "client-000000.safetensors", place / "client-000001.safetensors")
    done = asked(command, run, *options)
    assert done.code == 1
    assert "is not as it was recorded (rounds/0000000003/client-000001.safetensors: was changed" in done.stderr
    assert done.stdout


def test_a_report_of_an_altered_run_carries_no_head(run):
    asked("report", run)
    assert read_signature((run.parent / "report.json").read_text())[0]["head"]
    (run / "rounds" / "0000000003" / "link.json").unlink()
    asked("report", run)
    assert read_signature((run.parent / "report.json").read_text())[0]["head"] == ""
