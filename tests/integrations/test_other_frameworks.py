"""The guides for fluke and APPFL: `observe` on stand-ins, and the whole federation where the package is installed.

Run with fluke-fl 0.8.1 and appfl 1.12.0 on Python 3.11; neither is a dependency of the tests.
"""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fedcoast import CoAst

DOCS = Path(__file__).parents[2] / "docs"
STEPS = {0: 1.0, 1: 0.8, 2: -1.0}


def blocks(guide):
    return re.findall(r"```python\n(.*?)```", (DOCS / guide).read_text("utf-8"), flags=re.DOTALL)


def observe_of(guide):
    names = {}
    exec(compile(blocks(guide)[0], guide, "exec"), names)
    return names["observe"]


def uploads_of(number, weight):
    rng = np.random.default_rng(number)
    noise = {client: rng.standard_normal(600, np.float32) for client in STEPS}
    return {client: weight + np.float32(0.1) * (step + noise[client]) for client, step in STEPS.items()}


def fluke_federation(observers):
    """A server with the attributes and the aggregation of fluke's, whose client models are a generator."""
    torch = pytest.importorskip("torch")
    server = SimpleNamespace(model=torch.nn.Linear(600, 1, bias=False))
    torch.nn.init.zeros_(server.model.weight)

    def aggregate(eligible, client_models):
        models = [model.weight.detach() for model in client_models]
        with torch.no_grad():
            server.model.weight.copy_(sum(models) / len(models))

    def client_models(number):
        for upload in uploads_of(number, server.model.weight.detach().numpy()[0]).values():
            model = torch.nn.Linear(600, 1, bias=False)
            model.weight.data = torch.from_numpy(upload[None])
            yield model

    server.aggregate = aggregate
    hub = observe_of("fluke.md")(server, observers) if observers else None
    clients = [SimpleNamespace(index=index, n_examples=10) for index in STEPS]
    for number in range(8):
        server.aggregate(clients, client_models(number))
    return hub, server.model.weight.detach().numpy()


class AppflAggregator:
    """Keeps the parts of APPFL's FedAvgAggregator that the guide uses."""

    def __init__(self):
        self.state, self.client_sample_size = {"weight": np.zeros(600, np.float32)}, {f"site-{i}": 10 for i in STEPS}

    def get_parameters(self):
        return {name: value.copy() for name, value in self.state.items()}

    def aggregate(self, local_models, **kwargs):
        self.state = {"weight": np.mean([model["weight"] for model in local_models.values()], axis=0)}
        return self.get_parameters()


def appfl_federation(observers):
    aggregator = AppflAggregator()
    hub = observe_of("appfl.md")(aggregator, observers) if observers else None
    for number in range(8):
        weight = aggregator.get_parameters()["weight"]
        local = {f"site-{client}": {"weight": upload} for client, upload in uploads_of(number, weight).items()}
        aggregator.aggregate(local)
    return hub, aggregator.state["weight"]


@pytest.mark.parametrize(("federation", "last"), [(fluke_federation, "client-2"), (appfl_federation, "site-2")])
def test_the_guides_function_observes_every_round_and_leaves_training_alone(federation, last):
    coast = CoAst(horizon=1)
    hub, observed = federation([coast])
    _, plain = federation([])
    np.testing.assert_array_equal(observed, plain)
    answer = coast.assessment()
    assert hub.unobserved == {}
    assert set(answer.rounds_scored.values()) == {7}
    assert not answer.quarantined
    assert answer.ranking[-1] == last
    assert answer.scores[last] < 0


@pytest.mark.filterwarnings("ignore")  # of the frameworks themselves
@pytest.mark.parametrize(
    ("guide", "package", "last"), [("fluke.md", "fluke", "client-3"), ("appfl.md", "appfl", "site-3")]
)
def test_the_whole_federation_of_the_guide_runs(guide, package, last, tmp_path, monkeypatch, capsys):
    pytest.importorskip(package, reason=f"{package} is not installed; docs/{guide} names the version it was run with")
    observe, _, *whole = blocks(guide)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    if guide == "appfl.md":
        (tmp_path / "net.py").write_text(whole.pop(0))
    names = {}
    exec(compile("\n".join([observe, *whole]), guide, "exec"), names)
    answer = names["coast"].assessment()
    assert answer.ranking[-1] == last
    assert set(answer.rounds_scored.values()) == {12 - len(answer.pending)}
    assert last in capsys.readouterr().out
