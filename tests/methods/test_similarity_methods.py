"""Cosine, CGSV, ShapFed and update norm at the edges: idle, alone, absent, quarantined, scaled, harmful."""

import re
from dataclasses import replace

import numpy as np
import pytest

import fixture_a
from fedcoast import BadSetting, Round
from fedcoast.methods import CGSV, Cosine, Norm, ShapFed, SpectralFuse
from fedcoast.methods.similarity.shapfed import class_cosines
from federations import federation, show, with_upload, without
from paper.research_code import CGSVResearchCode

ALIKE = [CGSV, lambda: CGSV(game="exact"), Cosine, lambda: Cosine(reference="movement"), CGSVResearchCode, ShapFed]
NAMES = ["cgsv", "cgsv-exact", "cosine", "cosine of movement", "cgsv-research-code", "shapfed"]
directions = pytest.mark.parametrize("make", ALIKE, ids=NAMES)


def idle(rounds, client):
    return [with_upload(fl_round, client, fl_round.start) for fl_round in rounds]


def turned(fl_round, client, factor):
    """The client's update times a factor."""
    model = {n: fl_round.start[n] + factor * (fl_round.local[client][n] - fl_round.start[n]) for n in fl_round.start}
    return with_upload(fl_round, client, model)


@directions
def test_a_zero_update_earns_no_credit(make):
    answer = show(make(), idle(federation(), "bob"))
    assert {credits["bob"] for credits in answer.credits.values()} == {0}


@directions
def test_one_client_alone_agrees_with_itself(make):
    shown = federation(clients=("ann",))
    answer = show(make(), shown)
    assert all(credits["ann"] == pytest.approx(1) for credits in answer.credits.values())
    answer = show(make(), [replace(r, local={"ann": r.start}, end=r.start) for r in shown])
    assert all(credits == {"ann": 0} for credits in answer.credits.values())


@directions
def test_a_client_that_pulls_the_other_way_is_credited_below_zero(make):
    # Ann's update, the common direction itself, is turned round, and too weak to turn the mean with it.
    shown = [turned(fl_round, "ann", -0.2) for fl_round in federation(seed=3)]
    shown = [replace(r, end={n: np.mean([m[n] for m in r.local.values()], axis=0) for n in r.start}) for r in shown]
    answer = show(make(), shown)
    assert sum(credits["ann"] for credits in answer.credits.values()) < 0 < answer.scores["bob"]


@directions
def test_every_credit_is_a_cosine(make):
    answer = show(make(), federation(rounds=8, seed=5))
    assert all(abs(credit) <= 1 for credits in answer.credits.values() for credit in credits.values())


@directions
def test_the_size_of_all_updates_together_changes_nothing(make):
    shown = federation(dtype=np.float64)
    doubled = []
    for fl_round in shown:
        local = {c: {n: m[n] + (m[n] - fl_round.start[n]) for n in m} for c, m in fl_round.local.items()}
        end = {n: fl_round.end[n] + (fl_round.end[n] - fl_round.start[n]) for n in fl_round.end}
        doubled.append(replace(fl_round, local=local, end=end))
    one, two = show(make(), shown), show(make(), doubled)
    assert one.scores == pytest.approx(two.scores, abs=1e-5)  # CGSV adds 1e-7 to every length


def test_cgsv_is_not_hijacked_by_a_scaled_client_where_plain_cosines_are():
    def scaled(client, updates):
        return 10 * updates[client] if client == "c3" else updates[client]

    shown = list(fixture_a.rounds("observer", scaled))
    plain = show(Cosine(), shown).scores
    assert [round(plain[client], 2) for client in ("c1", "c2", "c3")] == [-2.36, -2.51, 3.96]
    cut = show(CGSV(), shown).scores
    assert cut["c3"] < 0.01 < cut["c1"]


def test_reputations_are_shares_of_one():
    answer = show(CGSV(), federation(rounds=8))
    assert sum(answer.scores.values()) == pytest.approx(1)
    assert min(answer.scores.values()) > 0


def test_where_all_updates_cancel_reputations_are_equal():
    model = {"w": np.array([1.0, -2.0])}
    local = {"a": {"w": model["w"] + 1}, "b": {"w": model["w"] - 1}}
    answer = show(CGSV(), [Round(1, model, local, model)])
    assert answer.credits == {1: {"a": 0, "b": 0}}
    assert answer.scores == {"a": 0.5, "b": 0.5}


