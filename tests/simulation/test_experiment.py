import dataclasses
import itertools

import pytest

from fedcoast import BadSetting
from fedcoast.simulation.datasets import NAMES
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.models import MODELS
from fedcoast.simulation.presets import preset


def test_an_experiment_survives_json():
    experiment = Experiment(setting="mask", step="avg", steps=7, seed=3)
    assert Experiment.from_json(experiment.to_json()) == experiment


def test_every_field_changes_the_hash():
    base = Experiment()
    other = {
        "dataset": "cifar10", "model": "convnet", "setting": "mask", "clients": 6, "rounds": 21,
        "aggregation": "pruned", "weighting": "samples", "keep": 0.2, "step": "avg", "server_rate": 0.5,
        "participation": 0.5, "optimiser": "sgd", "learning_rate": 0.1, "schedule": "cosine", "epochs": 2.0,
        "steps": 5, "batch": 10, "augment": False, "tests": 9, "seed": 1, "precision": "bfloat16",
    }  # fmt: skip
    attacked = {"attack": "echo", "attacker": 1}  # which belong together
    assert {*other, *attacked} == {field.name for field in dataclasses.fields(Experiment)}
    hashes = {dataclasses.replace(base, **{name: value}).hash for name, value in other.items()}
    hashes |= {
        dataclasses.replace(base, **{**attacked, **changes}).hash
        for changes in ({}, {"attacker": 2}, {"attack": "zero"})
    }
    assert len(hashes | {base.hash}) == len(other) + 4


def test_a_field_added_later_changes_no_name_of_before():
    assert Experiment().hash == "254ec8ff0ea7"
    assert "precision" not in Experiment().to_json()
    bfloat16 = Experiment(precision="bfloat16")
    assert Experiment.from_json(bfloat16.to_json()) == bfloat16


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clients": 0}, "clients must be at least 1; got 0"),
        ({"rounds": 0}, "rounds must be at least 1; got 0"),
        ({"batch": 0}, "batch must be at least 1; got 0"),
        ({"keep": 10}, r"keep must be in \(0, 1\]; got 10"),
        ({"participation": 0}, r"participation must be in \(0, 1\]; got 0"),
        ({"learning_rate": -1}, "learning_rate must be a positive number; got -1"),
        ({"epochs": 0}, "epochs must be a positive number; got 0"),
        ({"step": 0}, "step must be a positive number or 'avg'; got 0"),
        ({"steps": 0}, "steps must be at least 1, or None; got 0"),
        ({"tests": 0}, "tests must be at least 1, or None; got 0"),
        ({"seed": -1}, "seed must be an integer of at least 0; got -1"),
        ({"aggregation": "krum"}, "aggregation must be one of fedavg, pruned, sparse, fedavgm, fedadam; got 'krum'"),
        ({"weighting": "x"}, "weighting must be one of"),
        ({"optimiser": "x"}, "optimiser must be one of"),
        ({"schedule": "x"}, "schedule must be one of"),
        ({"precision": "float16"}, "precision must be one of float32, bfloat16; got 'float16'"),
    ],
)
def test_values_that_mean_nothing_are_refused(changes, message):
    with pytest.raises(BadSetting, match=message):
        Experiment(**changes)


def test_an_unknown_field_is_named():
    with pytest.raises(BadSetting, match="an experiment has no field 'colour'"):
        Experiment.from_json({"colour": "blue"})


def test_the_paper_preset_is_what_the_research_code_had():
    plain = preset("paper", "cifar10", "tiny-resnet")
    assert (plain.rounds, plain.learning_rate, plain.epochs, plain.batch) == (100, 0.002, 10, 1024)
    pruned = preset("paper", "cifar10", "tiny-resnet", aggregation="pruned")
    assert (pruned.rounds, pruned.step, pruned.keep) == (200, 0.02, 0.10)
    assert preset("paper", "stl10", "resnet4", aggregation="pruned").step == 0.002
    assert preset("paper", "cifar100", "convnet").batch == 512
    assert preset("paper", "cifar100", "convnet").rounds == 50
    ten = preset("paper", "cifar100", "tiny-resnet", clients=10, aggregation="pruned")
    assert (ten.learning_rate, ten.epochs, ten.step) == (0.001, 5, 0.01)


def test_long_is_quick_with_more_rounds():
    quick, long = (preset(name, "cifar10", "tiny-resnet") for name in ("quick", "long"))
    assert long.rounds > 10 * quick.rounds
    assert dataclasses.replace(long, rounds=quick.rounds) == quick


@pytest.mark.parametrize("name", ["quick", "long", "paper"])
def test_who_holds_more_trains_more_for_every_dataset_and_model(name):
    for dataset, model in itertools.product(NAMES, MODELS):
        assert preset(name, dataset, model).steps is None


def test_changes_win_over_the_preset():
    assert preset("quick", "digits", "mlp", rounds=3, seed=9).rounds == 3


def test_an_unknown_preset_is_refused():
    with pytest.raises(BadSetting, match="preset must be quick, long or paper; got 'huge'"):
        preset("huge", "digits", "mlp")
