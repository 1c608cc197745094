import numpy as np
import torch

from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federated_data import as_floats, prepare, stream, torch_stream
from fedcoast.simulation.training import learning_rate


def drawn(data, experiment, client, count, seed=0):
    return list(data.batches(experiment, client, count, torch.Generator().manual_seed(seed)))


def test_no_sample_is_drawn_twice_before_every_sample_was_drawn_once():
    experiment = Experiment(setting="even", batch=7, augment=False)
    data = prepare(experiment)
    labels = data.client_labels[0]
    steps = len(labels) // 7
    once = torch.cat([labels for _, labels in drawn(data, experiment, 0, steps)])
    assert len(once) == steps * 7
    assert (torch.bincount(once, minlength=10) <= torch.bincount(labels, minlength=10)).all()
    thrice = torch.cat([batch for _, batch in drawn(data, experiment, 0, 3 * len(labels) // 7)])
    assert len(thrice) > 2 * len(labels)


def test_epochs_and_steps_say_how_many_batches_a_client_trains_on():
    data = prepare(Experiment(setting="quantity"))
    sizes = [len(part) for part in data.client_indices]
    assert sizes == sorted(sizes, reverse=True)
    assert data.steps(Experiment(batch=10, epochs=2), 0) == round(2 * sizes[0] / 10)
    assert data.steps(Experiment(batch=10, epochs=2), 4) < data.steps(Experiment(batch=10, epochs=2), 0)
    assert data.steps(Experiment(batch=10, steps=3), 0) == data.steps(Experiment(batch=10, steps=3), 4) == 3
    assert data.steps(Experiment(batch=10_000), 0) == 1


def test_images_are_normalised_over_the_training_data():
    experiment = Experiment(setting="even", batch=100, augment=False)
    data = prepare(experiment)
    images = torch.cat([images for client in range(5) for images, _ in drawn(data, experiment, client, 3)])
    assert abs(images.mean()) < 0.02
    assert abs(images.std() - 1) < 0.02


def test_a_model_can_be_judged_on_fewer_images():
    data = prepare(Experiment(tests=50))
    assert (len(data.test_images), len(data.test_labels)) == (50, 50)
    assert len(prepare(Experiment()).test_labels) == 360


def test_pixels_are_scaled_and_channels_come_first_without_moving_memory():
    images = torch.arange(2 * 4 * 4 * 3, dtype=torch.uint8).reshape(2, 4, 4, 3)
    floats = as_floats(images)
    assert floats.shape == (2, 3, 4, 4)
    assert floats.is_contiguous(memory_format=torch.channels_last)
    np.testing.assert_allclose(floats[1, 2, 3, 0], images[1, 3, 0, 2].item() / 255, rtol=1e-6)


def test_streams_of_chance_differ_by_every_number_of_their_path():
    paths = [(0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 1)]
    assert len({stream(*path).integers(2**63) for path in paths}) == len(paths)
    same = [torch.rand(3, generator=torch_stream(4, 2)).tolist() for _ in range(2)]
    assert same[0] == same[1]


def test_the_learning_rate_falls_by_the_schedule():
    experiment = Experiment(schedule="cosine", learning_rate=1.0, rounds=11)
    rates = [learning_rate(experiment, number) for number in range(1, 12)]
    assert rates[0] == 1.0
    assert rates == sorted(rates, reverse=True)
    assert abs(rates[-1] - 0.01) < 1e-12
    assert learning_rate(Experiment(learning_rate=0.3), 7) == 0.3
