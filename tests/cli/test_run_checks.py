"""Whoever answers from a run says when the run is not what was recorded."""

import json
import shutil

import pytest

from audit.runs import record
from command_line import fedcoast
from fedcoast.cli.screen import print_csv
from fedcoast.reports.signature import read_signature


@pytest.fixture
def run(tmp_path):
    record(tmp_path / "run", 8)
    return tmp_path / "run"


def exit_of(command, run, *options):
    return fedcoast(command, run, *options, *(["-o", run.parent / "report.json"] if command == "report" else []))


@pytest.mark.parametrize("command", ["assess", "rewards", "report"])
def test_a_replaced_upload_is_told_and_ends_in_one(run, command):
    options = ("--force",) if command == "rewards" else ()
    assert (exit_of(command, run, *options).code, exit_of(command, run, *options).stderr) == (0, "")
    place = run / "rounds" / "0000000003"
    shutil.copy(place / "client-000000.safetensors", place / "client-000001.safetensors")
    done = exit_of(command, run, *options)
    assert done.code == 1
    assert "is not as it was recorded (rounds/0000000003/client-000001.safetensors: was changed" in done.stderr
    assert done.stdout


def test_a_report_of_an_altered_run_carries_no_head(run):
    exit_of("report", run)
    assert read_signature((run.parent / "report.json").read_text())[0]["head"]
    (run / "rounds" / "0000000003" / "link.json").unlink()
    exit_of("report", run)
    assert read_signature((run.parent / "report.json").read_text())[0]["head"] == ""


@pytest.mark.parametrize(
    ("row", "value"), [("seen", 0.1), ("seen", -3), ("seen", 1e308), ("scores", 1e308), ("scores", -1e308)]
)
def test_an_answer_with_numbers_that_cannot_be_is_refused(run, row, value):
    answer = json.loads(fedcoast("assess", run, "--json").stdout)
    answer[row][0] = value
    (run.parent / "answer.json").write_text(json.dumps(answer))
    for command in ("report", "rewards"):
        done = fedcoast(command, run.parent / "answer.json")
        assert done.code == 3
        assert "this is not an assessment in JSON" in done.stderr


def test_csv_on_a_terminal_moves_no_cursor(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    print_csv("a\x1b[2J,1\nb,2\n")
    assert capsys.readouterr().out == "a\\x1b[2J,1\nb,2\n"
