"""Attacks in the lab: each does what it says, and the run stays an ordinary one."""

from dataclasses import replace

import numpy as np
import pytest

from fedcoast.errors import BadSetting
from fedcoast.simulation.attacks import ATTACKS
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federated_data import prepare
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.simulation import about, simulate
from fedcoast.storage import read_about, replay

HONEST = Experiment(model="deep-mlp", setting="noise", clients=5, rounds=4, steps=3, batch=8, augment=False)


def rounds_of(attack, **changes):
    return list(Federation(replace(HONEST, attack=attack, attacker=2, **changes)))


def update(fl_round, client):
    return np.concatenate([(fl_round.local[client][name] - fl_round.start[name]).ravel() for name in fl_round.start])


def step(fl_round):
    return np.concatenate([(fl_round.end[name] - fl_round.start[name]).ravel() for name in fl_round.start])


@pytest.fixture(scope="module")
def honest():
    return list(Federation(HONEST))


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_changes_the_federation_and_leaves_the_others_first_uploads_alone(name, honest):
    attacked = rounds_of(name)
    attackers = ATTACKS[name].attackers(2, 5)
    for client in set(range(5)) - set(attackers):
        assert np.array_equal(update(attacked[0], client), update(honest[0], client))
    assert not np.array_equal(step(attacked[-1]), step(honest[-1]))
    assert all(np.isfinite(step(fl_round)).all() for fl_round in attacked)


def test_free_riders_upload_what_they_remember():
    assert not update(rounds_of("zero")[1], 2).any()
    first, second, third, _ = rounds_of("echo")
    assert not update(first, 2).any()
    assert np.allclose(update(third, 2), step(second), atol=1e-6)
    rounds = rounds_of("extrapolation")
    assert np.allclose(update(rounds[2], 2), 2 * step(rounds[1]) - step(rounds[0]), atol=1e-6)
    rounds = rounds_of("reverse")
    assert np.allclose(update(rounds[2], 2), -step(rounds[1]), atol=1e-6)
    rounds = rounds_of("mean-of-steps")
    assert np.allclose(update(rounds[3], 2), np.mean([step(one) for one in rounds[:3]], axis=0), atol=1e-6)


def test_noise_is_as_long_as_it_says():
    rounds = rounds_of("matched-noise")
    assert np.linalg.norm(update(rounds[2], 2)) == pytest.approx(np.linalg.norm(step(rounds[1])), rel=1e-3)
    assert update(rounds_of("noise")[0], 2).std() == pytest.approx(0.05, rel=0.05)


def test_copies_are_those_of_the_best_other_client():
    fl_round = rounds_of("copy")[1]
    assert all(np.array_equal(fl_round.local[2][name], fl_round.local[0][name]) for name in fl_round.start)
    before, after = rounds_of("copy-late")[1:3]
    assert all(np.array_equal(after.local[2][name], before.local[0][name]) for name in after.start)


@pytest.mark.parametrize(
    ("name", "factor"), [("sign-flip", -1), ("scale-0.1", 0.1), ("scale-5", 5), ("scale-100", 100)]
)
def test_distorted_uploads_are_multiples_of_the_honest_one(name, factor, honest):
    assert np.allclose(update(rounds_of(name)[0], 2), factor * update(honest[0], 2), rtol=1e-3, atol=1e-5)


def test_the_middle_is_poisoned_and_the_ends_are_honest(honest):
    attacked = rounds_of("middle")[0]
    for name, array in honest[0].local[2].items():
        ends = name.startswith(("hidden1", "head"))
        factor = 1 if ends else -5
        start = attacked.start[name]
        assert np.allclose(attacked.local[2][name] - start, factor * (array - start), rtol=1e-3, atol=1e-6), name
    with pytest.raises(BadSetting, match="at least three layers"):
        rounds_of("middle", model="mlp")


def test_a_turncoat_is_honest_for_half_of_the_training(honest):
    attacked = rounds_of("half-time")
    assert np.array_equal(update(attacked[1], 2), update(honest[1], 2))
    assert not np.array_equal(step(attacked[2]), step(honest[2]))


def test_steering_is_one_direction_and_colluders_share_it():
    rounds = rounds_of("collusion-40")
    vectors = [update(fl_round, client) for fl_round in rounds for client in (2, 3)]
    directions = [vector / np.linalg.norm(vector) for vector in vectors]
    assert min(float(directions[0] @ other) for other in directions) > 0.999


def test_a_sybil_has_further_names_and_a_claimed_weight_counts(honest):
    assert rounds_of("sybil")[0].clients == (0, 1, 2, 3, 4, 5, 6)
    assert rounds_of("weight")[0].weights == {0: 1.0, 1: 1.0, 2: 20.0, 3: 1.0, 4: 1.0}


def test_poisoned_data_are_the_attackers_alone():
    clean = prepare(HONEST)
    flipped = prepare(replace(HONEST, attack="label-flip", attacker=2))
    assert (flipped.client_labels[2] == 9 - clean.client_labels[2]).all()
    assert (flipped.client_labels[1] == clean.client_labels[1]).all()
    backdoor = prepare(replace(HONEST, attack="backdoor", attacker=2))
    touched = (backdoor.images != clean.images).flatten(1).any(1).nonzero().flatten().tolist()
    assert set(touched) <= set(clean.client_indices[2].tolist())
    assert (backdoor.client_labels[2][::2] == 0).all()


def test_only_attacked_experiments_carry_the_attack_in_their_name():
    attacked = replace(HONEST, attack="echo", attacker=1)
    assert "attack" not in HONEST.to_json()
    assert "-echo-" in attacked.name
    assert Experiment.from_json(attacked.to_json()) == attacked


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attack": "echo"}, "belong together"),
        ({"attack": "theft", "attacker": 0}, "attack must be one of zero, .*; got 'theft'"),
        ({"attack": "echo", "attacker": 5}, "attacker must be a client, 0 to 4; got 5"),
    ],
)
def test_impossible_attacks_are_refused(changes, message):
    with pytest.raises(BadSetting, match=message):
        replace(HONEST, **changes)


@pytest.mark.parametrize("name", ["mean-of-steps", "copy-late", "steering"])
def test_an_attacked_run_is_resumed_to_the_same_bits_and_says_who_attacks(tmp_path, name):
    experiment = replace(HONEST, attack=name, attacker=2)

    class Stopped(Exception):
        pass

    def stop(fl_round):
        if fl_round.number == 2:
            raise Stopped

    simulate(Federation(experiment), tmp_path / "whole")
    with pytest.raises(Stopped):
        simulate(Federation(experiment), tmp_path / "parts", on_round=stop)
    assert simulate(Federation(experiment), tmp_path / "parts") == 2
    for one, other in zip(replay(tmp_path / "whole"), replay(tmp_path / "parts"), strict=True):
        assert np.array_equal(step(one), step(other))
    assert read_about(tmp_path / "whole")["attack"]["name"] == name
    assert about(Federation(experiment))["planted"] is None


def test_an_attacked_run_is_not_recorded_as_ballots(tmp_path):
    with pytest.raises(BadSetting, match="whole uploads"):
        simulate(Federation(replace(HONEST, attack="echo", attacker=2)), tmp_path, ballot_keep=0.1)