def test_who_is_absent_keeps_its_reputation_relative_to_the_others():
    shown = federation(rounds=6, clients=("ann", "bob", "cid", "dan"))
    before = show(CGSV(), shown[:3]).scores
    after = show(CGSV(), [*shown[:3], *(without(fl_round, "cid", "dan") for fl_round in shown[3:])]).scores
    assert after["cid"] == pytest.approx(before["cid"])
    assert after["dan"] == pytest.approx(before["dan"])
    assert after["ann"] + after["bob"] == pytest.approx(before["ann"] + before["bob"])


def test_a_round_of_one_does_not_change_its_reputation():
    shown = federation(rounds=4)
    before = show(CGSV(), shown[:3]).scores
    after = show(CGSV(), [*shown[:3], without(shown[3], "ann", "bob")]).scores
    assert after == pytest.approx(before)


def test_a_newcomer_enters_with_an_equal_share():
    shown = [
        without(fl_round, "dan") if fl_round.number < 4 else fl_round
        for fl_round in federation(clients=("ann", "bob", "dan"))
    ]
    answer = show(CGSV(momentum=0.999999), shown)
    assert answer.scores["dan"] == pytest.approx(1 / 3, abs=1e-4)
    assert answer.rounds_scored["dan"] == 3


def test_the_data_weigh_in_cgsvs_first_round_only():
    first, second = federation(rounds=2)
    heavy = {"ann": 1, "bob": 1, "cid": 1000}
    weighted = show(CGSV(), [replace(first, weights=heavy)])
    assert weighted.credits[1]["cid"] > 0.99
    assert weighted.credits != show(CGSV(), [first]).credits
    one = show(CGSV(), [first, second])
    two = show(CGSV(), [first, replace(second, weights=heavy)])
    assert one == two


def test_exact_cgsv_refuses_more_than_fifteen_clients():
    many = federation(rounds=1, clients=tuple(range(16)))
    with pytest.raises(BadSetting, match=r"round 1 has 16 clients.*at most 15; use game='cosine'"):
        show(CGSV(game="exact"), many)
    assert sum(show(CGSV(game="exact"), [without(many[0], 15)]).credits[1].values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"clip_norm": 0}, "clip_norm must be a positive number"),
        ({"momentum": 1}, r"momentum must lie in \[0, 1\)"),
        ({"floor": -1}, "floor must be a positive number"),
        ({"game": "shapley"}, "game must be one of 'cosine', 'exact'; got 'shapley'"),
        ({"layers": []}, "layers must be"),
    ],
)
def test_cgsv_says_what_its_options_may_be(options, text):
    with pytest.raises(BadSetting, match=text):
        CGSV(**options)


def test_the_mean_is_weighted_as_the_aggregation_was():
    (fl_round,) = federation(rounds=1)
    heavy = replace(fl_round, weights={"ann": 0, "bob": 0, "cid": 5})
    assert show(Cosine(), [heavy]).scores["cid"] == pytest.approx(1)
    nobody = replace(fl_round, weights={"ann": 0, "bob": 0, "cid": 0})
    assert set(show(Cosine(), [nobody]).scores.values()) == {0}


def test_a_server_optimiser_bends_the_movement_and_not_the_mean():
    (fl_round,) = federation(rounds=1)
    back = {n: fl_round.start[n] - (fl_round.end[n] - fl_round.start[n]) for n in fl_round.start}
    assert show(Cosine(), [replace(fl_round, end=back)]).scores == show(Cosine(), [fl_round]).scores
    mirrored = show(Cosine(reference="movement"), [replace(fl_round, end=back)]).scores
    straight = show(Cosine(reference="movement"), [fl_round]).scores
    assert mirrored == pytest.approx({client: -score for client, score in straight.items()}, abs=1e-6)


@pytest.mark.parametrize("make", [CGSV, Cosine, Norm])
def test_layers_choose_what_is_compared(make):
    (fl_round,) = federation(rounds=1)
    head = {n: fl_round.local["bob"][n] if n.startswith("head") else fl_round.local["ann"][n] for n in fl_round.start}
    answer = show(make(layers="head.*"), [with_upload(fl_round, "ann", head)])
    assert answer.credits[1]["ann"] == answer.credits[1]["bob"]


