"""Two bits an entry: what is packed comes back, and what is computed on planes is what the readable formulas say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcoast.kernels import movement as movement_module
from fedcoast.kernels.ballots import signs
from fedcoast.kernels.bit_planes import SPAN, PlaneLayout, agreements, signs_of, sizes, to_signs
from fedcoast.kernels.compiling import kernels
from fedcoast.kernels.movement import agreement, movement, movement_planes, votes
from fedcoast.kernels.threads import ThreadPool
from fedcoast.kernels.vote_counts import count, majority_sign, no_votes
from plain_votes import to_planes, vote_direction
from strategies import seeds, steady

BORDERS = st.sampled_from([1, 2, 63, 64, 65, 128, 200, 1000])
schemas = st.lists(BORDERS, min_size=1, max_size=5)


def drawn(rng, schema):
    return [rng.integers(-1, 2, size).astype(np.int8) for size in schema]


def packed(layers):
    return np.concatenate([to_planes(layer) for layer in layers], axis=1)


@steady
@given(seeds, schemas)
def test_what_is_put_into_planes_comes_back_and_the_rest_is_zero(seed, schema):
    layers = drawn(np.random.default_rng(seed), schema)
    plane_layout, planes = PlaneLayout(tuple(schema)), packed(layers)
    assert planes.shape == (2, plane_layout.words)
    for part, layer in zip(plane_layout.layers(planes), layers, strict=True):
        assert to_signs(part, layer.size).tolist() == layer.tolist()
        assert int(np.bitwise_count(part).sum()) == np.count_nonzero(layer)


def test_planes_take_two_bits_an_entry_and_at_most_two_words_a_layer_more():
    for schema in [(1,), (64,), (65, 1, 10_000), (3,) * 50]:
        planes = PlaneLayout(schema).empty_planes()
        assert 8 * planes.nbytes <= 2 * sum(schema) + 128 * len(schema)


@steady
@given(seeds, schemas)
def test_agreement_on_planes_is_agreement(seed, schema):
    rng, plane_layout = np.random.default_rng(seed), PlaneLayout(tuple(schema))
    signal, way, base = (drawn(rng, schema) for _ in range(3))
    row = agreements(packed(signal), packed(way), plane_layout)
    assert row.tolist() == [agreement(one, other) for one, other in zip(signal, way, strict=True)]
    assert sizes(packed(signal), plane_layout).tolist() == [np.count_nonzero(one) for one in signal]
    apart = [int(np.abs(one - other).sum()) for one, other in zip(signal, base, strict=True)]
    assert sizes(packed(signal), plane_layout, packed(base)).tolist() == apart


def test_layers_across_the_borders_of_what_is_counted_at_once_are_counted_once():
    rng, schema = np.random.default_rng(0), (64 * SPAN - 5, 3, 64 * SPAN * 2 + 1, 64)
    signal, way = drawn(rng, schema), drawn(rng, schema)
    row = agreements(packed(signal), packed(way), PlaneLayout(schema))
    assert row.tolist() == [agreement(one, other) for one, other in zip(signal, way, strict=True)]
    assert sizes(packed(signal), PlaneLayout(schema)).tolist() == [np.count_nonzero(one) for one in signal]


@steady
@given(seeds, schemas, st.sampled_from([np.float32, np.float64]), st.sampled_from([0.0, 0.25, 1e-45, 1e300, np.inf]))
def test_the_sign_of_a_sum_needs_no_sum(seed, schema, dtype, shift):
    rng = np.random.default_rng(seed)
    palette = np.array([0.0, -0.0, 0.25, -0.25, 1e-45, -1e-45, 1.0, -1.0, 3e38, -3e38], dtype)
    layers = [rng.choice(palette, size) for size in schema]
    with np.errstate(over="ignore"):
        step = dtype(shift)
        for own in (step, -step):
            found = signs_of(layers, PlaneLayout(tuple(schema)), [own] * len(layers))
            assert found.tolist() == packed([signs(layer + own) for layer in layers]).tolist()
    assert signs_of(layers, PlaneLayout(tuple(schema))).tolist() == packed([signs(layer) for layer in layers]).tolist()


@steady
@given(seeds, BORDERS, st.lists(st.integers(1, 20), min_size=1, max_size=3))
def test_votes_counted_in_planes_are_the_votes(seed, size, clients):
    rng, counts, sums = np.random.default_rng(seed), [], []
    for number in clients:
        ballots = [*drawn(rng, [size] * number)]
        counts.append(no_votes(-(-size // 64), number))
        for ballot in ballots:
            count(counts[-1], to_planes(ballot))
        sums.append(votes(ballots))
        place, bits = np.arange(size), np.unpackbits(counts[-1].view(np.uint8), axis=-1, bitorder="little")
        up, down = (bits[..., place].astype(int) * 2 ** np.arange(bits.shape[1])[:, None]).sum(axis=1)
        assert (up - down).tolist() == sums[-1].tolist()
    assert to_signs(majority_sign(counts), size).tolist() == vote_direction(sums).tolist()


def test_everyone_voting_alike_overflows_nothing():
    ones = np.ones(70, np.int8)
    votes = no_votes(2, 255)
    for _ in range(255):
        count(votes, to_planes(ones))
    assert to_signs(majority_sign([votes, votes, votes]), 70).tolist() == ones.tolist()
    assert to_signs(majority_sign([votes, votes[::-1]]), 70).tolist() == [0] * 70


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("ulps", [0, 4, 1e300])
def test_movement_in_pieces_is_movement(monkeypatch, compiled, threads, ulps):
    monkeypatch.setattr(movement_module, "_PIECE", 128)
    monkeypatch.setattr(movement_module, "WORTHWHILE", 1 if compiled else 10**9)
    assert not compiled or kernels("float32", wait=True)
    rng, schema = np.random.default_rng(1), (1, 64, 130, 500)
    models = [[rng.normal(size=size).astype(np.float32) for size in schema[:2]] for _ in range(3)]
    for model in models:  # entries that stand still, or all but
        model += [np.float32(1) + np.spacing(np.float32(1)) * rng.integers(-9, 9, size) for size in schema[2:]]
    with ThreadPool(threads) as threads:
        planes = movement_planes(models, ulps, PlaneLayout(schema), threads)
    expected = [movement(window, ulps) for window in zip(*models, strict=True)]
    assert planes.tolist() == packed(expected).tolist()
