"""A killed ServerApp: it starts again, goes on, and its scores are those of a run that was never killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Context, RecordDict
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAdam, FedAvg

from fedcoast import Assessment, BadFile, CoAst, Recorder
from fedcoast.integrations.flower import Observed, resumed
from integrations.flower.handmade import federation, record, small_model

ROUNDS = 7


def serve(folder, rounds, kill_in=None, answer=None):
    """A ServerApp as a user writes it; it may be killed by the system, in the middle of a round."""
    app = ServerApp()

    @app.main()
    def main(grid, context):
        arrays, done = resumed(folder, record(small_model()))
        coast = CoAst(keep=0.3, horizon=2)
        strategy = Observed(FedAvg(), coast, Recorder(folder), continue_rounds=True)

        if kill_in is not None:
            node = next(iter(grid.nodes.values()))
            train = node.train
            node.train = lambda model, n: os.kill(os.getpid(), signal.SIGKILL) if n == kill_in else train(model, n)
        strategy.start(grid, arrays, num_rounds=rounds - done)
        Path(answer).write_text(coast.assessment().to_json())

    app(federation(), Context(1, 1, {}, RecordDict(), {}))


@pytest.mark.parametrize("kill_in", [1, 4, ROUNDS])
def test_a_killed_serverapp_goes_on_with_identical_scores(tmp_path, kill_in):
    serve(tmp_path / "whole", ROUNDS, answer=tmp_path / "whole.json")
    code = (
        "from integrations.flower.handmade import as_a_task; from integrations.flower.test_resuming import serve;"
        " as_a_task();"
        f"serve({str(tmp_path / 'run')!r}, {ROUNDS}, kill_in={kill_in})"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    killed = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    serve(tmp_path / "run", ROUNDS, answer=tmp_path / "again.json")
    whole = Assessment.from_json((tmp_path / "whole.json").read_text())
    assert Assessment.from_json((tmp_path / "again.json").read_text()) == whole
    assert any(whole.scores.values())


def test_resumed_gives_the_last_model_and_the_rounds_done(tmp_path):
    first = record(small_model())
    assert resumed(tmp_path / "run", first) == (first, 0)
    with Recorder(tmp_path / "run") as recorder:
        assert resumed(tmp_path / "run", first) == (first, 0)
        result = Observed(FedAvg(), recorder).start(federation(), first, num_rounds=3)
    arrays, done = resumed(tmp_path / "run", first)
    assert done == 3
    assert list(arrays) == list(result.arrays)
    assert arrays == result.arrays


def run(folder, arrays, rounds, strategy=None, **options):
    coast = CoAst(keep=0.3, horizon=1)
    with Recorder(folder) as recorder:
        observed = Observed(strategy or FedAvg(), coast, recorder, **options)
        result = observed.start(federation(), arrays, num_rounds=rounds)
    assert observed.unobserved == {}
    return coast, result


def test_round_numbers_go_on_and_the_strategy_counts_as_flower_does(tmp_path):
    class Notes(FedAvg):
        def __init__(self):
            super().__init__()
            self.configured = []

        def configure_train(self, server_round, arrays, config, grid):
            self.configured.append(server_round)
            return super().configure_train(server_round, arrays, config, grid)

    run(tmp_path / "run", record(small_model()), 2)
    plain = Notes()
    coast, _ = run(tmp_path / "run", resumed(tmp_path / "run", None)[0], 2, plain)
    assert plain.configured == [1, 2]
    assert coast.last_round == 4
    going_on = Notes()
    run(tmp_path / "run", resumed(tmp_path / "run", None)[0], 2, going_on, continue_rounds=True)
    assert going_on.configured == [5, 6]


def test_a_float64_checkpoint_goes_on_in_the_kinds_of_the_recording(tmp_path):
    _, result = run(tmp_path / "run", record(small_model()), 3, FedAdam())
    assert result.arrays["fc.bias"].dtype == "float64"
    coast, _ = run(tmp_path / "run", result.arrays, 3, FedAdam())
    assert coast.last_round == 6
    assert not coast.assessment().quarantined


def test_another_training_in_the_same_folder_is_warned_of(tmp_path, caplog):
    _, result = run(tmp_path / "run", record(small_model()), 2)
    run(tmp_path / "run", result.arrays, 1)
    assert "does not start from the model" not in caplog.text
    run(tmp_path / "run", record({k: a + 1 for k, a in small_model().items()}), 2)
    assert caplog.text.count("round 4 does not start from the model that the recording ended with in round 3") == 1


def test_an_assessor_that_was_restored_sees_only_what_it_missed(tmp_path):
    coast, result = run(tmp_path / "run", record(small_model()), 3)
    coast.save(tmp_path / "state")
    again = CoAst(keep=0.3, horizon=1)
    again.restore(tmp_path / "state")
    with Recorder(tmp_path / "run") as recorder:
        Observed(FedAvg(), again, recorder).start(federation(), result.arrays, num_rounds=1)
    assert again.last_round == 4


def test_a_torn_recording_is_said_before_training_starts(tmp_path):
    run(tmp_path / "run", record(small_model()), 2)
    (tmp_path / "run" / "rounds" / "0000000001" / "round.json").write_text("{")
    with Recorder(tmp_path / "run") as recorder, pytest.raises(BadFile, match="torn or altered"):
        Observed(FedAvg(), CoAst(), recorder)


def test_the_order_of_layers_survives(tmp_path):
    model = {"z": np.zeros(3, np.float32), "a": np.ones(2, np.float32)}
    run(tmp_path / "run", record(model), 1)
    assert list(resumed(tmp_path / "run", None)[0]) == ["z", "a"]
