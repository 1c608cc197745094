"""The wrapper: who answered, what is told, and that nothing of ours ever stops a federation."""

import json
import logging
from dataclasses import replace

import numpy as np
import pytest
from flwr.app import ConfigRecord, MetricRecord
from flwr.serverapp.strategy import FedAvg

from fedcoast import BadSetting, CoAst, Recorder, replay
from fedcoast.integrations.flower import Observed
from fedcoast.methods import ComFedSV
from integrations.flower.handmade import (
    HandmadeGrid,
    Node,
    answer,
    ask,
    drifting,
    failure,
    federation,
    record,
    small_model,
)

BERLIN, OSLO, ROME, BAD = federation().nodes


class Probe:
    """An observer that keeps what it is shown."""

    def __init__(self):
        self.rounds = []

    def observe(self, fl_round, /):
        self.rounds.append(fl_round)


class Broken:
    def observe(self, fl_round, /):
        raise ZeroDivisionError("a bug in the user's probe")


def run(*observers, grid=None, rounds=4, strategy=None, **options):
    strategy = Observed(strategy or FedAvg(), *observers, **options)
    return strategy, strategy.start(grid or federation(), record(small_model()), num_rounds=rounds)


def test_a_round_holds_the_facts_of_flower():
    probe = Probe()
    grid = federation()
    _, result = run(probe, grid=grid, rounds=2)
    first, second = probe.rounds
    assert (first.number, second.number) == (1, 2)
    assert first.clients == ("partition-0", "partition-1", "partition-2", "partition-3")
    assert first.weights == {"partition-0": 30, "partition-1": 20, "partition-2": 10, "partition-3": 10}
    assert first.start.keys() == small_model().keys()
    for layer, array in small_model().items():
        np.testing.assert_array_equal(first.start[layer], array)
        np.testing.assert_array_equal(second.start[layer], first.end[layer])
        np.testing.assert_array_equal(second.end[layer], result.arrays[layer].numpy())
    sent = grid.nodes[OSLO].train(small_model(), 1)
    for layer, array in first.local["partition-1"].items():
        np.testing.assert_array_equal(array, sent[layer])


def test_uploads_are_views_of_the_bytes_that_came_and_cannot_be_written():
    probe = Probe()
    run(probe, rounds=1)
    array = probe.rounds[0].local["partition-0"]["fc.bias"]
    assert not array.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        array += 1


def test_errors_and_time_outs_are_absent_and_counted():
    def fails_every_other_round(model, number):
        if number % 2 == 0:
            raise RuntimeError("out of memory")
        return drifting(2)(model, number)

    grid = federation()
    grid.nodes[OSLO].train = fails_every_other_round
    grid.nodes[ROME].train = lambda model, number: None if number == 3 else drifting(3)(model, number)
    probe, coast = Probe(), CoAst(horizon=1)
    _, result = run(probe, coast, grid=grid, rounds=5)
    assert [len(fl_round.clients) for fl_round in probe.rounds] == [4, 3, 3, 3, 4]
    assert [result.train_metrics_clientapp[n]["fedcoast/absent"] for n in range(1, 6)] == [0, 1, 1, 1, 0]
    assert coast.assessment().rounds_scored == {"partition-0": 4, "partition-1": 2, "partition-2": 3, "partition-3": 4}
    assert not coast.assessment().quarantined


def test_when_nobody_answers_the_round_is_not_observed_and_training_goes_on():
    def silent_in_two(model, number):
        return None if number == 2 else drifting(1)(model, number)

    probe = Probe()
    strategy, result = run(probe, grid=HandmadeGrid({1: Node(silent_in_two), 2: Node(silent_in_two)}), rounds=3)
    assert [fl_round.number for fl_round in probe.rounds] == [1, 3]
    assert result.train_metrics_clientapp[2]["fedcoast/observed"] == 0
    assert strategy.unobserved == {}


