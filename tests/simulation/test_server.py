import numpy as np
import pytest

from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.server import Server

START = {"w": np.zeros(3, np.float32), "bn": np.zeros(2, np.float32), "count": np.array(3)}


def uploads(*values):
    return {
        client: {"w": np.full(3, v, np.float32), "bn": np.full(2, 10 * v, np.float32), "count": np.array(3 + client)}
        for client, v in enumerate(values)
    }


def aggregate(server, *values, start=START):
    local = uploads(*values)
    return server.aggregate(start, local, dict.fromkeys(local, 1.0))


@pytest.mark.parametrize("rule", ["fedavg", "pruned", "sparse", "fedavgm", "fedadam"])
def test_buffers_are_averaged_and_counters_take_the_maximum(rule):
    end = aggregate(Server(Experiment(aggregation=rule), frozenset({"bn", "count"})), 1.0, 3.0)
    np.testing.assert_array_equal(end["bn"], [20, 20])
    assert end["count"] == 4
    assert {name: array.dtype for name, array in end.items()} == {n: a.dtype for n, a in START.items()}


def test_momentum_adds_up():
    server = Server(Experiment(aggregation="fedavgm", server_rate=0.5), frozenset({"bn", "count"}))
    first = aggregate(server, 2.0, 4.0)
    np.testing.assert_allclose(first["w"], 1.5)
    second = aggregate(server, 2.0, 4.0)  # from the same start: 0.9 · 3 + 3 = 5.7
    np.testing.assert_allclose(second["w"], 0.5 * 5.7, rtol=1e-6)


def test_adam_follows_its_formula():
    server = Server(Experiment(aggregation="fedadam", server_rate=0.1), frozenset({"bn", "count"}))
    first, second = 0.0, 0.0
    for _ in range(3):
        first, second = 0.9 * first + 0.1 * 3, 0.99 * second + 0.01 * 9
        end = aggregate(server, 2.0, 4.0)
        np.testing.assert_allclose(end["w"], 0.1 * first / (second**0.5 + 1e-3), rtol=1e-5)


def test_a_restored_server_goes_on_as_the_first_would_have():
    experiment = Experiment(aggregation="fedadam", server_rate=0.1)
    one, two = (Server(experiment, frozenset({"bn", "count"})) for _ in range(2))
    aggregate(one, 2.0, 4.0)
    two.restore(one.state())
    np.testing.assert_array_equal(aggregate(one, 1.0, -5.0)["w"], aggregate(two, 1.0, -5.0)["w"])
