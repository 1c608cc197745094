"""Flags: what each kind of evidence looks like, and that honest clients have none."""

import numpy as np
import pytest

from fedcoast import Round
from fedcoast.analysis import behaviour
from fedcoast.analysis.behaviour import Behaviour
from fedcoast.analysis.flags import KINDS, flags, flags_of

CLIENTS, ROUNDS, SIZE = "abcde", 12, 400
LAYERS = ("first.weight", "middle.weight", "last.weight")


def federation(forge, weights=None):
    """Honest clients follow a common direction that turns from round to round, each with noise; `forge` makes e's."""
    rng = np.random.default_rng(0)
    start = {name: rng.standard_normal(SIZE).astype(np.float32) for name in LAYERS}
    steps, previous = [], {}
    for number in range(1, ROUNDS + 1):
        common = {name: rng.standard_normal(SIZE) for name in LAYERS}
        local = {
            client: {n: (start[n] + 0.01 * (common[n] + rng.standard_normal(SIZE))).astype(np.float32) for n in LAYERS}
            for client in CLIENTS
        }
        local["e"] = {n: np.asarray(a, np.float32) for n, a in forge(rng, start, local, steps, previous).items()}
        end = {n: np.mean([model[n] for model in local.values()], axis=0, dtype=np.float32) for n in LAYERS}
        yield Round(number, start=start, local=local, end=end, weights=weights)
        steps = [*steps, {n: end[n] - start[n] for n in LAYERS}][-4:]
        start, previous = end, local


def honest(rng, start, local, steps, previous):
    return local["e"]


def moved(factor):
    def forge(rng, start, local, steps, previous):
        return {n: start[n] + factor(n) * (local["e"][n] - start[n]) for n in LAYERS}

    return forge


def noise(rng, start, local, steps, previous):
    return {n: start[n] + 0.014 * rng.standard_normal(SIZE) for n in LAYERS}


def echo(rng, start, local, steps, previous):
    return {n: start[n] + steps[-1][n] for n in LAYERS} if steps else start


def mean_of_steps(rng, start, local, steps, previous):
    return {n: start[n] + np.mean([step[n] for step in steps], axis=0) for n in LAYERS} if steps else start


def steering(rng, start, local, steps, previous):
    vector = np.random.default_rng(7)
    return {n: start[n] + 0.014 * vector.standard_normal(SIZE) for n in LAYERS}


def frozen(rng, start, local, steps, previous):
    return previous["e"] if previous else local["e"]


def late_copy(rng, start, local, steps, previous):
    return previous["a"] if previous else local["e"]


ATTACKS = {
    "idle": lambda rng, start, local, steps, previous: start,
    "repeated": frozen,
    "copy": late_copy,
    "replay": echo,
    "steering": steering,
    "noise": noise,
    "opposed": moved(lambda name: -1),
    "poisoned layers": moved(lambda name: -1 if name.startswith("middle") else 1),
    "scale": moved(lambda name: 5),
}


def test_honest_clients_have_no_flags():
    assert flags(federation(honest)) == []
    assert flags(federation(honest, dict(zip(CLIENTS, (1, 2, 3, 2, 4), strict=True)))) == []


@pytest.mark.parametrize("kind", ATTACKS)
def test_each_kind_of_evidence_names_the_attacker_and_nobody_else(kind):
    found = flags(federation(ATTACKS[kind]))
    assert kind in {flag.kind for flag in found}
    assert {flag.client for flag in found} == {"e"}
    assert {flag.kind for flag in found} <= set(KINDS)


def wrong_labels(share):
    """Clients whose updates go their own steady way and against the others', as far as their wrong labels reach."""

    def forge(rng, start, local, steps, previous):
        own = np.random.default_rng(7)
        way = {n: own.standard_normal(SIZE) for n in LAYERS}
        turning = {n: 0.01 * (way[n] + 0.5 * rng.standard_normal(SIZE)) for n in LAYERS}
        return {n: start[n] - share * (local["e"][n] - start[n]) + turning[n] for n in LAYERS}

    return forge


@pytest.mark.parametrize("share", [0.0, 0.2, 0.4])
def test_an_honest_client_with_wrong_labels_has_no_flag(share):
    assert flags(federation(wrong_labels(share))) == []


def test_copies_of_an_upload_are_one_voice_so_that_colluders_turn_nobody_into_an_outsider():
    """Three of six push along one vector; the honest ones agree with each other, and only the three are named."""
    clients = "abcdef"
    rng, way = np.random.default_rng(0), np.random.default_rng(9).standard_normal(SIZE)
    rounds, start = [], {"w": np.zeros(SIZE)}
    for number in range(1, ROUNDS + 1):
        common = rng.standard_normal(SIZE)
        local = {c: {"w": start["w"] + 0.01 * (common + rng.standard_normal(SIZE))} for c in "abc"}
        local |= {c: {"w": start["w"] + (1 + place) * 0.04 * way} for place, c in enumerate("def")}
        end = {"w": np.mean([model["w"] for model in local.values()], axis=0)}
        rounds.append(Round(number, start=start, local={c: local[c] for c in clients}, end=end))
        start = end
    found = flags(rounds)
    assert {flag.client for flag in found} == set("def")
    assert {"steering", "same upload"} <= {flag.kind for flag in found}


def test_a_client_that_turns_against_the_others_is_a_change():
    count = iter(range(ROUNDS))

    def forge(*view):
        return honest(*view) if next(count) < ROUNDS // 2 else moved(lambda name: -1)(*view)

    (found,) = flags(federation(forge))
    assert (found.client, found.kind, found.rounds) == ("e", "change", 6)
    assert "opposed" in found.evidence