def test_a_strategy_that_keeps_the_old_model_ends_the_round_where_it_began():
    class Refuses(FedAvg):
        def aggregate_train(self, server_round, replies):
            return None, None

    probe = Probe()
    run(probe, strategy=Refuses(), rounds=2)
    for fl_round in probe.rounds:
        np.testing.assert_array_equal(fl_round.end["fc.bias"], small_model()["fc.bias"])


def test_scores_are_in_the_metrics_of_every_round_and_in_the_result_and_survive_json():
    coast = CoAst(keep=0.3, horizon=2)
    _, result = run(coast, rounds=5)
    metrics = result.train_metrics_clientapp
    assert [metrics[n]["fedcoast/coast/pending"] for n in range(1, 6)] == [[1], [1, 2], [2, 3], [3, 4], [4, 5]]
    assert metrics[1]["fedcoast/coast/score/partition-3"] == 0
    assert metrics[1]["fedcoast/coast/rounds/partition-3"] == 0
    final = coast.assessment()
    for client in final.clients:
        assert metrics[5][f"fedcoast/coast/score/{client}"] == final.scores[client]
        assert metrics[5][f"fedcoast/coast/rounds/{client}"] == 3
    assert json.loads(json.dumps(dict(metrics[5]), allow_nan=False)) == dict(metrics[5])
    assert json.loads(json.dumps(dict(metrics[5])))["fedcoast/observed"] == 1


def test_two_assessors_of_one_method_are_told_apart():
    _, result = run(CoAst(keep=0.1, horizon=1), CoAst(keep=0.5, horizon=1), rounds=3)
    metrics = result.train_metrics_clientapp[3]
    assert "fedcoast/coast/score/partition-0" in metrics
    assert "fedcoast/coast#2/score/partition-0" in metrics


def test_a_method_that_cannot_answer_yet_costs_the_others_nothing_and_is_told_once(caplog):
    def utility(model):
        return -float(sum(np.square(array, dtype=np.float64).sum() for array in model.values()))

    def answers_in(*rounds):
        return lambda model, number: drifting(2)(model, number) if number in rounds else None

    grid = federation()  # of which two are together in round 4 only
    grid.nodes[OSLO].train, grid.nodes[ROME].train = answers_in(1, 3, 4), answers_in(2, 4)
    _, result = run(CoAst(horizon=1), ComFedSV(utility), grid=grid)
    metrics = result.train_metrics_clientapp
    for number in range(1, 5):
        assert "fedcoast/coast/score/partition-0" in metrics[number]
    assert ["fedcoast/comfedsv/score/partition-0" in metrics[n] for n in range(1, 5)] == [True, False, False, True]
    assert metrics[3]["fedcoast/observed"] == 1
    assert caplog.text.count("comfedsv has no answer: ComFedSV needs a round") == 1


def test_an_answer_that_cannot_be_told_costs_the_others_nothing():
    class Forgetful(CoAst):
        method = "forgetful"

        def assessment(self):
            return replace(super().assessment(), rounds_scored={})

    _, result = run(Forgetful(horizon=1), CoAst(horizon=1), rounds=2)
    assert "fedcoast/coast/score/partition-0" in result.train_metrics_clientapp[2]


def test_the_metrics_of_the_strategy_are_carried_in_the_round():
    grid = federation()
    for node in grid.nodes.values():
        node.metadata |= {"loss": 0.25}
    probe = Probe()
    run(probe, grid=grid, rounds=1)
    assert probe.rounds[0].metrics["loss"] == pytest.approx(0.25)


def test_an_observer_that_raises_costs_its_own_round_and_nothing_else(caplog):
    coast, alone = CoAst(horizon=1), CoAst(horizon=1)
    strategy, result = run(Broken(), coast)
    _, plain = run(alone)
    assert strategy.unobserved[2] == {"broken": "a bug in the user's probe"}
    assert result.train_metrics_clientapp[2]["fedcoast/observed"] == 0
    assert coast.assessment() == alone.assessment()
    assert result.arrays == plain.arrays
    assert "round 2 was not observed by broken: a bug in the user's probe" in caplog.text


