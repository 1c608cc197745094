"""What one client does in a round: micro-batches and precision change how fast, not what is learnt."""

import numpy as np
import pytest
import torch

from fedcoast.simulation import training
from fedcoast.simulation.datasets import Dataset
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federated_data import prepare
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.models import MODELS
from fedcoast.simulation.training import MICRO_BATCH, new_model, train


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 4, 60)
    return Dataset(
        name="random",
        title="random",
        train_images=rng.integers(0, 256, (60, 16, 16, 3), dtype=np.uint8),
        train_labels=labels,
        test_images=rng.integers(0, 256, (8, 16, 16, 3), dtype=np.uint8),
        test_labels=rng.integers(0, 4, 8),
        classes=tuple("abcd"),
    )


def trained(model, images, precision="float32"):
    experiment = Experiment(
        dataset="random",
        model=model,
        clients=2,
        rounds=1,
        batch=30,
        optimiser="sgd",
        setting="even",
        precision=precision,
    )
    data = prepare(experiment, images)
    network = new_model(experiment, data)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    train(network, experiment, data, client=0, number=1)
    return {name: (tensor - before[name]).double() for name, tensor in network.state_dict().items()}


@pytest.mark.parametrize("model", sorted(MICRO_BATCH))
def test_micro_batches_take_the_step_of_the_whole_batch(model, images, monkeypatch):
    monkeypatch.setitem(training.MICRO_BATCH, model, 30)
    whole = trained(model, images)
    monkeypatch.setitem(training.MICRO_BATCH, model, 7)  # does not divide the batch
    parts = trained(model, images)
    for name, step in whole.items():
        assert torch.allclose(parts[name], step, rtol=1e-3, atol=1e-7), name


def test_models_whose_batches_have_statistics_of_their_own_are_never_split():
    def normalised(name):
        layers = MODELS[name](3, 16, 4).modules()
        return any(isinstance(layer, torch.nn.modules.batchnorm._BatchNorm) for layer in layers)

    assert not any(map(normalised, MICRO_BATCH))


@pytest.mark.parametrize("model", ["tiny-resnet", "convnet"])
def test_bfloat16_takes_nearly_the_same_step_and_uploads_float32(model, images):
    exact, coarse = trained(model, images), trained(model, images, "bfloat16")
    one, other = (torch.cat([step.flatten() for step in steps.values()]) for steps in (exact, coarse))
    assert torch.nn.functional.cosine_similarity(one, other, dim=0) > 0.97
    assert any(not torch.equal(step, coarse[name]) for name, step in exact.items())


@pytest.mark.parametrize("model", ["tiny-resnet", "convnet"])
def test_the_number_of_workers_changes_not_one_bit_of_bfloat16_either(model, images):
    experiment = Experiment(
        dataset="random", model=model, clients=3, rounds=2, batch=10, setting="even", precision="bfloat16"
    )
    one, two = (list(Federation(experiment, workers, dataset=images)) for workers in (1, 2))
    for first, second in zip(one, two, strict=True):
        assert all(np.array_equal(first.end[name], second.end[name]) for name in first.end)
        assert first.end["head.weight"].dtype == np.float32
