"""Simulations on Flower's Ray backend, started by `flwr run` as a user does."""

import json
import re
import shutil
from pathlib import Path

import pytest

from fedcoast import Assessment, CoAst, replay
from fedcoast.analysis.uncertainty import uncertainty
from fedcoast.analysis.verdicts import verdicts
from integrations.flower.processes import BIN, Processes, free_port

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[3] / "examples" / "flower-quickstart"
BIG = 50
OWN_PROGRAM = (BIN / "flower-simulation").exists()  # older versions of Flower simulate without a SuperLink


@pytest.fixture(scope="module")
def simulator(tmp_path_factory):
    """A SuperLink of our own in simulation mode: `flwr run` alone would leave one behind."""
    with Processes(tmp_path_factory.mktemp("simulation") / "processes") as processes:
        if OWN_PROGRAM:
            yield processes
            return
        port = free_port()
        # As by default, Flower makes an environment for each run: apps that list no packages use those beside Flower.
        del processes.environment["FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION"]
        processes.start(
            "superlink", "flower-superlink", "--insecure", "--simulation", "--host", "127.0.0.1", "--port", str(port)
        )
        processes.connect_to(port)
        yield processes


def run(simulator, app, nodes, config):
    if OWN_PROGRAM:
        return simulator.run(
            "flower-simulation", "--app", str(app), "--num-supernodes", str(nodes),
            "--backend-config", '{"client_resources": {"num_cpus": 1}}', "--run-config", config, timeout=300,
        )  # fmt: skip
    return simulator.run(
        "flwr", "run", str(app), "loop", "--stream",
        "--federation-config", f"num-supernodes={nodes} client-resources-num-cpus=1",
        "--run-config", config, timeout=300,
    )  # fmt: skip


def test_fifty_virtual_clients_a_fifth_of_them_a_round(simulator, tmp_path):
    app = shutil.copytree(Path(__file__).parent / "deployed", tmp_path / "app")
    out = tmp_path / "out"
    run(simulator, app, BIG, f'out="{out}" nodes={BIG} fraction=0.2 rounds=5')
    answer = Assessment.from_json((out / "assessment.json").read_text())
    again = CoAst(horizon=2)
    rounds = list(replay(out / "run"))
    for fl_round in rounds:
        assert 9 <= len(fl_round.clients) <= BIG // 5  # partition 1 fails every other round
        again.observe(fl_round)
    assert again.assessment() == answer
    assert len(answer.clients) > BIG // 5
    assert sum(answer.rounds_scored.values()) == sum(len(fl_round.clients) for fl_round in rounds[:3])
    assert all(re.fullmatch(r"partition-\d+", client) for client in answer.clients)
    metrics = json.loads((out / "metrics.json").read_text())
    assert all(of_round["fedcoast/observed"] == 1 for of_round in metrics.values())


def test_the_example_app_tells_who_helps_who_hurts_and_who_free_rides(simulator, tmp_path):
    app = shutil.copytree(EXAMPLE, tmp_path / "app")
    output = run(simulator, app, 5, f'record="{tmp_path / "run"}"')
    coast = CoAst()
    for fl_round in replay(tmp_path / "run"):
        coast.observe(fl_round)
    answer = coast.assessment()
    assert set(answer.scores) == {"berlin", "oslo", "rome", "cairo", "lima"}
    assert min(answer.scores[site] for site in ("berlin", "oslo", "rome")) > 0
    found = verdicts(answer, uncertainty(answer))
    assert {site: found[site] for site in ("berlin", "lima", "cairo")} == {
        "berlin": "helps", "lima": "idle", "cairo": "hurts"
    }  # fmt: skip
    assert re.search(r"\d . berlin", output)  # the ranking, streamed to the terminal
