import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from fedcoast import BadFile, CoAst, read_about, replay
from fedcoast.audit import verify
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.simulation import experiment_of, simulate
from waiting import wait_until

SMALL = Experiment(rounds=5, steps=2, batch=8, augment=False)


def everything(folder):
    return [
        (
            r.number,
            {n: a.tobytes() for n, a in r.end.items()},
            {c: m["head.bias"].tobytes() for c, m in r.local.items()},
        )
        for r in replay(folder)
    ]


@pytest.mark.parametrize("aggregation", ["fedavg", "pruned", "sparse", "fedavgm", "fedadam"])
@pytest.mark.parametrize("stopped_after", [1, 4])
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path, aggregation, stopped_after):
    experiment = dataclasses.replace(SMALL, aggregation=aggregation, server_rate=0.3, participation=0.6)
    simulate(Federation(experiment), tmp_path / "whole")

    class Stopped(Exception):
        pass

    def stop(fl_round):
        if fl_round.number == stopped_after:
            raise Stopped

    with pytest.raises(Stopped):
        simulate(Federation(experiment), tmp_path / "parts", on_round=stop)
    assert len(everything(tmp_path / "parts")) == stopped_after
    assert simulate(Federation(experiment), tmp_path / "parts") == stopped_after
    assert everything(tmp_path / "parts") == everything(tmp_path / "whole")


def test_a_finished_run_is_left_alone(tmp_path):
    simulate(Federation(SMALL), tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*.safetensors")}
    shown = []
    assert simulate(Federation(SMALL), tmp_path / "run", on_round=shown.append) == 5
    assert not shown
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*.safetensors")} == before


def test_the_folder_says_which_experiment_it_is_and_the_truth(tmp_path):
    simulate(Federation(SMALL), tmp_path)
    facts = read_about(tmp_path)
    assert experiment_of(facts) == SMALL
    assert facts["planted"][0] == {"client": {"name": "0", "type": "int"}, "value": 5.0}
    assert all("test accuracy" in fl_round.metrics for fl_round in replay(tmp_path))


def test_another_experiment_does_not_go_into_the_same_folder(tmp_path):
    simulate(Federation(SMALL), tmp_path)
    with pytest.raises(BadFile, match="holds another run"):
        simulate(Federation(dataclasses.replace(SMALL, seed=1)), tmp_path)


def test_a_folder_of_somebody_else_has_no_experiment():
    with pytest.raises(BadFile, match="does not name its experiment"):
        experiment_of({})


@pytest.mark.parametrize(
    "settings",
    [{}, {"reference": "movement", "signal": "pruned"}, {"reference": "votes"}, {"horizon": 1, "layers": "head"}],
)
def test_ballots_alone_give_coast_the_same_credits_in_a_tenth_of_the_room(tmp_path, settings):
    experiment = dataclasses.replace(SMALL, model="convnet", batch=2, clients=3)
    simulate(Federation(experiment), tmp_path / "models")
    simulate(Federation(experiment), tmp_path / "ballots", ballot_keep=experiment.keep)
    answers = []
    for name in ("models", "ballots"):
        assessor = CoAst(**settings)
        for fl_round in replay(tmp_path / name):
            assessor.observe(fl_round)
        answers.append(assessor.assessment())
    assert answers[0] == answers[1]
    sizes = [sum(f.stat().st_size for f in (tmp_path / n).rglob("client-*")) for n in ("models", "ballots")]
    assert sizes[1] < sizes[0] / 10


def test_what_ballots_cannot_tell_is_refused(tmp_path):
    simulate(Federation(SMALL), tmp_path, ballot_keep=0.1)
    for settings in ({"signal": "update"}, {"reference": "movement", "signal": "parameters"}, {"keep": 0.2}):
        with pytest.raises(ValueError, match=r"holds ballots of keep=0\.1 only"):
            CoAst(**settings).observe(next(replay(tmp_path)))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_control_c_leaves_a_readable_folder_that_the_same_command_finishes(tmp_path, workers):
    command = [sys.executable, "-m", "fedcoast.cli", "simulate", "--dataset", "digits", "--model", "mlp"]
    command += ["--rounds", "40", "--workers", str(workers), "--out", str(tmp_path)]
    process = subprocess.Popen(
        command,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A test run in the background may have been told to ignore Ctrl-C, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("*/rounds/0000000003")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in errors
    (folder,) = tmp_path.iterdir()
    finished = [fl_round.number for fl_round in replay(folder)]
    assert 3 <= len(finished) < 40
    again = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert again.returncode == 0, again.stderr
    assert [fl_round.number for fl_round in replay(folder)] == list(range(1, 41))
    assert "Spearman" in again.stdout


@pytest.mark.slow
def test_workers_do_not_outlive_a_killed_simulation(tmp_path):
    command = [sys.executable, "-m", "fedcoast.cli", "simulate", "--dataset", "digits", "--model", "mlp"]
    command += ["--rounds", "5000", "--workers", "2", "--out", str(tmp_path)]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: list(tmp_path.glob("*/rounds/0000000003")))
        process.kill()
        process.wait()
        wait_until(lambda: not _alive(process.pid))
    finally:
        if _alive(process.pid):
            os.killpg(process.pid, signal.SIGKILL)


def _alive(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_server_state_is_kept_for_the_last_two_rounds_only(tmp_path):
    simulate(Federation(dataclasses.replace(SMALL, aggregation="fedavgm")), tmp_path)
    assert sorted(path.name for path in (tmp_path / "server").iterdir()) == [
        "0000000004.safetensors",
        "0000000005.safetensors",
    ]
    found = verify(tmp_path)
    assert found.agrees, found.findings
    assert list(found.outside) == ["server"], "it is no part of what happened, and said to be outside of the chain"


def test_metrics_are_numbers_of_the_model_that_is_recorded(tmp_path):
    federation = Federation(SMALL)
    simulate(federation, tmp_path)
    *_, last = replay(tmp_path)
    from fedcoast.simulation.worker_pool import worker_pool

    with worker_pool(SMALL, federation.data, 1, "cpu") as pool:
        assert pool.evaluate({n: np.array(a) for n, a in last.end.items()}) == json.loads(json.dumps(last.metrics))


@pytest.mark.parametrize("aggregation", ["fedavgm", "fedadam"])
def test_a_server_optimiser_does_not_resume_without_its_state(tmp_path, aggregation):
    experiment = dataclasses.replace(SMALL, rounds=2, aggregation=aggregation, server_rate=0.3)
    simulate(Federation(experiment), tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "server")
    shutil.rmtree(tmp_path / "run" / "rounds" / "0000000002")
    with pytest.raises(BadFile, match=f"is missing: {aggregation} resumes from the server's state"):
        simulate(Federation(experiment), tmp_path / "run")
