"""What `fedcoast rewards` says before anybody is paid: the warnings and flags that `assess` shows."""

import json

import pytest

from command_line import fedcoast
from federations import at_odds_with_a_rider, federation
from health import dying, record


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda handle: None)


@pytest.fixture
def flagged(tmp_path):
    """A run in which a client always returns the model that it was sent, and nobody's updates agree."""
    return record(tmp_path / "run", at_odds_with_a_rider())


def test_warnings_and_flags_stand_below_what_is_paid(flagged):
    said = fedcoast("rewards", flagged, "--budget", "100")
    assert said.code == 0, said.stderr
    assert "some labels may be wrong" in said.stdout
    assert "Flagged: rider, idle." in said.stdout
    assert "Flags change no amount" in said.stdout
    without = fedcoast("rewards", flagged, "--budget", "100", "--no-flags")
    assert "Flagged" not in without.stdout
    assert without.stdout.splitlines()[:10] == said.stdout.splitlines()[:10]


def test_warnings_are_in_the_json_and_beside_the_payment_file(flagged):
    warnings = json.loads(fedcoast("rewards", flagged, "--json").stdout)["warnings"]
    assert any("some labels may be wrong" in sentence for sentence in warnings)
    table = fedcoast("rewards", flagged, "--csv")
    assert "labels" not in table.stdout
    assert "some labels may be wrong" in table.stderr


def test_a_payment_from_a_model_that_loses_capacity_is_warned_about(tmp_path):
    said = fedcoast("rewards", record(tmp_path / "run", dying([0, 0, 3, 4, 5])), "--budget", "100", "--force")
    assert "Too early to say who helps" in said.stdout
    assert "the model is losing capacity" in said.stdout


def test_of_a_sound_run_nothing_is_said(tmp_path):
    said = fedcoast("rewards", record(tmp_path / "run", federation(rounds=12)), "--json")
    assert said.code == 0, said.stderr
    assert json.loads(said.stdout)["warnings"] == []