def test_a_recorder_that_fails_is_told_and_the_others_see_the_round(tmp_path):
    recorder, coast = Recorder(tmp_path / "run"), CoAst(horizon=1)
    recorder.close()
    strategy, _ = run(recorder, coast)
    assert "was closed" in strategy.unobserved[1]["recorder"]
    assert coast.last_round == 4


def test_a_client_that_sends_nan_is_quarantined_and_the_rest_is_scored():
    grid = federation()
    good = grid.nodes[OSLO].train
    grid.nodes[OSLO].train = lambda model, n: {k: a * (np.nan if n == 2 else 1) for k, a in good(model, n).items()}

    class Robust(FedAvg):
        def aggregate_train(self, server_round, replies):
            return super().aggregate_train(
                server_round, [r for r in replies if np.isfinite(r.content["arrays"]["fc.bias"].numpy()).all()]
            )

    coast = CoAst(horizon=1)
    strategy, _ = run(coast, grid=grid, strategy=Robust())
    assert strategy.unobserved == {}
    assert "must be finite" in coast.assessment().quarantined[2]["partition-1"]
    assert coast.assessment().rounds_scored == {"partition-0": 3, "partition-1": 2, "partition-2": 3, "partition-3": 3}


def test_a_global_model_that_is_not_finite_is_a_round_nobody_saw():
    grid = federation()
    grid.nodes[OSLO].train = lambda model, n: {k: a * np.float32(np.nan) for k, a in model.items()}
    strategy, result = run(CoAst(), grid=grid, rounds=2)
    reason = strategy.unobserved[1]["everyone"]
    assert "global model after the round: layer 'conv.weight' must be finite" in reason
    assert reason.count("client '") == 1, "only the culprit is named"
    assert "global model before the round" in strategy.unobserved[2]["everyone"]
    assert np.isnan(result.arrays["fc.bias"].numpy()).all()


def test_weights_come_from_the_key_of_the_strategy_however_deep_it_is_wrapped():
    from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping as Clipped

    grid = federation()
    for place, node in enumerate(grid.nodes.values()):
        node.metadata |= {"steps": place + 1}
    probe = Probe()
    inner = Clipped(
        FedAvg(fraction_evaluate=0.0, weighted_by_key="steps"),
        noise_multiplier=0.0,
        clipping_norm=9.0,
        num_sampled_clients=4,
    )
    run(probe, grid=grid, rounds=1, strategy=inner)
    assert probe.rounds[0].weights == {f"partition-{place}": place + 1 for place in range(4)}


def test_batch_norm_statistics_and_counters_are_carried_and_do_not_vote():
    model = small_model() | {
        "bn.running_mean": np.zeros(3, np.float32),
        "bn.num_batches_tracked": np.array(5, np.int64),
    }
    coast, probe = CoAst(horizon=1), Probe()
    strategy = Observed(FedAvg(), coast, probe)
    result = strategy.start(federation(), record(model), num_rounds=3)
    assert result.arrays["bn.num_batches_tracked"].dtype == "float64"  # Flower's mean of integers
    assert strategy.unobserved == {}
    assert not coast.assessment().quarantined
    schema = probe.rounds[2].schema()
    assert {entry.name for entry in schema.trainable} == small_model().keys()
    assert {entry.name: entry.dtype for entry in schema.entries}["bn.num_batches_tracked"] == "int64"


def test_layers_nobody_trains_can_be_named():
    probe = Probe()
    run(probe, rounds=1, buffers=["conv.*"])
    assert [entry.name for entry in probe.rounds[0].schema().trainable] == ["fc.bias"]


def test_replies_may_be_any_iterable_and_are_read_once():
    strategy, probe = FedAvg(), Probe()
    observed = Observed(strategy, probe)
    arrays, grid = record(small_model()), federation()
    messages = list(observed.configure_train(1, arrays, ConfigRecord(), grid))
    replies = (answer(m, drifting(i)(small_model(), 1)) for i, m in enumerate(messages))
    aggregated, metrics = observed.aggregate_train(1, replies)
    assert aggregated is not None
    assert isinstance(metrics, MetricRecord)
    assert len(probe.rounds[0].clients) == 4


