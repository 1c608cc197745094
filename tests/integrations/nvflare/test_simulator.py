"""FLARE's own simulator runs the example job: the right order, training unchanged, and a clean audit."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fedcoast import Assessment, replay

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[3] / "examples" / "nvflare-quickstart"
ROUNDS, ATTEMPTS, LIMIT = 15, 3, 240  # the simulator sometimes hangs on a connection of its own


def run(folder, *options):
    """The folder of the server's job after a run of the example; retried if the simulator itself fails."""
    for attempt in range(ATTEMPTS):
        workspace = folder / f"attempt-{attempt}"
        command = [sys.executable, "job.py", "--rounds", str(ROUNDS), "--workspace", str(workspace), *options]
        started = subprocess.Popen(
            command, cwd=EXAMPLE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        try:
            output, _ = started.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            output = ""
        finally:
            end_group(started)
        if started.returncode == 0:
            return workspace / "quickstart" / "server" / "simulate_job", output
    pytest.fail(f"the simulator failed {ATTEMPTS} times")


def end_group(started):
    """Kill the simulator and the processes of its sites, which have sessions of their own and are found by parent."""
    for pid in [*descendants(started.pid), started.pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    started.wait()
    started.stdout.close()  # still open where the simulator hung


def descendants(pid):
    children = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        found = [int(child) for child in children.read_text().split()]
    except OSError:
        return []
    return [one for child in found for one in (*descendants(child), child)]


@pytest.mark.parametrize(
    "options",
    [(), ("--differences",), ("--scatter-and-gather", "--differences")],
    ids=["FedAvg, models", "FedAvg, differences", "ScatterAndGather, differences"],
)
def test_three_sites_of_falling_quality_and_a_free_rider(tmp_path, options):
    observed, output = run(tmp_path / "observed", *options)
    plain, _ = run(tmp_path / "plain", "--plain", *options)
    results = json.loads((observed / "fedcoast-scores.json").read_text())
    answer = Assessment.from_json(json.dumps(results["assessment"]))
    assert results["unobserved"] == {}
    assert not answer.quarantined
    assert list(answer.ranking) == ["clean", "fair", "poor", "rider"]
    assert answer.scores["rider"] == 0
    assert "clean" in output
    assert max(fl_round.number for fl_round in replay(observed / "fedcoast-run")) == ROUNDS
    np.testing.assert_array_equal(*(np.load(folder / "models" / "server.npy") for folder in (observed, plain)))
    command = [sys.executable, "-m", "fedcoast.cli", "verify", str(observed / "fedcoast-run")]
    verified = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert verified.returncode == 0, verified.stdout + verified.stderr
