"""The tap: the same rounds from the grid alone, for strategies and loops that are not touched."""

import numpy as np
import pytest
from flwr.app import ArrayRecord, ConfigRecord, Message, RecordDict
from flwr.serverapp.strategy import FedAvg

from fedcoast import CoAst
from fedcoast.integrations.flower import Observed, watch
from integrations.flower.handmade import HandmadeGrid, Node, ask, drifting, federation, record, small_model


class Probe:
    def __init__(self):
        self.rounds = []

    def observe(self, fl_round, /):
        self.rounds.append(fl_round)


def by_the_wrapper(rounds=4):
    coast = CoAst(horizon=1)
    Observed(FedAvg(), coast).start(federation(), record(small_model()), num_rounds=rounds)
    return coast.assessment()


def mean_of(replies):
    models = [reply.content["arrays"] for reply in replies if not reply.has_error()]
    return record({name: np.mean([model[name].numpy() for model in models], axis=0) for name in models[0]})


def test_with_an_evaluation_every_round_is_seen():
    coast = CoAst(horizon=1)
    FedAvg().start(watch(federation(), coast), record(small_model()), num_rounds=4)
    assert coast.assessment() == by_the_wrapper()


def test_without_evaluation_the_last_round_waits_for_its_end():
    coast = CoAst(horizon=1)
    observed_grid = watch(federation(), coast)
    result = FedAvg(fraction_evaluate=0.0).start(observed_grid, record(small_model()), num_rounds=4)
    assert coast.last_round == 3
    metrics = observed_grid.finish(result.arrays)
    assert coast.assessment() == by_the_wrapper()
    assert metrics["fedcoast/coast/score/partition-0"] == coast.assessment().scores["partition-0"]
    assert observed_grid.finish(result.arrays) == {}


def test_a_loop_of_ones_own_is_watched_too():
    probe = Probe()
    grid = watch(federation(), probe)
    arrays = record(small_model())
    for number in range(3):
        replies = grid.send_and_receive(
            [ask(node, arrays, config={"server-round": number}) for node in grid.get_node_ids()]
        )
        arrays = mean_of(replies)
    grid.finish(arrays)
    assert [fl_round.number for fl_round in probe.rounds] == [1, 2, 3]
    np.testing.assert_array_equal(probe.rounds[2].end["fc.bias"], arrays["fc.bias"].numpy())
    np.testing.assert_array_equal(probe.rounds[1].start["fc.bias"], probe.rounds[0].end["fc.bias"])
    assert probe.rounds[0].weights["partition-0"] == 30


def test_messages_pushed_one_by_one_and_pulled_later_are_one_round():
    probe = Probe()
    grid = watch(federation(), probe)
    arrays = record(small_model())
    for _ in range(2):
        ids = [one for node in grid.get_node_ids() for one in grid.push_messages([ask(node, arrays)])]
        replies = [reply for one in ids for reply in grid.pull_messages([one])]
        arrays = mean_of(replies)
    grid.finish(arrays)
    assert [(fl_round.number, len(fl_round.clients)) for fl_round in probe.rounds] == [(1, 4), (2, 4)]
    np.testing.assert_array_equal(probe.rounds[1].end["fc.bias"], arrays["fc.bias"].numpy())


def test_a_reply_that_comes_after_its_round_is_in_no_other():
    probe = Probe()
    grid = watch(federation(), probe)
    arrays = record(small_model())
    late: list[str] = []
    for _ in range(2):
        ids = [one for node in grid.get_node_ids() for one in grid.push_messages([ask(node, arrays)])]
        arrays = mean_of([reply for one in ids[:3] for reply in grid.pull_messages([one])])
        list(grid.pull_messages(late))
        late = ids[3:]
    grid.finish(arrays)
    assert [len(fl_round.clients) for fl_round in probe.rounds] == [3, 3]
    assert grid.unobserved == {}


def test_clients_that_are_asked_one_after_the_other_are_one_round():
    coast, alone = CoAst(horizon=1), CoAst(horizon=1)
    for assessor, at_once in ((coast, False), (alone, True)):
        grid, arrays = watch(federation(), assessor), record(small_model())
        for number in range(1, 5):
            messages = [ask(node, arrays, config={"server-round": number}) for node in grid.get_node_ids()]
            batches = [messages] if at_once else [[message] for message in messages]
            arrays = mean_of([reply for batch in batches for reply in grid.send_and_receive(batch)])
        grid.finish(arrays)
        assert grid.unobserved == {}
    assert coast.last_round == 4
    assert coast.assessment() == alone.assessment()


@pytest.mark.parametrize("config", [{"server-round": 1}, {}])
def test_a_client_that_is_asked_again_after_a_failure_is_in_the_same_round(config):
    tries = []

    def fails_once(model, number):
        tries.append(number)
        if len(tries) == 1:
            raise RuntimeError("out of memory")
        return drifting(3)(model, number)

    nodes = {1: Node(drifting(1)), 2: Node(drifting(2)), 3: Node(fails_once), 4: Node(lambda m, n: None)}
    probe = Probe()
    grid, arrays = watch(HandmadeGrid(nodes), probe), record(small_model())
    replies = list(grid.send_and_receive([ask(node, arrays, config={"server-round": 1}) for node in (1, 2, 3, 4)]))
    replies += grid.send_and_receive([ask(node, arrays, config=config) for node in (3, 4)])
    metrics = grid.finish(mean_of(replies))
    assert [fl_round.clients for fl_round in probe.rounds] == [("node-1", "node-2", "node-3")]
    assert (metrics["fedcoast/answered"], metrics["fedcoast/absent"]) == (3, 1)
    np.testing.assert_array_equal(probe.rounds[0].end["fc.bias"], mean_of(replies)["fc.bias"].numpy())


