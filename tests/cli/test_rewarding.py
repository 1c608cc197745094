"""What `fedcoast rewards` says before anybody is paid: the warnings and flags that `assess` shows."""

import json

import numpy as np
import pytest

from command_line import fedcoast
from fedcoast import Round
from federations import federation
from health import dying, record


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda handle: None)


@pytest.fixture
def flagged(tmp_path):
    """A run in which a client always returns the model that it was sent, and nobody's updates agree."""
    rng = np.random.default_rng(0)
    layers = {"hidden.weight": (20, 20), "head.weight": (20, 10)}
    start = {name: rng.normal(size=shape).astype(np.float32) for name, shape in layers.items()}
    shown = []
    for number in range(1, 15):
        local = {c: {n: a + rng.normal(size=a.shape).astype(a.dtype) for n, a in start.items()} for c in "abcd"}
        end = {name: np.mean([model[name] for model in local.values()], axis=0) for name in layers}
        shown.append(Round(number, start, {**local, "rider": start}, end))
        start = end
    return record(tmp_path / "run", shown)


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