def test_the_norm_of_an_update():
    start = {"w": np.float32([1, 1]), "b": np.float32([0])}
    local = {"a": {"w": np.float32([4, 1]), "b": np.float32([4])}, "b": start}
    assert show(Norm(), [Round(1, start, local, start)]).scores == {"a": 5.0, "b": 0.0}


def test_shapfed_leaves_out_a_class_that_nobody_trained():
    start = {"fc.weight": np.zeros((3, 2)), "fc.bias": np.zeros(3)}
    moved = {"fc.weight": np.array([[1.0, 0], [0, 1], [0, 0]]), "fc.bias": np.zeros(3)}
    other = {"fc.weight": np.array([[1.0, 0], [0, -1], [0, 0]]), "fc.bias": np.zeros(3)}
    answer = show(ShapFed(), [Round(1, start, {"a": moved, "b": other}, start)])
    assert answer.scores == {"a": 0.5, "b": 0.5}  # one class shared, one cancelled, one untrained


def test_shapfed_counts_by_reputation_what_everyone_says():
    shown = [turned(fl_round, "ann", -0.5) for fl_round in federation(rounds=2, seed=3)]
    answer = show(ShapFed(), shown)
    gamma = answer.credits[1]
    assert gamma == show(ShapFed(weighting="uniform"), shown).credits[1]
    assert gamma["ann"] < 0  # so that she counts for nothing in the second round
    counts = {client: max(0, own) / (gamma["bob"] + gamma["cid"]) for client, own in gamma.items()}
    second = shown[1]
    updates = {
        client: np.column_stack([(model[n] - second.start[n]).astype(float) for n in ("head.weight", "head.bias")])
        for client, model in second.local.items()
    }
    expected = {client: cosines.mean() for client, cosines in class_cosines(updates, counts).items()}
    assert answer.credits[2] == pytest.approx(expected, abs=1e-6)


def test_shapfed_keeps_the_score_of_who_is_absent():
    shown = federation(rounds=4)
    before = show(ShapFed(), shown[:2]).scores
    after = show(ShapFed(), [*shown[:2], *(without(fl_round, "bob") for fl_round in shown[2:])]).scores
    assert after["bob"] == before["bob"]
    assert after["ann"] != before["ann"]


def test_shapfed_takes_a_head_without_bias_and_of_more_dimensions():
    rng = np.random.default_rng(0)
    start = {"conv": rng.normal(size=(4, 3, 1, 1))}
    local = {c: {"conv": start["conv"] + rng.normal(size=(4, 3, 1, 1))} for c in "ab"}
    assert all(-1 <= score <= 1 for score in show(ShapFed(), [Round(1, start, local, start)]).scores.values())


@pytest.mark.parametrize("kind", [ShapFed, SpectralFuse])
@pytest.mark.parametrize(
    ("model", "text"),
    [
        ({"w": np.zeros(4)}, "needs a classifier with a head of two or more dimensions"),
        ({"w": np.zeros((1, 4)), "b": np.zeros(1)}, r"a row for each of two or more classes.*w \(1, 4\), b \(1,\)"),
        ({"w": np.zeros((3, 4)), "b": np.zeros(4)}, r"layers='head' chose w \(3, 4\), b \(4,\). Name the head"),
    ],
)
def test_a_method_of_heads_refuses_what_is_no_classifier(kind, model, text):
    with pytest.raises(BadSetting, match=f"{kind.__name__} needs a classifier.*") as refused:
        show(kind(), [Round(1, model, {"a": model}, model)])
    assert re.search(text, str(refused.value))


@directions
def test_a_saved_state_that_was_altered_is_refused(make, tmp_path):
    from fedcoast import BadFile
    from fedcoast.storage.tensors import read_tensors, write_tensors

    assessor = make()
    show(assessor, federation(rounds=2))
    assessor.save(tmp_path / "state")
    _, header = read_tensors(tmp_path / "state")
    header["facts"] = {"standing": [["nobody", 1]], "more": 1}
    write_tensors(tmp_path / "state", {}, header)
    with pytest.raises(BadFile):
        make().restore(tmp_path / "state")
