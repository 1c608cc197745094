"""What strangers' Flower apps met (the trials of November 2026, 5.2, 5.4, 5.7 and 5.9), with Flower's own FedAvg."""

import numpy as np
import pytest
from flwr.app import ArrayRecord
from flwr.serverapp.exception import InconsistentMessageReplies
from flwr.serverapp.strategy import FedAvg

from fedcoast import BadSetting, CoAst
from fedcoast.integrations.flower import Observed, watch
from integrations.flower.handmade import Node, drifting, federation, model_in, record, small_model

BERLIN, OSLO, ROME, BAD = federation().nodes


class AddsDifferences(FedAvg):
    """FedAvg for clients that send what they changed: the server adds their mean to its model."""

    def configure_train(self, server_round, arrays, config, grid):
        self.before = model_in(arrays)
        return super().configure_train(server_round, arrays, config, grid)

    def aggregate_train(self, server_round, replies):
        mean, metrics = super().aggregate_train(server_round, replies)
        added = {name: self.before[name] + step for name, step in model_in(mean).items()}
        return record(added), metrics


def senders_of_differences():
    grid = federation()
    for node in grid.nodes.values():
        node.train = difference(node.train)
    return grid


def difference(train):
    return lambda model, number: {name: after - model[name] for name, after in train(model, number).items()}


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda node: change(node, lambda a: a * np.float32(np.nan)), "must be finite; got nan"),
        (lambda node: change(node, lambda a: a + np.float32(np.inf)), "must be finite; got inf"),
        (lambda node: setattr(node, "examples", float("nan")), "its weight must be a number ≥ 0; got nan"),
    ],
    ids=["NaN", "Inf", "NaN examples"],
)
def test_under_fedavg_one_broken_upload_is_named_and_the_next_federation_is_observed(spoil, reason):
    """Trial 5.2: one such upload blinded fedcoast for good, and nobody was named."""
    grid, coast = federation(), CoAst(horizon=1)
    spoil(grid.nodes[OSLO])
    strategy = Observed(FedAvg(fraction_evaluate=0.0), coast)
    strategy.start(grid, record(small_model()), num_rounds=1)
    problem = strategy.unobserved[1]["everyone"]
    assert problem.count("client '") == 1
    assert "client 'partition-1'" in problem
    assert reason in problem
    grid.nodes[OSLO] = Node(drifting(2), metadata={"partition-id": 1})
    strategy.start(grid, record(small_model()), num_rounds=3)  # from a model that is finite again
    assert set(strategy.unobserved) == {1}
    assert coast.assessment().rounds_scored["partition-1"] == 2


def change(node, function):
    good = node.train
    node.train = lambda model, number: {name: function(array) for name, array in good(model, number).items()}


@pytest.mark.parametrize("how", ["wrapped", "watched"])
def test_clients_that_send_differences_score_as_their_models_do(how):
    """Trial 5.4: differences gave silent nonsense."""
    models, differences = CoAst(horizon=1), CoAst(horizon=1)
    Observed(FedAvg(fraction_evaluate=0.0), models).start(federation(), record(small_model()), num_rounds=5)
    grid, strategy = senders_of_differences(), AddsDifferences(fraction_evaluate=0.0)
    if how == "wrapped":
        Observed(strategy, differences, uploads="differences").start(grid, record(small_model()), num_rounds=5)
    else:
        observed_grid = watch(grid, differences, uploads="differences")
        result = strategy.start(observed_grid, record(small_model()), num_rounds=5)
        observed_grid.finish(result.arrays)
    found, wanted = differences.assessment(), models.assessment()
    assert not found.quarantined
    assert found.ranking == wanted.ranking
    assert found.scores == pytest.approx(dict(wanted.scores), abs=0.05)


def test_differences_that_nobody_declared_are_refused_by_name_and_the_round_counts_as_observed():
    """Trials 5.4 and 5.7: `fedcoast/observed` is 1, also when every client was quarantined."""
    coast = CoAst(horizon=1)
    strategy = Observed(AddsDifferences(fraction_evaluate=0.0), coast)
    result = strategy.start(senders_of_differences(), record(small_model()), num_rounds=2)
    reasons = coast.assessment().quarantined[1]
    assert set(reasons) == {f"partition-{place}" for place in range(4)}
    assert all("looks like a difference or a gradient" in reason for reason in reasons.values())
    assert all("uploads='differences'" in reason for reason in reasons.values())
    assert strategy.unobserved == {}
    metrics = result.train_metrics_clientapp[1]
    assert (metrics["fedcoast/observed"], metrics["fedcoast/coast/quarantined"]) == (1, 4)


@pytest.mark.parametrize(
    ("send", "reason"),
    [
        (lambda model: {"conv.weight": model["conv.weight"]}, "'fc.bias' is missing"),
        (lambda model: {**model, "extra": np.zeros(3, np.float32)}, "'extra' is not"),
    ],
    ids=["missing", "extra"],
)
def test_layers_that_end_the_run_inside_fedavg_name_their_client(send, reason, caplog):
    """Trial 5.7: Flower's FedAvg itself ends the run, and nobody is quarantined; the log says whose upload it was."""
    grid, coast = federation(), CoAst(horizon=1)
    good = grid.nodes[BAD].train
    grid.nodes[BAD].train = lambda model, number: send(good(model, number))
    strategy = Observed(FedAvg(fraction_evaluate=0.0), coast)
    with pytest.raises(InconsistentMessageReplies):
        strategy.start(grid, record(small_model()), num_rounds=2)
    assert "client 'partition-3'" in caplog.text
    assert reason in caplog.text
    assert coast.last_round is None


def test_the_hint_for_loops_of_ones_own_runs_as_it_is_printed_and_keeps_the_scores():
    """Trial 5.9: the hint made an assessor that nobody could ask."""

    class Own(FedAvg):
        def start(self, grid, initial_arrays: ArrayRecord, num_rounds=3, **options):
            return super().start(grid, initial_arrays, num_rounds, **options)

    with pytest.raises(BadSetting, match="overrides start") as refused:
        Observed(Own(), CoAst())
    _, _, code = str(refused.value).partition("observe the grid instead: ")
    names = {"CoAst": CoAst, "watch": watch, "grid": federation(), "strategy": Own(fraction_evaluate=0.0)}
    names["arrays"] = record(small_model())
    *steps, last = code.replace("…", "initial_arrays=arrays").split(";")
    exec("\n".join(step.strip() for step in steps), names)
    answer = eval(last.strip(), names)
    assert answer.rounds_scored == {f"partition-{place}": 2 for place in range(4)}