def test_a_mean_of_steps_is_a_replay_too():
    assert "replay" in {flag.kind for flag in flags(federation(mean_of_steps))}


def test_a_copy_in_the_same_round_names_both_since_either_may_be_the_copy():
    found = flags(federation(lambda rng, start, local, steps, previous: local["a"]))
    assert {(flag.client, flag.kind) for flag in found} == {("a", "same upload"), ("e", "same upload")}
    assert all("either may be the copy" in flag.evidence for flag in found)


def test_a_claimed_weight_far_above_the_others_is_named():
    weights = {**dict.fromkeys(CLIENTS, 1.0), "e": 20.0}
    assert [(flag.client, flag.kind) for flag in flags(federation(honest, weights))] == [("e", "claimed weight")]


@pytest.mark.parametrize("size", [1e200, 1e308])
def test_numbers_that_overflow_hide_nobody_else(size):
    """One client sends huge finite numbers beside another one that works against the rest."""
    rounds = [
        Round(
            r.number,
            start={n: np.asarray(a, np.float64) for n, a in r.start.items()},
            local={
                c: {n: np.full(SIZE, size) if c == "d" else np.asarray(a, np.float64) for n, a in model.items()}
                for c, model in r.local.items()
            },
            end={n: np.asarray(a, np.float64) for n, a in r.end.items()},
        )
        for r in federation(ATTACKS["opposed"])
    ]
    found = flags(rounds)
    assert ("e", "opposed") in {(flag.client, flag.kind) for flag in found}
    assert ("d", "scale") in {(flag.client, flag.kind) for flag in found}
    assert {flag.client for flag in found} == {"d", "e"}


def test_honesty_that_ends_is_a_change():
    count = iter(range(ROUNDS))

    def forge(*view):
        return honest(*view) if next(count) < ROUNDS // 2 else noise(*view)

    assert [(flag.client, flag.kind, flag.rounds) for flag in flags(federation(forge))] == [("e", "change", 6)]


def test_where_nobody_moves_stillness_is_no_evidence():
    still = {name: np.zeros(SIZE) for name in LAYERS}
    rounds = [Round(number, start=still, local=dict.fromkeys("ab", still), end=still) for number in range(1, 8)]
    assert flags(rounds) == []


def test_ballots_alone_raise_no_flags_and_one_client_has_nobody_to_be_compared_with():
    start, end = {"w": np.zeros(SIZE)}, {"w": np.ones(SIZE)}
    assert flags([Round(1, start=start, local={"a": start, "b": end}, end=end, ballot_keep=0.1)]) == []
    assert flags([Round(number, start=start, local={"a": start}, end=start) for number in (1, 2, 3)]) == []


def test_tiny_models_raise_no_flags():
    start, end = {"w": np.zeros(4)}, {"w": np.ones(4)}
    assert flags([Round(n, start=start, local={"a": start, "b": end}, end=end) for n in (1, 2, 3)]) == []


def test_a_model_that_grows_begins_anew():
    rng = np.random.default_rng(1)
    for size in (200, 300):
        start, end = ({"w": rng.standard_normal(size)} for _ in range(2))
        watched = Behaviour()
        watched.observe(Round(1, start=start, local={"a": start, "b": end}, end=end))
        grown = {"w": rng.standard_normal(2 * size)}
        watched.observe(Round(2, start=grown, local={"a": grown, "b": grown}, end=grown))
        assert [len(rows) for rows in watched.by_client.values()] == [2, 2]


def drawn(number, clients, size=200):
    rng = np.random.default_rng(number)
    common, start = rng.standard_normal(size), {"w": np.zeros(size)}
    local = {client: {"w": 0.01 * (common + rng.standard_normal(size))} for client in clients}
    return Round(number, start=start, local=local, end={"w": np.mean([one["w"] for one in local.values()], axis=0)})


def test_new_names_in_every_round_take_no_memory_and_hide_nobody(monkeypatch):
    monkeypatch.setattr(behaviour, "MOST_KNOWN", 50)
    monkeypatch.setattr(behaviour, "MOST_HELD", 20 * 200)
    watched = Behaviour()
    for number in range(1, 40):
        fl_round = drawn(number, [*"abcd", *(f"{number}-{place}" for place in range(5))])
        fl_round.local["rider"] = fl_round.start
        watched.observe(fl_round)
    assert len(watched.by_client) == 50
    assert len(watched._updates) == len(watched._uploads) == 10
    assert [len(watched.by_client[client]) for client in "abcd"] == [39] * 4
    assert [(flag.client, flag.kind) for flag in flags_of(watched)] == [("rider", "idle")]


def test_of_a_large_round_the_same_clients_are_looked_at_in_every_round(monkeypatch):
    monkeypatch.setattr(behaviour, "MOST_CLIENTS", 20)
    watched = Behaviour()
    for number in range(1, 5):
        watched.observe(drawn(number, range(100)))
    assert len(watched.by_client) == 20
    assert {len(rows) for rows in watched.by_client.values()} == {4}
    assert set(watched.by_client) != set(range(20)), "no client knows beforehand whether it is looked at"


def test_only_a_sample_of_a_large_layer_is_held():
    rng = np.random.default_rng(0)
    start, end = ({"big.weight": rng.standard_normal(100_000)} for _ in range(2))
    watched = Behaviour()
    watched.observe(Round(1, start=start, local={"a": start, "b": end}, end=end))
    assert watched._steps[0].size <= 4096