def test_replies_that_cannot_be_read_are_a_round_nobody_saw(monkeypatch):
    def broken(replies):
        raise KeyError("a record of another version")

    monkeypatch.setattr("fedcoast.integrations.flower.observed.uploads_in", broken)
    strategy, result = run(CoAst(), rounds=1)
    assert "the replies cannot be read" in strategy.unobserved[1]["everyone"]
    assert result.train_metrics_clientapp[1]["fedcoast/observed"] == 0
    assert result.arrays is not None


def test_who_answered_was_absent_or_was_left_out_is_told():
    grid = federation()
    grid.nodes[OSLO].metadata["partition-id"] = 0  # a double
    grid.nodes[ROME].train = lambda model, number: None
    _, result = run(CoAst(), grid=grid, rounds=1)
    metrics = result.train_metrics_clientapp[1]
    assert (metrics["fedcoast/answered"], metrics["fedcoast/absent"], metrics["fedcoast/coast/quarantined"]) == (
        3,
        1,
        1,
    )


def test_aggregation_without_configuration_is_said_and_does_not_stop():
    observed = Observed(FedAvg(), CoAst())
    reply = answer(ask(1, record(small_model())), small_model())
    arrays, metrics = observed.aggregate_train(1, [reply, failure(ask(2, record(small_model())))])
    assert arrays is not None
    assert metrics["fedcoast/observed"] == 0
    assert "configure_train must come before aggregate_train" in observed.unobserved[1]["everyone"]


def test_an_error_of_the_strategy_is_its_own():
    grid = federation()
    grid.nodes[OSLO].metadata["extra"] = 1  # another set of metrics than the others': FedAvg refuses
    with pytest.raises(Exception, match="same keys"):
        run(CoAst(), grid=grid)


def test_training_can_be_started_twice_and_the_rounds_go_on():
    coast = CoAst(horizon=1)
    strategy = Observed(FedAvg(), coast)
    result = strategy.start(federation(), record(small_model()), num_rounds=2)
    strategy.start(federation(), result.arrays, num_rounds=2)
    assert strategy.unobserved == {}
    assert coast.last_round == 4


def test_a_recording_replays_to_the_same_scores(tmp_path):
    coast = CoAst(horizon=1)
    with Recorder(tmp_path / "run") as recorder:
        run(coast, recorder, rounds=4)
    again = CoAst(horizon=1)
    for fl_round in replay(tmp_path / "run"):
        again.observe(fl_round)
    assert again.assessment() == coast.assessment()


def test_uploads_are_let_go_after_the_round():
    strategy, _ = run(CoAst(horizon=1), rounds=1)
    assert strategy._start is None


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Observed(FedAvg()), "at least one observer is wanted"),
        (lambda: Observed(FedAvg(), CoAst), "an observer has a method observe"),
        (lambda: Observed(FedAvg(), print), "an observer has a method observe"),
        (lambda: Observed("FedAvg", CoAst()), "a flwr.serverapp.strategy.Strategy is wanted; got 'FedAvg'"),
    ],
)
def test_what_cannot_be_observed_is_refused_at_once(make, text):
    with pytest.raises(BadSetting, match=text):
        make()


def test_one_observer_twice_is_refused():
    coast = CoAst()
    with pytest.raises(BadSetting, match="twice"):
        Observed(FedAvg(), coast, coast)


def test_a_strategy_with_a_loop_of_its_own_is_sent_to_the_tap():
    class Own(FedAvg):
        def start(self, *args, **kwargs):
            return "another loop"

    with pytest.raises(BadSetting, match=r"overrides start.*watch\(grid"):
        Observed(Own(), CoAst())


def test_the_summary_names_the_observers(caplog):
    with caplog.at_level(logging.INFO, "fedcoast"):
        Observed(FedAvg(), CoAst(), Probe()).summary()
    assert "observed by coast, probe" in caplog.text
