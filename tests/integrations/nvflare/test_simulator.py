"""FLARE's own simulator runs the example job: the right order, training unchanged, and a clean audit."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from itertools import permutations
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


def descendants(pid):
    children = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        found = [int(child) for child in children.read_text().split()]
    except OSError:
        return []
    return [one for child in found for one in (*descendants(child), child)]


@pytest.mark.parametrize("kind", ["models", "differences"])
def test_three_sites_of_falling_quality_and_a_free_rider(tmp_path, kind):
    options = ["--differences"] if kind == "differences" else []
    observed, output = run(tmp_path / "observed", *options)
    plain, _ = run(tmp_path / "plain", "--plain", *options)
    results = json.loads((observed / "fedcoast-scores.json").read_text())
    answer = Assessment.from_json(json.dumps(results["assessment"]))
    assert results["unobserved"] == {}
    assert not answer.quarantined
    assert list(answer.ranking) == ["clean", "fair", "poor", "rider"]
    assert answer.scores["rider"] == 0
    assert "clean" in output
    models = [np.load(folder / "models" / "server.npy") for folder in (observed, plain)]
    if kind == "differences":
        np.testing.assert_array_equal(*models)
    else:  # sums of whole models depend on the order of arrival, also in two runs of FLARE alone
        np.testing.assert_allclose(*models, rtol=1e-4, atol=1e-5)
        assert_as_flare_aggregates(observed / "fedcoast-run")
    command = [sys.executable, "-m", "fedcoast.cli", "verify", str(observed / "fedcoast-run")]
    verified = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def assert_as_flare_aggregates(folder):
    """Every recorded model is, bit for bit, what FLARE's own helper makes of the uploads in some order of arrival."""
    from nvflare.app_common.aggregators.weighted_aggregation_helper import WeightedAggregationHelper

    for fl_round in replay(folder):
        ends = []
        for order in permutations(fl_round.clients):
            helper = WeightedAggregationHelper()
            for site in order:
                helper.add(dict(fl_round.local[site]), fl_round.weights[site], site, fl_round.number)
            ends.append(helper.get_result())
        end = next(iter(fl_round.end.values()))
        assert any(np.array_equal(np.float32(next(iter(one.values()))), end) for one in ends), fl_round.number
