"""Trackers inside Flower: scores in the metrics as ever, steps that go on after a restart, training never stopped."""

from pathlib import Path

import numpy as np
from flwr.serverapp.strategy import FedAvg

from fedcoast import CoAst, Recorder
from fedcoast.integrations.flower import Observed, resumed
from fedcoast.integrations.trackers import TensorBoard
from integrations.flower.handmade import federation, record, small_model
from integrations.trackers.federation import about
from integrations.trackers.test_tensorboard import read


def start(strategy, arrays, rounds=4):
    return strategy.start(federation(), arrays, num_rounds=rounds)


def coast():
    return CoAst(keep=0.3, horizon=1)


def test_an_observed_strategy_shows_the_same_metrics_with_a_tracker_and_without(tmp_path):
    plain = start(Observed(FedAvg(), coast()), record(small_model()))
    tracked = start(Observed(FedAvg(), TensorBoard(coast(), tmp_path / "logs")), record(small_model()))
    assert tracked.arrays == plain.arrays
    assert {n: dict(of) for n, of in tracked.train_metrics_clientapp.items()} == {
        n: dict(of) for n, of in plain.train_metrics_clientapp.items()
    }
    scores = {key: value for key, value in tracked.train_metrics_clientapp[4].items() if "/coast/score/" in key}
    assert len(scores) == 4
    logged, _ = read(tmp_path / "logs")
    for key, value in scores.items():
        assert logged[f"fedcoast/score/{key.rpartition('/')[2]}"][4] == about(value)


def test_a_restarted_server_goes_on_with_its_steps(tmp_path):
    for _ in range(2):
        arrays, _ = resumed(tmp_path / "run", record(small_model()))
        with Recorder(tmp_path / "run") as recorder:
            tracker = TensorBoard(coast(), tmp_path / "logs", recorder)
            start(Observed(FedAvg(), recorder, tracker), arrays, 3)
    whole = coast()
    start(Observed(FedAvg(), whole), record(small_model()), 3)
    logged, texts = read(tmp_path / "logs")
    assert set(logged["fedcoast/round/pending"]) == {1, 2, 3, 4, 5, 6}
    name, score = next(iter(whole.assessment().scores.items()))
    assert logged[f"fedcoast/score/{name}"][3] == about(score)
    assert texts["fedcoast/chain/head"].endswith(" (round 6)")


def test_a_tracker_whose_disk_is_full_never_stops_training(tmp_path, caplog):
    tracker = TensorBoard(coast(), tmp_path / "logs")
    tracker._opened, tracker._file = True, Path("/dev/full")
    strategy = Observed(FedAvg(), tracker)
    result = start(strategy, record(small_model()))
    assert all(np.isfinite(array.numpy()).all() for array in result.arrays.values())
    assert strategy.unobserved == {}
    assert caplog.text.count("stopped logging") == 1
    assert any("/coast/score/" in key for key in result.train_metrics_clientapp[4])
