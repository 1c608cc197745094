"""What other people's tools get wrong (seen by running them) and no method here does."""

from functools import partial

import numpy as np
import pytest

from fedcoast import METHODS, Round
from fedcoast.testing import Quadratic, toy_rounds, toy_utility
from federations import federation, show

LAYERS = {"body": (6, 5), "head.weight": (3, 6), "head.bias": (3,)}


def maker(name, utility):
    method = METHODS[name]
    return partial(method.make, utility=utility) if {"utility", "gradient"} & set(method.needs) else method.make


def renamed(rounds, names):
    clients = rounds[0].clients
    called = dict(zip(clients, names, strict=True))
    return [
        Round(
            fl_round.number,
            fl_round.start,
            {called[client]: fl_round.local[client] for client in fl_round.clients},
            fl_round.end,
            weights={called[client]: fl_round.weights[client] for client in fl_round.clients},
            buffers=fl_round.buffers,
        )
        for fl_round in rounds
    ]


@pytest.mark.parametrize("name", [name for name in METHODS if "seed" not in maker(name, toy_utility())().settings])
def test_sampled_ids_are_names_and_no_places_in_a_list(name):
    # FedML: ids [2, 5, 7, 9] raise IndexError or KeyError, and results come only for ids 1 to N.
    make = maker(name, toy_utility())
    shown = toy_rounds(3)
    expected = show(make(), shown)
    answer = show(make(), renamed(shown, (2, 5, 7, 9)))
    assert list(answer.scores) == [2, 5, 7, 9]
    assert list(answer.scores.values()) == pytest.approx(list(expected.scores.values()), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", [name for name in METHODS if "full participation" not in METHODS[name].needs])
def test_a_different_cohort_every_round_works(name):
    # FedML cannot; flwr-contributions freezes the client list in round 1.
    shown = []
    for place, fl_round in enumerate(toy_rounds(8)):
        away = fl_round.clients[place % 4] if place else None  # everyone is there once, as ComFedSV wants it
        local = {client: model for client, model in fl_round.local.items() if client != away}
        weights = {client: fl_round.weights[client] for client in local}
        shown.append(
            Round(fl_round.number, fl_round.start, local, fl_round.end, weights=weights, buffers=fl_round.buffers)
        )
    answer = show(maker(name, toy_utility())(), shown)
    assert set(answer.scores) == set(shown[0].clients)
    assert all(np.isfinite(list(answer.scores.values())))


SIGNED = ["cosine", "cgsv-research-code", "shapfed", "shapley", "leave-one-out", "banzhaf", "dig-fl", "coast"]


@pytest.mark.parametrize("name", SIGNED)
def test_a_harmful_client_scores_below_zero(name):
    # svfl clamps every marginal at 0; CGSV's official reputation is clamped at 1e-3 (its credits here are not).
    rng = np.random.default_rng(0)
    best = {n: rng.normal(size=shape) for n, shape in LAYERS.items()}
    theta = {n: np.zeros(shape) for n, shape in LAYERS.items()}
    shown = []
    for number in range(1, 6):
        way = {n: 0.2 * (best[n] - theta[n]) for n in LAYERS}
        local = {c: {n: theta[n] + way[n] + 0.01 * rng.normal(size=LAYERS[n]) for n in LAYERS} for c in "abc"}
        local["harms"] = {n: theta[n] - 0.5 * way[n] for n in LAYERS}
        end = {n: np.mean([model[n] for model in local.values()], axis=0) for n in LAYERS}
        shown.append(Round(number, theta, local, end))
        theta = end
    answer = show(maker(name, Quadratic(best))(), shown)
    assert answer.scores["harms"] < 0 < min(answer.scores[c] for c in "abc")


def test_arrival_order_never_mixes_clients_up():
    # A Flower app seen in the wild names clients by the place of their reply, and replies come in any order.
    shown = federation(rounds=4)
    shuffled = [
        Round(r.number, r.start, {c: r.local[c] for c in sorted(r.local, key=lambda c: (hash(c), r.number))}, r.end)
        for r in shown
    ]
    for name in ("cgsv", "cosine", "fed-pca", "shapfed"):
        assert show(METHODS[name].make(), shuffled) == show(METHODS[name].make(), shown)
