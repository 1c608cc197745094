import json

import numpy as np
import pytest

from command_line import fedcoast
from fedcoast import Assessment
from fedcoast.audit.verification import verify
from health import dying, of_before, record

LOSING = (
    "50% of body was moved by no client in round 5, and more than 10% of it in each of the last 3 rounds: the model is"
    " losing capacity, and scores rest on the part that still moves."
)


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda handle: None)


def as_checkpoints(folder, rounds):
    for fl_round in rounds:
        place = folder / f"round-{fl_round.number}"
        (place / "clients").mkdir(parents=True)
        np.savez(place / "start.npz", **fl_round.start)
        np.savez(place / "end.npz", **fl_round.end)
        for client, model in fl_round.local.items():
            np.savez(place / "clients" / f"{client}.npz", **model)
    return folder


def test_a_run_that_loses_capacity_is_assessed_with_a_warning(tmp_path):
    done = fedcoast("assess", record(tmp_path / "run", dying([0, 0, 3, 4, 5])))
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.endswith(f"{LOSING}\n")


@pytest.mark.parametrize("options", [{}, {"ballot_keep": 0.1}])
def test_a_recording_of_before_is_warned_about_where_its_uploads_tell(tmp_path, options):
    folder = of_before(record(tmp_path / "run", dying([0, 0, 3, 4, 5]), **options))
    assert (LOSING in fedcoast("assess", folder).stdout) is (not options)


def test_checkpoints_are_warned_about_too(tmp_path):
    assert LOSING in fedcoast("assess", as_checkpoints(tmp_path / "run", dying([0, 0, 3, 4, 5]))).stdout


def test_of_a_healthy_run_nothing_is_said(tmp_path):
    done = fedcoast("assess", record(tmp_path / "run", dying([0, 5, 1, 1, 1])))
    assert "moved by no client" not in done.stdout


def test_json_has_it_beside_the_answer_and_csv_is_as_ever(tmp_path):
    folder = record(tmp_path / "run", dying([0, 0, 3, 4, 5]))
    text = fedcoast("assess", folder, "--json").stdout
    assert json.loads(text)["health"] == {
        "round": 5,
        "layer": "body",
        "unmoved": 0.5,
        "since": 3,
        "never_moved": False,
        "warning": LOSING,
    }
    table = fedcoast("assess", folder, "--csv").stdout
    assert Assessment.from_csv(table) == Assessment.from_json(text)
    assert "moved by no client" not in table
    old = of_before(record(tmp_path / "old", dying([5, 5, 5]), ballot_keep=0.1))
    assert json.loads(fedcoast("assess", old, "--json").stdout)["health"] is None


def test_the_health_in_an_answer_is_verified_with_it(tmp_path):
    folder, answer = record(tmp_path / "run", dying([0, 0, 3, 4, 5])), tmp_path / "answer.json"
    answer.write_text(fedcoast("assess", folder, "--json").stdout)
    assert verify(folder, [answer]).agrees
    expected = json.loads(answer.read_text())
    answer.write_text(json.dumps({**expected, "health": {**expected["health"], "warning": None}}))
    (finding,) = verify(folder, [answer]).findings
    assert finding.what.startswith("says of the model's health")


def test_a_layer_that_would_drive_the_terminal_is_shown_as_text(tmp_path):
    done = fedcoast("assess", record(tmp_path / "run", dying([0, 4, 5], layer="\x1b[2J[bold]boo[/bold]")))
    assert r"50% of \x1b[2J[bold]boo[/bold] was moved by no client in round 3" in done.stdout
    assert "\x1b[2J" not in done.stdout


def test_a_report_of_a_run_of_before_warns_and_says_what_it_knows(tmp_path):
    folder = of_before(record(tmp_path / "run", dying([0, 0, 3, 4, 5])))
    assert fedcoast("report", folder, "-o", tmp_path / "r.json").code == 0
    found = json.loads((tmp_path / "r.json").read_text())["health"]
    assert found["warning"] == LOSING
    assert found["rounds"] == [1, 2, 3, 4, 5]
    assert found["unmoved_by_round"] == {"body": [None, 0.0, 0.3, 0.4, 0.5], "head": [None, 0.0, 0.0, 0.0, 0.0]}


def test_a_simulation_ends_with_the_health_of_its_model(tmp_path):
    done = fedcoast(
        *("simulate", "--dataset", "digits", "--model", "mlp", "--rounds", "3", "--clients", "2", "--workers", "1"),
        *("--record", "ballots", "--out", tmp_path),
    )
    assert done.code == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("Health: ")]
    assert "moved by no client in" in line or "moved by some client" in line
