import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedcoast.errors import BadFile
from fedcoast.storage.files import sole_writer
from little_tables import little_table, reproduce
from paper.cell_results import fill
from paper.pools import processes, ray_cluster
from paper.reproduction import Places
from waiting import wait_until

TESTS = Path(__file__).parents[1]
ROUNDS = 30


def values(places, table):
    return [cell_result.values for cell_result in fill(table, places.run_results)]


@pytest.mark.slow
def test_processes_find_what_one_process_finds(reproduced, places):
    with processes(2) as submit:
        outcomes = reproduce([little_table()], places, submit)
    assert not any(outcome.errors for outcome in outcomes)
    assert values(places, little_table()) == values(reproduced, little_table())


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_reproduction_leaves_nobody_behind_and_goes_on_to_the_same_numbers(how, tmp_path):
    table = little_table((0,), rounds=ROUNDS)
    stopped, whole = (Places(tmp_path / name / "runs", tmp_path / name / "results") for name in ("stopped", "whole"))
    child = subprocess.Popen(
        [sys.executable, str(TESTS / "little_tables_child.py"), str(stopped.runs), str(stopped.results), str(ROUNDS)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a test run in the background ignores it
    )
    wait_until(lambda: len(list(stopped.runs.glob("*/rounds/0000000005"))) > 0)
    child.send_signal(how)
    child.wait()
    assert child.returncode != 0
    wait_until(lambda: all(_free(run) for run in stopped.runs.iterdir()))
    reached = [len(list((run / "rounds").glob("[0-9]*"))) for run in stopped.runs.iterdir()]
    assert sum(reached) < 4 * ROUNDS
    time.sleep(1)
    assert reached == [len(list((run / "rounds").glob("[0-9]*"))) for run in stopped.runs.iterdir()]
    if how == signal.SIGKILL:
        for places in (stopped, whole):
            assert not any(outcome.errors for outcome in reproduce([table], places))
        assert values(stopped, table) == values(whole, table)


@pytest.mark.slow
def test_a_ray_cluster_finds_what_one_process_finds(reproduced, places, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    with ray_cluster("local") as submit:
        outcomes = reproduce([little_table()], places, submit)
    assert not any(outcome.errors for outcome in outcomes)
    assert values(places, little_table()) == values(reproduced, little_table())


def _free(run):
    try:
        with sole_writer(run):
            return True
    except BadFile:
        return False
