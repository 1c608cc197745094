"""One upload of NaN that a server averaged in: its client is named, the round left out, and the next one observed."""

import logging
from dataclasses import replace

import numpy as np
import pytest

from command_line import fedcoast
from fedcoast import CoAst, Recorder, replay
from fedcoast.audit import verify
from fedcoast.errors import SpoiltRound
from fedcoast.reports.following import RunFollower
from federations import federation, show, with_upload

ROUNDS = federation(seed=4, rounds=6)
NUMBER = 3
NAMED = r"round 3, global model after: layer '.*' must be finite.*; bad uploads: client 'bob': round 3, layer '.*' must"


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.WARNING, logger="fedcoast")
    return caplog


def broken(model, value):
    name = next(iter(model))
    return {**model, name: np.full_like(model[name], value)}


def spoilt(fl_round, value=np.nan):
    """The round as it is when the server averages in what bob sent."""
    return replace(with_upload(fl_round, "bob", broken(fl_round.local["bob"], value)), end=broken(fl_round.end, value))


HERE = [spoilt(fl_round) if fl_round.number == NUMBER else fl_round for fl_round in ROUNDS]
WITHOUT = [fl_round for fl_round in ROUNDS if fl_round.number != NUMBER]


def save(folder, rounds):
    for fl_round in rounds:
        clients = folder / f"round-{fl_round.number}" / "clients"
        clients.mkdir(parents=True)
        np.savez(clients.parent / "start.npz", **fl_round.start)
        np.savez(clients.parent / "end.npz", **fl_round.end)
        for client, model in fl_round.local.items():
            np.savez(clients / f"{client}.npz", **model)
    return folder


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_an_assessor_names_the_client_and_observes_the_next_round(value):
    assessor = CoAst(horizon=1)
    for fl_round in ROUNDS:
        if fl_round.number == NUMBER:
            with pytest.raises(SpoiltRound, match=NAMED) as caught:
                assessor.observe(spoilt(fl_round, value))
            assert "ann" not in str(caught.value)
        else:
            assessor.observe(fl_round)
    assert assessor.assessment() == show(CoAst(horizon=1), WITHOUT)


def test_a_recorder_names_the_client_and_the_record_says_which_round_was_missed(tmp_path):
    with Recorder(tmp_path / "run") as recorder:
        for fl_round in HERE:
            if fl_round.number == NUMBER:
                with pytest.raises(SpoiltRound, match=NAMED):
                    recorder.observe(fl_round)
            else:
                recorder.observe(fl_round)
    found = verify(tmp_path / "run")
    assert found.findings == ()
    assert "client 'bob'" in found.missed[NUMBER]


def test_of_checkpoints_only_the_spoilt_round_is_left_out(tmp_path, log):
    answer = show(CoAst(horizon=1), replay(save(tmp_path / "models", HERE)))
    assert answer == show(CoAst(horizon=1), replay(save(tmp_path / "without", WITHOUT)))
    assert log.text.count("left out: round 3") == 1
    assert "bad uploads: client 'bob'" in log.text


def test_every_command_on_checkpoints_names_the_client_and_goes_on(tmp_path, log):
    models = save(tmp_path / "models", HERE)
    for command in (
        ["assess", models],
        ["report", models, "-o", tmp_path / "report.html"],
        ["compare", models, "--methods", "coast,cosine"],
        ["import", models, tmp_path / "run"],
    ):
        log.clear()
        done = fedcoast(*command)
        assert done.code == 0, (command, done.stderr)
        assert "left out: round 3" in log.text
        assert "bad uploads: client 'bob'" in log.text
    assert [fl_round.number for fl_round in replay(tmp_path / "run")] == [1, 2, 4, 5, 6]


def test_where_every_round_is_spoilt_the_first_is_the_error(tmp_path):
    models = save(tmp_path / "models", [spoilt(fl_round) for fl_round in ROUNDS])
    with pytest.raises(SpoiltRound, match=r"^round 1, .*client 'bob'"):
        list(replay(models))


def test_a_follower_says_once_that_the_last_round_is_spoilt(tmp_path, log):
    follower = RunFollower(save(tmp_path / "models", HERE[:NUMBER]))
    for _ in range(3):
        follower.catch_up()
    assert follower.assessor.last_round == NUMBER - 1
    assert follower.trouble == ""
    assert log.text.count("left out: round 3") == 1
