import hashlib
import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from fedcoast import BadSetting, CoAst
from fedcoast.simulation.datasets import Dataset
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federated_data import prepare
from fedcoast.simulation.federation import Federation, federate

SMALL = {"rounds": 3, "steps": 3, "batch": 8, "augment": False}


def fingerprint(model):
    digest = hashlib.sha256()
    for name, array in model.items():
        digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()


def fingerprints(rounds):
    return [
        (
            fl_round.number,
            fingerprint(fl_round.end),
            {c: fingerprint(m) for c, m in fl_round.local.items()},
            dict(fl_round.metrics),
        )
        for fl_round in rounds
    ]


def test_the_same_experiment_gives_the_same_bits():
    experiment = Experiment(**SMALL)
    assert fingerprints(federate(experiment)) == fingerprints(federate(experiment))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["mlp", "convnet", "resnet18"])
def test_the_number_of_workers_changes_not_one_bit(model):
    experiment = Experiment(model=model, aggregation="pruned", **{**SMALL, "rounds": 2, "steps": 2})
    assert fingerprints(federate(experiment, workers=1)) == fingerprints(federate(experiment, workers=2))


def test_another_seed_gives_other_rounds():
    first, second = (fingerprints(federate(Experiment(seed=seed, **SMALL))) for seed in (0, 1))
    assert first != second


def test_rounds_connect_and_keep_their_arrays_when_training_goes_on():
    shown = list(federate(Experiment(**SMALL)))
    assert [fl_round.number for fl_round in shown] == [1, 2, 3]
    for before, after in itertools.pairwise(shown):
        assert fingerprint(before.end) == fingerprint(after.start)
    assert len({fingerprint(fl_round.local[0]) for fl_round in shown}) == 3


def test_plain_averaging_is_the_mean_of_the_uploads():
    for fl_round in federate(Experiment(**SMALL)):
        for name, array in fl_round.end.items():
            expected = np.mean([model[name].astype(np.float64) for model in fl_round.local.values()], axis=0)
            np.testing.assert_allclose(array, expected, atol=1e-7)


def test_averaging_by_samples_weighs_by_what_each_client_holds():
    federation = Federation(Experiment(setting="quantity", weighting="samples", **SMALL))
    sizes = {client: len(part) for client, part in enumerate(federation.data.client_indices)}
    assert len(set(sizes.values())) == 5
    (first, *_) = federation
    assert dict(first.weights) == sizes
    name = "head.weight"
    total = sum(sizes[client] * model[name].astype(np.float64) for client, model in first.local.items())
    np.testing.assert_allclose(first.end[name], total / sum(sizes.values()), atol=1e-7)


def test_pruned_aggregation_moves_each_parameter_by_whole_votes():
    for fl_round in federate(Experiment(aggregation="pruned", step=0.05, **SMALL)):
        for name, start in fl_round.start.items():
            moved = (fl_round.end[name] - start).astype(np.float64) / (0.05 / 5)
            np.testing.assert_allclose(moved, np.round(moved), atol=1e-4)
            assert np.abs(moved).max() <= 5.001


def test_sparse_aggregation_is_uniform_and_moves_no_more_than_the_kept_share_of_each_client():
    for fl_round in federate(Experiment(aggregation="sparse", weighting="samples", setting="quantity", **SMALL)):
        assert set(fl_round.weights.values()) == {1.0}
        for name, start in fl_round.start.items():
            moved = np.count_nonzero(fl_round.end[name] != start)
            assert 0 < moved <= 5 * max(1, int(start.size * 0.1))


def test_a_share_of_the_clients_takes_part_and_everyone_does_in_the_long_run():
    shown = list(federate(Experiment(participation=0.4, **{**SMALL, "rounds": 12, "steps": 1})))
    assert {len(fl_round.clients) for fl_round in shown} == {2}
    assert set().union(*(fl_round.clients for fl_round in shown)) == set(range(5))
    assert len({fl_round.clients for fl_round in shown}) > 3


def test_training_improves_the_model_and_votes_find_the_true_order():
    federation = Federation(Experiment(rounds=25, batch=16, learning_rate=0.005, augment=False))
    votes, default = CoAst.votes(), CoAst()
    accuracies = []
    for fl_round in federation:
        votes.observe(fl_round)
        default.observe(fl_round)
        accuracies.append(fl_round.metrics["test accuracy"])
    assert accuracies[-1] > 0.93 > accuracies[0]
    assert votes.assessment().spearman(federation.ground_truth) > 0.85
    assert default.assessment().ranking[-2:] == votes.assessment().ranking[-2:]


def test_settings_without_an_order_plant_no_truth():
    assert Federation(Experiment(setting="label-skew", **SMALL)).ground_truth is None
    assert Federation(Experiment(setting="mask", **SMALL)).ground_truth == {0: 5.0, 1: 4.0, 2: 3.0, 3: 2.0, 4: 1.0}


def test_the_threads_of_the_caller_are_left_as_they_were():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        next(iter(federate(Experiment(**SMALL))))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_batch_norm_statistics_are_buffers_and_belong_to_the_pruned_weights():
    experiment = Experiment(model="resnet18", aggregation="pruned", clients=2, **{**SMALL, "rounds": 1})
    (fl_round,) = federate(experiment)
    buffers = {entry.name for entry in fl_round.schema().entries if not entry.trainable}
    assert "stem.norm.running_mean" in buffers
    averaged = np.mean([model["stem.norm.running_mean"] for model in fl_round.local.values()], axis=0)
    assert not np.allclose(fl_round.end["stem.norm.running_mean"], averaged)


def test_data_of_ones_own_take_the_place_of_the_named_ones():
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (60, 9, 9, 2), dtype=np.uint8), rng.integers(0, 3, 60)
    own = Dataset("own", "my own", images, labels, images, labels, classes=("a", "b", "c"))
    federation = Federation(Experiment(dataset="own", setting="even", clients=3, **SMALL), dataset=own)
    assert federation.data.title == "my own"
    assert [fl_round.local[2]["hidden.weight"].shape for fl_round in federation] == [(32, 9 * 9 * 2)] * 3


def test_no_workers_at_all_is_refused():
    with pytest.raises(BadSetting, match="workers must be at least 1; got 0"):
        Federation(Experiment(**SMALL), workers=0)


@pytest.mark.slow
def test_a_worker_that_dies_ends_in_a_clear_error():
    import os
    import signal
    import threading

    import multiprocess_children
    from fedcoast import FedcoastError

    rounds = iter(federate(Experiment(rounds=500, steps=20, batch=32, augment=False), workers=2))
    next(rounds)
    victim = multiprocess_children.of(os.getpid())[0]
    threading.Timer(0.5, os.kill, (victim, signal.SIGKILL)).start()
    with pytest.raises(FedcoastError, match="a worker process died"):
        for _ in rounds:
            pass


@pytest.mark.slow
def test_memory_stays_flat_over_the_rounds():
    def resident():
        (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024

    rounds = iter(federate(Experiment(model="convnet", rounds=60, steps=1, batch=4, augment=False)))
    size = sum(array.nbytes for array in next(rounds).end.values())
    for _ in range(14):
        next(rounds)
    before = resident()
    for _ in rounds:
        pass
    assert resident() - before < 5 * size  # 45 more rounds of five uploads each would be 225 models


def test_workers_share_the_data_and_hold_no_copy():
    data = prepare(Experiment()).share()
    assert all(
        tensor.is_shared()
        for tensor in (
            data.images,
            data.test_images,
            *data.client_indices,
            *data.client_labels,
        )
    )
