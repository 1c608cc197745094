"""A real deployment on this machine: SuperLink and SuperNodes as processes of their own."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from fedcoast import Assessment, CoAst, replay
from integrations.flower.processes import Processes, free_port
from waiting import wait_until

pytestmark = pytest.mark.slow

APP = Path(__file__).parent / "deployed"
ROUNDS = 6


class Deployment(Processes):
    """One SuperLink, and SuperNodes that are known by their partition."""

    def __init__(self, folder):
        super().__init__(folder)
        self.port = free_port()

    def link(self):
        self.start(
            "superlink", "flower-superlink", "--insecure", "--disable-runtime-dependency-installation",
            "--host", "127.0.0.1", "--port", str(self.port),
        )  # fmt: skip
        self.connect_to(self.port)

    def node(self, partition):
        self.start(
            f"supernode-{partition}", "flower-supernode", "--insecure", "--superlink", f"127.0.0.1:{self.port}",
            "--host", "127.0.0.1", "--port", str(free_port()),
            "--node-config", f"partition-id={partition} num-partitions=3",
        )  # fmt: skip

    def federate(self, app, out, *, observed):
        """Six rounds; one node is killed after the third, and started again after the fourth."""
        config = f'out="{out}" rounds={ROUNDS} restarts=true observed={str(observed).lower()}'
        self.run("flwr", "run", str(app), "loop", "--run-config", config, timeout=120)
        self.wait_for(out / "reached-3")
        self.kill("supernode-2")
        self.wait_for(out / "reached-4")
        self.node(2)
        self.wait_for(out / "done")

    def wait_for(self, file):
        wait_until(file.exists, 240, lambda: f"{file} did not appear\n{self.logs()}")


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """The same federation twice, with fedcoast and without."""
    folder = tmp_path_factory.mktemp("deployment")
    app = shutil.copytree(APP, folder / "app")
    with Deployment(folder / "processes") as deployment:
        deployment.link()
        for partition in range(3):
            deployment.node(partition)
        deployment.federate(app, folder / "observed", observed=True)
        deployment.federate(app, folder / "plain", observed=False)
    return folder


def models(folder):
    for number in range(ROUNDS + 1):
        with np.load(folder / f"model-{number}.npz") as arrays:
            yield {name: arrays[name] for name in arrays.files}


def test_training_is_the_same_array_for_array(outcome):
    pairs = list(zip(models(outcome / "observed"), models(outcome / "plain"), strict=True))
    for mine, theirs in pairs:
        assert mine.keys() == theirs.keys()
        for name in mine:
            np.testing.assert_array_equal(mine[name], theirs[name], strict=True)
    assert not np.array_equal(pairs[0][0]["0"], pairs[-1][0]["0"])


def test_scores_are_those_of_a_replay_of_the_recording(outcome):
    recorded = Assessment.from_json((outcome / "observed" / "assessment.json").read_text())
    again = CoAst(horizon=2)
    for fl_round in replay(outcome / "observed" / "run"):
        again.observe(fl_round)
    assert again.assessment() == recorded
    assert any(recorded.scores.values())


def test_the_restarted_node_is_one_client_and_the_failing_one_was_absent(outcome):
    rounds = list(replay(outcome / "observed" / "run"))
    everyone = ("partition-0", "partition-1", "partition-2")
    assert [fl_round.clients for fl_round in rounds] == [
        everyone,
        ("partition-0", "partition-2"),  # partition 1 fails in every even round
        everyone,
        ("partition-0",),  # and partition 2 is down
        everyone,
        ("partition-0", "partition-2"),
    ]
    assert all(not fl_round.quarantined for fl_round in rounds)
    metrics = json.loads((outcome / "observed" / "metrics.json").read_text())
    assert [metrics[str(n)]["fedcoast/absent"] for n in range(1, ROUNDS + 1)] == [0, 1, 0, 1, 0, 1]
    assert all(metrics[str(n)]["fedcoast/observed"] == 1 for n in range(1, ROUNDS + 1))


def test_the_recording_is_what_the_server_had(outcome):
    content = list(models(outcome / "observed"))
    for fl_round in replay(outcome / "observed" / "run"):
        for name, array in content[fl_round.number].items():
            np.testing.assert_array_equal(fl_round.end[name], array)
