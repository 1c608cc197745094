"""Retraining: 2^N small federations, kept as they are made, and the Shapley value of their last models."""

import json
from dataclasses import replace

import numpy as np
import pytest

from fedcoast import BadFile, BadSetting
from fedcoast.simulation.datasets import load
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.retraining import retrained_utilities, retraining_shapley
from fedcoast.simulation.utility import utility_for
from federations import bits

SMALL = Experiment(setting="noise", clients=2, rounds=2, steps=6, batch=16, augment=False, learning_rate=0.01)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    file = tmp_path_factory.mktemp("retraining") / "worths.json"
    retrained_utilities(SMALL, file)
    return file


def test_the_worth_of_everybody_is_that_of_the_federation_and_of_nobody_that_of_the_first_model(folder):
    utilities = retrained_utilities(SMALL, folder)
    rounds = list(Federation(SMALL))
    utility = utility_for({"experiment": SMALL.to_json()})
    assert utilities[0b11] == utility(rounds[-1].end)
    assert utilities[0b00] == utility(rounds[0].start)
    assert len(set(utilities.tolist())) == 4


def test_values_add_up_to_what_training_gained(folder):
    utilities, values = retrained_utilities(SMALL, folder), retraining_shapley(SMALL, folder)
    assert set(values) == {0, 1}
    assert sum(values.values()) == pytest.approx(utilities[-1] - utilities[0])
    from_zero = retraining_shapley(SMALL, folder, empty="zero")
    assert from_zero[0] - values[0] == pytest.approx(from_zero[1] - values[1]) == pytest.approx(utilities[0] / 2)


def test_what_was_kept_is_not_trained_again(folder, tmp_path, monkeypatch):
    data = json.loads(folder.read_text())
    data["worths"] = data["worths"][:3]
    (tmp_path / "part.json").write_text(json.dumps(data))
    trained, expected = [], []

    class Watched(Federation):
        def __init__(self, *given, **options):
            trained.append(options.get("only"))
            super().__init__(*given, **options)

    monkeypatch.setattr("fedcoast.simulation.retraining.Federation", Watched)
    again = retrained_utilities(
        SMALL, tmp_path / "part.json", progress=lambda done, wanted: expected.append((done, wanted))
    )
    assert trained == [frozenset({0, 1})]
    assert expected == [(1, 4), (2, 4), (3, 4), (4, 4)]
    np.testing.assert_array_equal(again, retrained_utilities(SMALL, folder))
    assert json.loads((tmp_path / "part.json").read_text()) == json.loads(folder.read_text())


def test_a_file_of_another_experiment_utility_or_dataset_is_refused(folder, tmp_path):
    with pytest.raises(BadFile, match="belongs to another experiment"):
        retrained_utilities(replace(SMALL, seed=1), folder)
    with pytest.raises(BadFile, match="belongs to another utility: loss on 360 test images"):
        retrained_utilities(SMALL, folder, measure="accuracy")
    with pytest.raises(BadFile, match=r"belongs to another dataset: Digits \(scikit-learn\)"):
        retrained_utilities(SMALL, folder, dataset=replace(load("digits"), title="my own"))
    (tmp_path / "else.json").write_text("{}")
    with pytest.raises(BadFile, match="is not a retraining file"):
        retrained_utilities(SMALL, tmp_path / "else.json")
    torn = {**json.loads(folder.read_text()), "worths": [{"clients": 3}]}
    (tmp_path / "torn.json").write_text(json.dumps(torn))
    with pytest.raises(BadFile, match="it has been altered"):
        retrained_utilities(SMALL, tmp_path / "torn.json")


def test_many_clients_are_refused_unless_forced():
    with pytest.raises(BadSetting, match=r"11 clients need 2\^11 = 2,048 trainings"):
        retrained_utilities(replace(SMALL, clients=11))


def test_nobody_is_worth_the_first_model_or_zero():
    with pytest.raises(BadSetting, match="empty must be 'init'"):
        retraining_shapley(SMALL, empty="none")


def test_only_some_clients_train_and_those_as_they_would_have_in_the_first_round():
    everybody, some = next(iter(Federation(SMALL))), next(iter(Federation(SMALL, only=frozenset({1}))))
    assert some.clients == (1,)
    assert bits(some.local[1]) == bits(everybody.local[1])
    assert bits(some.end) == bits(some.local[1])
    drawn = [
        fl_round.clients
        for fl_round in Federation(replace(SMALL, clients=5, participation=0.5, rounds=3), only=frozenset({0, 2, 4}))
    ]
    assert all(len(clients) == 2 and set(clients) <= {0, 2, 4} for clients in drawn)


@pytest.mark.parametrize("only", [frozenset(), frozenset({2}), frozenset({-1, 0})])
def test_only_names_clients_that_there_are(only):
    with pytest.raises(BadSetting, match="only must name some of the clients 0 to 1; got"):
        Federation(SMALL, only=only)
