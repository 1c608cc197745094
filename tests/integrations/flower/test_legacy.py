"""Strategies of the old API through their wrapper."""

import numpy as np
import pytest
from flwr.common import Code, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server import SimpleClientManager
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import FedAdam, FedAvg, FedMedian

from fedcoast import BadSetting, CoAst
from fedcoast.integrations.flower import Identity
from fedcoast.integrations.flower.legacy import ObservedLegacy
from integrations.flower.handmade import drifting, small_model


class Proxy(ClientProxy):
    def __init__(self, cid, node_id=None):
        super().__init__(cid)
        if node_id is not None:
            self.node_id = node_id

    def get_properties(self, ins, timeout, group_id): ...
    def get_parameters(self, ins, timeout, group_id): ...
    def fit(self, ins, timeout, group_id): ...
    def evaluate(self, ins, timeout, group_id): ...
    def reconnect(self, ins, timeout, group_id): ...


class Probe:
    def __init__(self):
        self.rounds = []

    def observe(self, fl_round, /):
        self.rounds.append(fl_round)


def fitted(model, examples=10, **metrics):
    parameters = ndarrays_to_parameters(list(model.values()))
    return FitRes(Status(Code.OK, ""), parameters, examples, metrics)


def federate(strategy, rounds=4, proxies=None, **metrics):
    proxies = proxies or [Proxy(str(i), i) for i in (1, 2, 3)]
    manager, model, merged_metrics, ends = SimpleClientManager(), small_model(), None, []
    for number in range(1, rounds + 1):
        parameters = ndarrays_to_parameters(list(model.values()))
        strategy.configure_fit(number, parameters, manager)
        results = [
            (proxy, fitted(drifting(i, -1.0 if i == 2 else 1.0)(model, number), 10 + i, **metrics))
            for i, proxy in enumerate(proxies)
        ]
        parameters, merged_metrics = strategy.aggregate_fit(number, results, [])
        model = dict(zip(small_model(), parameters_to_ndarrays(parameters), strict=True))
        ends.append(parameters)
    return merged_metrics, ends


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    """`configure_fit` samples from the manager, which is empty: the clients are the test's."""
    monkeypatch.setattr(SimpleClientManager, "sample", lambda self, **_: [])
    monkeypatch.setattr(SimpleClientManager, "num_available", lambda self: 3)


def options():
    return {"initial_parameters": ndarrays_to_parameters(list(small_model().values()))}


@pytest.mark.parametrize("make", [FedAvg, FedMedian, lambda: FedAdam(**options())])
def test_training_is_the_same_and_the_clients_are_scored(make):
    coast = CoAst(keep=0.3, horizon=1)
    merged_metrics, ends = federate(ObservedLegacy(make(), coast, names=list(small_model())))
    _, plain = federate(make())
    assert [end.tensors for end in ends] == [end.tensors for end in plain]
    answer = coast.assessment()
    assert answer.clients == ("node-1", "node-2", "node-3")
    assert answer.ranking[-1] == "node-3"
    assert merged_metrics["fedcoast/coast/score/node-3"] == answer.scores["node-3"]
    assert merged_metrics["fedcoast/observed"] == 1


def test_the_round_holds_the_facts():
    probe = Probe()
    federate(ObservedLegacy(FedAvg(), probe), rounds=1)
    assert probe.rounds[0].weights == {"node-1": 10, "node-2": 11, "node-3": 12}
    np.testing.assert_array_equal(probe.rounds[0].start["0"], small_model()["conv.weight"])


def test_clients_may_name_themselves_in_their_metrics():
    coast = CoAst(horizon=1)
    strategy = ObservedLegacy(FedAvg(), coast, identity=Identity(claim="site"))
    federate(strategy, proxies=[Proxy("1", 1)], site="berlin")
    assert coast.assessment().clients == ("berlin",)


def test_a_proxy_without_a_node_id_is_known_by_its_text():
    coast = CoAst(horizon=1)
    federate(ObservedLegacy(FedAvg(), coast), proxies=[Proxy("ipv4:a"), Proxy("ipv4:b")])
    assert len(coast.assessment().clients) == 2


def test_secure_aggregation_is_refused_with_the_reason_and_goes_on(caplog):
    probe = Probe()
    strategy = ObservedLegacy(FedAvg(), probe)
    parameters = ndarrays_to_parameters(list(small_model().values()))
    strategy.configure_fit(1, parameters, SimpleClientManager())
    results = [(Proxy(str(i), i), fitted(small_model())) for i in (1, 2)]
    for _, result in results:
        result.parameters = parameters  # what SecAgg+ hands to a strategy: the sum, for everyone
    merged, merged_metrics = strategy.aggregate_fit(1, results, [])
    assert merged is not None
    assert merged_metrics["fedcoast/observed"] == 0
    assert probe.rounds == []
    assert "sees the sum of the updates and never one of them" in caplog.text


def test_wrong_names_are_said():
    strategy = ObservedLegacy(FedAvg(), CoAst(), names=["only one"])
    merged_metrics, _ = federate(strategy, rounds=1)
    assert merged_metrics["fedcoast/observed"] == 0
    assert "names holds 1 layers and the model 2" in strategy._hub.unobserved[1]["everyone"]


def test_a_layer_that_is_named_twice_is_said():
    strategy = ObservedLegacy(FedAvg(), CoAst(), names=["w", "w"])
    federate(strategy, rounds=1)
    assert "names holds 1 layers and the model 2" in strategy._hub.unobserved[1]["everyone"]


@pytest.mark.parametrize("names", [None, list(small_model())])
@pytest.mark.parametrize("change", [lambda tensors: tensors[:1], lambda tensors: tensors + tensors[:1]])
def test_a_reply_with_another_number_of_layers_costs_its_client_alone(names, change):
    class Careful(FedAvg):
        def aggregate_fit(self, server_round, results, failures):
            usable = [(proxy, fit) for proxy, fit in results if len(fit.parameters.tensors) == 2]
            return super().aggregate_fit(server_round, usable, failures)

    coast = CoAst(horizon=1)
    strategy = ObservedLegacy(Careful(), coast, names=names)
    strategy.configure_fit(1, options()["initial_parameters"], SimpleClientManager())
    results = [(Proxy(str(i), i), fitted(drifting(i)(small_model(), 1))) for i in (1, 2, 3)]
    results[2][1].parameters.tensors = change(results[2][1].parameters.tensors)
    _, merged_metrics = strategy.aggregate_fit(1, results, [])
    assert merged_metrics["fedcoast/observed"] == 1
    assert list(coast.assessment().quarantined[1]) == ["node-3"]
    assert "layers; 2 are wanted" in coast.assessment().quarantined[1]["node-3"]


def test_the_rest_is_handed_through():
    strategy = ObservedLegacy(FedAvg(**options()), CoAst())
    assert strategy.initialize_parameters(None).tensors == options()["initial_parameters"].tensors
    assert strategy.evaluate(1, options()["initial_parameters"]) is None
    assert strategy.fraction_fit == 1.0


def test_the_new_api_is_sent_to_observed():
    from flwr.serverapp.strategy import FedAvg as NewFedAvg

    with pytest.raises(BadSetting, match="for the new API use Observed"):
        ObservedLegacy(NewFedAvg(), CoAst())
