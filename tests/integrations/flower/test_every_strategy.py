"""Every strategy that Flower ships, wrapped and not: training is the same to the last bit, and the scores are right."""

import random

import flwr.serverapp.strategy as flower
import numpy as np
import pytest
from flwr.serverapp.strategy import FedAvg

from fedcoast import BadSetting, CoAst, Round
from fedcoast.integrations.flower import Observed, TernaryFedAvg, watch
from integrations.flower.handmade import federation, model_in, record, small_model

DP = {"noise_multiplier": 0.1, "num_sampled_clients": 4}
STRATEGIES = {
    "Bulyan": flower.Bulyan,
    "DifferentialPrivacyClientSideAdaptiveClipping": lambda: flower.DifferentialPrivacyClientSideAdaptiveClipping(
        FedAvg(), **DP
    ),
    "DifferentialPrivacyClientSideFixedClipping": lambda: flower.DifferentialPrivacyClientSideFixedClipping(
        FedAvg(), clipping_norm=0.5, **DP
    ),
    "DifferentialPrivacyServerSideAdaptiveClipping": lambda: flower.DifferentialPrivacyServerSideAdaptiveClipping(
        FedAvg(), **DP
    ),
    "DifferentialPrivacyServerSideFixedClipping": lambda: flower.DifferentialPrivacyServerSideFixedClipping(
        FedAvg(), clipping_norm=0.5, **DP
    ),
    "FedAdagrad": flower.FedAdagrad,
    "FedAdam": flower.FedAdam,
    "FedAvg": FedAvg,
    "FedAvgM": lambda: flower.FedAvgM(server_learning_rate=0.7, server_momentum=0.9),
    "FedMedian": flower.FedMedian,
    "FedProx": lambda: flower.FedProx(proximal_mu=0.1),
    "FedTrimmedAvg": lambda: flower.FedTrimmedAvg(beta=0.25),
    "FedXgbBagging": flower.FedXgbBagging,
    "FedXgbCyclic": flower.FedXgbCyclic,
    "FedYogi": flower.FedYogi,
    "Krum": lambda: flower.Krum(num_malicious_nodes=1),
    "MultiKrum": lambda: flower.MultiKrum(num_malicious_nodes=1, num_nodes_to_select=2),
    "QFedAvg": lambda: flower.QFedAvg(client_learning_rate=0.1),
    "TernaryFedAvg": TernaryFedAvg,
}
TREES = ("FedXgbBagging", "FedXgbCyclic")
ROUNDS = 5


def grid_for(name):
    grid = federation()
    for place, node in enumerate(grid.nodes.values()):
        node.metadata |= {"train_loss": 0.5 + place, "norm_bit": place % 2}
    return grid


def start_for(name):
    return small_model()


def train(name, strategy, grid):
    """The global model before the first and after every round, and the result."""
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 (Flower draws its noise from the global generator)
    models = {}
    result = strategy.start(
        grid, record(start_for(name)), num_rounds=ROUNDS, evaluate_fn=lambda n, arrays: models.update({n: dict(arrays)})
    )
    return models, result


def sent(grid):
    """What the clients were sent, in full, and in which order."""
    return [
        (m.metadata.dst_node_id, m.metadata.message_type, {key: dict(value) for key, value in m.content.items()})
        for m in grid.log
    ]


def clients_of(grid):
    return {node: f"partition-{one.metadata['partition-id']}" for node, one in grid.nodes.items()}


def scores_by_hand(grid, models):
    """The same scores from the facts alone: what each client did to the model it got, in the precision it trains in."""
    coast = CoAst(keep=0.3, horizon=2)
    names = clients_of(grid)
    for number in range(1, ROUNDS + 1):
        before, after = ({k: a.numpy().astype(np.float32) for k, a in models[n].items()} for n in (number - 1, number))
        local = {names[node]: one.train(model_in(models[number - 1]), number) for node, one in grid.nodes.items()}
        coast.observe(Round(number, start=before, local=local, end=after))
    return coast.assessment()


def test_the_list_is_whole():
    assert set(STRATEGIES) - {"TernaryFedAvg"} == set(flower.__all__) - {"Strategy", "Result"}


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name not in TREES])
def test_training_is_the_same_to_the_last_bit(name):
    alone, plain = train(name, STRATEGIES[name](), plain_grid := grid_for(name))
    watched, result = train(name, Observed(STRATEGIES[name](), CoAst()), grid := grid_for(name))
    assert alone.keys() == watched.keys()
    for number, arrays in alone.items():
        assert list(arrays) == list(watched[number])
        assert all(arrays[layer] == watched[number][layer] for layer in arrays)  # dtype, shape and every byte
    assert sent(plain_grid) == sent(grid)
    for number, metrics in plain.train_metrics_clientapp.items():
        server_metrics = result.train_metrics_clientapp[number]
        assert {key: server_metrics[key] for key in metrics} == dict(metrics)
    assert plain.evaluate_metrics_clientapp == result.evaluate_metrics_clientapp


@pytest.mark.parametrize("name", [name for name in STRATEGIES if name not in TREES])
@pytest.mark.parametrize("how", ["wrapper", "tap"])
def test_the_scores_are_those_of_the_facts(name, how):
    coast, grid = CoAst(keep=0.3, horizon=2), grid_for(name)
    if how == "wrapper":
        models, _ = train(name, strategy := Observed(STRATEGIES[name](), coast), grid)
        unobserved = strategy.unobserved
    else:
        models, _ = train(name, STRATEGIES[name](), observed_grid := watch(grid, coast))
        unobserved = observed_grid.unobserved
    assert unobserved == {}
    answer = coast.assessment()
    assert answer.scores == scores_by_hand(grid, models).scores
    assert answer.rounds_scored == dict.fromkeys(answer.clients, ROUNDS - 2)
    assert not answer.quarantined


@pytest.mark.parametrize("name", TREES)
def test_tree_ensembles_are_refused_by_name(name):
    with pytest.raises(BadSetting, match=f"{name} trains tree ensembles"):
        Observed(STRATEGIES[name](), CoAst())


def test_the_worst_client_ranks_last_under_the_plain_average():
    coast = CoAst(keep=0.3, horizon=1)
    train("FedAvg", Observed(FedAvg(), coast), federation())
    assert coast.assessment().ranking[-1] == "partition-3"
    assert coast.assessment().scores["partition-3"] < 0


def test_an_idle_client_scores_zero_even_when_the_server_returns_float64():
    """FedAdam's global model is float64 and clients train in float32: the rounding between is nobody's contribution."""
    grid = federation()
    grid.nodes[9892395317463862946].train = lambda model, n: {k: a.astype(np.float32) for k, a in model.items()}
    coast = CoAst(keep=0.3, horizon=1)
    models, _ = train("FedAdam", Observed(flower.FedAdam(), coast), grid)
    assert models[2]["fc.bias"].dtype == "float64"
    assert coast.assessment().scores["partition-1"] == 0


def test_a_wrapped_wrapper_keeps_what_belongs_to_the_strategy():
    strategy = Observed(flower.FedAdam(eta=0.5), CoAst())
    assert strategy.eta == 0.5
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = strategy.nonsense
