"""Banzhaf values of rounds, exact and from reused samples."""

import pytest

import fixture_q
from fedcoast import BadSetting
from fedcoast.methods import Banzhaf
from federations import federation, show
from fixture_q import CLIENTS, Quadratic


def test_a_rounds_credit_is_the_mean_of_what_a_client_adds():
    first, utility = next(fixture_q.rounds()), Quadratic()
    vectors = {client: fixture_q.as_vector(model) for client, model in first.local.items()}

    def worth(*clients):
        return utility(fixture_q.as_model(sum(vectors[c] for c in clients) / len(clients)) if clients else first.start)

    a, b, c = CLIENTS
    steps = [worth(a) - worth(), worth(a, b) - worth(b), worth(a, c) - worth(c), worth(a, b, c) - worth(b, c)]
    assert show(Banzhaf(Quadratic()), [first]).scores[a] == pytest.approx(sum(steps) / 4)


def test_samples_come_near_and_all_coalitions_are_exact():
    rounds, utility = (
        federation(clients=tuple(range(6)), rounds=1, layers={"w": (6,)}),
        lambda m: -float(m["w"] @ m["w"]),
    )
    exact = show(Banzhaf(utility), rounds).scores
    assert show(Banzhaf(utility, samples=64), rounds).scores == exact
    some = Banzhaf(utility, samples=40)
    assert show(some, rounds).scores == pytest.approx(exact, abs=0.8 * max(map(abs, exact.values())))
    assert some.evaluations <= 40


def test_too_few_samples_say_so():
    rounds = federation(clients=tuple(range(12)), rounds=1, layers={"w": (2,)})
    with pytest.raises(BadSetting, match=r"round 1: of 2 coalitions drawn, all or none have client \d+; use more"):
        show(Banzhaf(lambda model: 0.0, samples=2), rounds)


def test_samples_are_counted():
    with pytest.raises(BadSetting, match="samples must be an integer of at least 2"):
        Banzhaf(Quadratic(), samples=1)