def test_the_same_model_for_others_is_the_next_round_if_the_server_says_so():
    probe = Probe()
    grid, arrays = watch(federation(), probe), record(small_model())
    one, two, three, four = grid.get_node_ids()
    for number, nodes in ((1, (one, two)), (2, (three, four))):
        list(grid.send_and_receive([ask(node, arrays, config={"server-round": number}) for node in nodes]))
    grid.finish(arrays)
    assert [fl_round.clients for fl_round in probe.rounds] == [
        ("partition-0", "partition-1"),
        ("partition-2", "partition-3"),
    ]


def test_a_round_nobody_answered_is_no_round():
    probe = Probe()
    grid = watch(HandmadeGrid({1: Node(lambda m, n: None), 2: Node(lambda m, n: None)}), probe)
    FedAvg(fraction_evaluate=0.0).start(grid, record(small_model()), num_rounds=2)
    grid.finish()
    assert probe.rounds == []


def test_a_model_that_stays_ends_the_round_where_it_began():
    probe = Probe()
    grid = watch(federation(), probe)
    arrays = record(small_model())
    for _ in range(2):
        list(grid.send_and_receive([ask(node, arrays) for node in grid.get_node_ids()]))
    assert len(probe.rounds) == 1
    np.testing.assert_array_equal(probe.rounds[0].end["fc.bias"], small_model()["fc.bias"])


def test_named_train_actions_are_training_and_queries_are_not():
    probe = Probe()
    grid = watch(federation(), probe)
    arrays = record(small_model())
    nodes = list(grid.get_node_ids())
    list(grid.send_and_receive([Message(RecordDict({"config": ConfigRecord({"q": 1})}), n, "query") for n in nodes]))
    list(grid.send_and_receive([ask(node, arrays, "train.local") for node in nodes]))
    grid.finish(arrays)
    assert [fl_round.number for fl_round in probe.rounds] == [1]


def test_clients_that_were_sent_different_models_cannot_be_compared():
    probe = Probe()
    grid = watch(federation(), probe)
    messages = [ask(node, record(drifting(i)(small_model(), 0))) for i, node in enumerate(grid.get_node_ids())]
    assert len(list(grid.send_and_receive(messages))) == 4
    grid.finish(record(small_model()))
    assert probe.rounds == []
    assert "sent different models" in grid.unobserved[1]["everyone"]


def test_secure_aggregation_is_refused_with_the_reason_and_goes_on(caplog):
    probe = Probe()
    grid = watch(federation(), probe)
    node = next(iter(grid.get_node_ids()))
    content = RecordDict(
        {"arrays": record(small_model()), "config": ConfigRecord(), "secaggplus_configs": ConfigRecord()}
    )
    for _stage in range(4):
        assert len(list(grid.send_and_receive([Message(content, node, "train")]))) == 1
    grid.finish(record(small_model()))
    assert probe.rounds == []
    assert "secure aggregation: the server sees the sum" in grid.unobserved[1]["everyone"]
    assert caplog.text.count("secure aggregation") == 1


def test_an_observer_that_raises_does_not_stop_the_loop():
    class Broken:
        def observe(self, fl_round, /):
            raise ZeroDivisionError("a bug")

    observed_grid = watch(federation(), Broken())
    result = FedAvg().start(observed_grid, record(small_model()), num_rounds=2)
    plain = FedAvg().start(federation(), record(small_model()), num_rounds=2)
    assert result.arrays == plain.arrays
    assert observed_grid.unobserved == {1: {"broken": "a bug"}, 2: {"broken": "a bug"}}


def test_the_weight_may_have_another_name():
    grid = federation()
    for place, node in enumerate(grid.nodes.values()):
        node.metadata |= {"steps": place + 1}
    probe = Probe()
    FedAvg(fraction_evaluate=0.0, weighted_by_key="steps").start(
        observed_grid := watch(grid, probe, weighted_by="steps"), record(small_model()), num_rounds=1
    )
    observed_grid.finish()
    assert probe.rounds[0].weights == {f"partition-{i}": i + 1 for i in range(4)}


def test_a_tap_is_the_grid_for_everything_else():
    grid = federation()
    observed_grid = watch(grid, Probe())
    observed_grid.set_run("the run")
    assert observed_grid.run == "the run"
    assert list(observed_grid.get_node_ids()) == list(grid.nodes)
    assert [node.node_id for node in observed_grid.get_nodes()] == list(grid.nodes)
    assert observed_grid.create_message(RecordDict(), "query", 5, "group").metadata.dst_node_id == 5
    assert observed_grid.log is grid.log
    with pytest.raises(AttributeError):
        _ = observed_grid.nonsense


def test_only_a_model_of_the_same_layers_ends_a_round():
    probe = Probe()
    grid = watch(federation(), probe)
    arrays = record(small_model())
    nodes = list(grid.get_node_ids())
    after = mean_of(list(grid.send_and_receive([ask(node, arrays) for node in nodes])))
    list(grid.send_and_receive([ask(node, ArrayRecord([np.zeros(3)]), "evaluate") for node in nodes]))
    assert probe.rounds == []
    list(grid.send_and_receive([ask(node, after, "evaluate") for node in nodes]))
    np.testing.assert_array_equal(probe.rounds[0].end["fc.bias"], after["fc.bias"].numpy())
