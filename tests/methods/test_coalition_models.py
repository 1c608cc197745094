"""Coalition models against the plain formula, and against what a server would have averaged."""

import tracemalloc

import numpy as np
import pytest

from fedcoast.kernels.aggregation import mean
from fedcoast.methods.coalition.coalition_models import PIECE, merge, replay, scaled
from fedcoast.methods.coalition.games import members
from federations import draw

SHAPES = {"weight": (5, 4), "bias": (), "norm.running_var": (4,)}


def models(players=5, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    start = {**draw(rng, SHAPES, dtype), "steps": np.array(3), "flags": np.array([True, False])}
    local = [
        {**draw(rng, SHAPES, dtype), "steps": np.array(10 * i), "flags": np.array([False, i == 2])}
        for i in range(players)
    ]
    return start, local


def naive(start, local, weights, coalition, denominator):
    """Every model written out whole, in float64."""
    who = members(coalition)
    total = sum(weights) if denominator == "fixed" else sum(weights[i] for i in who)
    result = {}
    for name, array in start.items():
        if array.dtype.kind != "f":
            result[name] = np.max([local[i][name] for i in who], axis=0) if who else array
            continue
        base = array.astype(np.float64)
        moved = sum((weights[i] * (local[i][name].astype(np.float64) - base) for i in who), np.zeros(array.shape))
        result[name] = (base + (moved / total if total else 0)).astype(array.dtype)
    return result


def within_an_ulp(one, other, largest):
    """Of the result, for half and single floats; for doubles four of the largest number that went into the sum."""
    for name, array in one.items():
        assert array.dtype == other[name].dtype
        if array.dtype == np.float64:
            assert (np.abs(array - other[name]) <= 4 * np.spacing(largest)).all()
        elif array.dtype.kind == "f":
            apart = np.abs(array.astype(np.float64) - other[name].astype(np.float64))
            assert (apart <= np.spacing(np.maximum(np.abs(array), np.abs(other[name])))).all()
        else:
            np.testing.assert_array_equal(array, other[name])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("denominator", ["renormalise", "fixed"])
@pytest.mark.parametrize("weights", [[1, 1, 1, 1, 1], [40, 30, 20, 10, 0]])
def test_coalition_models_are_the_formula_to_the_last_place(dtype, denominator, weights):
    start, local = models(dtype=dtype)
    largest = max(np.abs(model[name]).max() for model in (start, *local) for name in SHAPES)
    for coalition, model in zip(range(32), merge(start, local, weights, range(32), denominator), strict=True):
        within_an_ulp(model, naive(start, local, weights, coalition, denominator), largest)


def test_a_renormalised_coalition_is_the_mean_that_a_server_takes():
    start, local = models()
    weights = [4.0, 3.0, 1.0, 2.0, 7.0]
    for coalition in range(1, 32):
        who = members(coalition)
        (model,) = merge(start, local, weights, [coalition])
        for name in SHAPES:
            expected = mean([local[i][name] for i in who], [weights[i] for i in who])
            assert (np.abs(model[name] - expected) <= np.spacing(np.abs(expected))).all()


def test_the_bits_depend_on_the_coalition_alone():
    start, local = models(6)
    weights = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0]
    alone = {c: copied(next(merge(start, local, weights, [c]))) for c in range(64)}
    rng = np.random.default_rng(0)
    for order in (range(64), range(63, -1, -1), rng.permutation(64).tolist() * 2):
        for coalition, model in zip(order, merge(start, local, weights, order), strict=True):
            for name, array in model.items():
                assert array.tobytes() == alone[coalition][name].tobytes()


def test_one_model_is_all_the_memory_that_is_handed_out():
    start, local = models()
    handed = [model["weight"] for model in merge(start, local, [1] * 5, range(32))]
    assert len({id(array) for array in handed}) == 1


def large(order):
    rng = np.random.default_rng(0)
    start = {"w": np.asarray(rng.normal(size=(300, 500)), np.float32, order=order)}
    assert start["w"].size > 3 * PIECE
    return start, [{"w": start["w"] + rng.normal(size=(300, 500)).astype(np.float32)} for _ in range(4)]


@pytest.mark.parametrize("order", ["C", "F"])
def test_large_layers_are_merged_piece_by_piece_whatever_their_memory_order(order):
    start, local = large(order)
    for coalition, model in enumerate(merge(start, local, [1, 2, 3, 4], range(16))):
        within_an_ulp(model, naive(start, local, [1, 2, 3, 4], coalition, "renormalise"), 8)


def test_all_coalitions_together_need_the_memory_of_one_model():
    start, local = large("C")
    for _ in merge(start, local, [1, 2, 3, 4], range(1)):
        pass  # what is compiled or imported at first use is not counted
    tracemalloc.start()
    for _ in merge(start, local, [1, 2, 3, 4], range(16)):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * start["w"].nbytes  # not sixteen models


def test_nobodys_coalition_is_the_start_and_nothing_given_is_changed():
    start, local = models()
    before = [copied(model) for model in (start, *local)]
    for coalition, model in zip(range(32), merge(start, local, [1] * 5, range(32)), strict=True):
        if coalition == 0:
            for name, array in model.items():
                np.testing.assert_array_equal(array, start[name])
                assert array is not start[name]
    for model, copy in zip((start, *local), before, strict=True):
        for name, array in model.items():
            np.testing.assert_array_equal(array, copy[name])


def test_who_changes_nothing_changes_no_bit_under_the_fixed_denominator():
    start, local = models()
    local[2] = {**start}
    weights = [3.0, 1.0, 4.0, 1.0, 5.0]
    for coalition in range(32):
        if not coalition >> 2 & 1:
            pair = [coalition, coalition | 0b100]
            without, joined = (copied(model) for model in merge(start, local, weights, pair, "fixed"))
            for name in SHAPES:
                assert without[name].tobytes() == joined[name].tobytes()


def test_weights_matter_by_their_ratios_alone():
    assert scaled([1e-300, 2e-300]) == [0.5, 1.0]
    assert scaled([1e300, 1e308])[1] == 1.0
    assert scaled([0, 0]) == [0.0, 0.0]
    assert scaled([]) == []


def test_a_sum_of_a_thousand_small_updates_does_not_drift():
    """A running float32 sum would: 1 + 1000 · 1e-8 / 1000, added one by one, stays 1 or strays."""
    start = {"w": np.ones(3, dtype=np.float32)}
    local = [{"w": np.full(3, 1 + 2.0**-20, dtype=np.float32)}] * 1000
    (model,) = merge(start, local, [1] * 1000, [2**1000 - 1])
    assert model["w"].tolist() == [1 + 2.0**-20] * 3


def test_replay_adds_up_what_the_members_did_in_each_leg():
    origin = {"w": np.array([1.0, 1.0])}
    both = {0: (1.0, {"w": np.array([1.0, 0.0])}), 1: (3.0, {"w": np.array([0.0, 4.0])})}
    second_alone = {1: (1.0, {"w": np.array([10.0, 10.0])})}
    cohorts = [both, second_alone]
    assert replay(origin, cohorts, 0b00)["w"].tolist() == [1, 1]
    assert replay(origin, cohorts, 0b01)["w"].tolist() == [2, 1]
    assert replay(origin, cohorts, 0b10)["w"].tolist() == [11, 15]
    assert replay(origin, cohorts, 0b11)["w"].tolist() == [11.25, 14]
    assert replay(origin, cohorts, 0b10, "fixed")["w"].tolist() == [11, 14]


def copied(model):
    return {name: array.copy() for name, array in model.items()}
