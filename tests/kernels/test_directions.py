"""Dot products, lengths and cosines in pieces; the cosine game; CGSV's rewards."""

from itertools import permutations

import numpy as np
import pytest

from fedcoast.kernels.directions import (
    CHUNK,
    LARGEST,
    accumulate,
    chunks,
    cosine,
    cosine_game,
    dot,
    gram,
    norm,
    row_cosines,
    sparsified,
    sparsity,
)

RNG = np.random.default_rng(0)
SHAPES = ((CHUNK + 3,), (2, 3, 5), (), (CHUNK,))


def layers(dtype=np.float32):
    return [np.asarray(RNG.normal(size=shape), dtype=dtype) for shape in SHAPES]


def flat(model):
    return np.concatenate([np.asarray(layer, dtype=np.float64).ravel() for layer in model])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_pieces_make_up_the_whole_difference(dtype):
    local, start = layers(dtype), layers(dtype)
    pieces = [piece.copy() for piece in chunks(local, start)]
    assert max(piece.size for piece in pieces) == CHUNK
    assert all(piece.dtype == np.float64 for piece in pieces)
    np.testing.assert_array_equal(np.concatenate(pieces), flat(local) - flat(start))


def test_products_lengths_and_cosines_are_those_of_the_flat_vectors():
    a, b = layers(), layers()
    assert dot(chunks(a), chunks(b)) == pytest.approx(flat(a) @ flat(b), rel=1e-12)
    assert norm(chunks(a)) == pytest.approx(np.linalg.norm(flat(a)), rel=1e-12)
    expected = flat(a) @ flat(b) / np.linalg.norm(flat(a)) / np.linalg.norm(flat(b))
    assert cosine(chunks(a), chunks(b)) == pytest.approx(expected, rel=1e-12)
    table = gram([chunks(a), chunks(b), chunks(a)])
    np.testing.assert_allclose(table, [[flat(x) @ flat(y) for y in (a, b, a)] for x in (a, b, a)], rtol=1e-12)


def test_float32_products_are_summed_in_float64():
    big = [np.full(3 * CHUNK, 1 + 2**-20, dtype=np.float32)]
    assert dot(chunks(big), chunks(big)) == pytest.approx(3 * CHUNK * float(np.float32(1 + 2**-20)) ** 2, rel=1e-14)


def test_a_transposed_layer_is_read_in_its_logical_order():
    layer = RNG.normal(size=(7, 5))
    np.testing.assert_array_equal(np.concatenate(list(chunks([layer.T]))), layer.T.ravel())


def test_accumulating_changes_nothing_but_the_total():
    a = layers()
    before = [layer.copy() for layer in a]
    total = [np.zeros(shape) for shape in SHAPES]
    accumulate(total, chunks(a), 2.0)
    accumulate(total, chunks(a), -0.5)
    np.testing.assert_allclose(flat(total), 1.5 * flat(a), rtol=1e-12)
    assert all(np.array_equal(x, y) for x, y in zip(a, before, strict=True))


def test_a_zero_vector_has_cosine_zero_with_everything():
    zero = [np.zeros(4)]
    assert cosine(chunks(zero), chunks([np.ones(4)])) == 0
    assert cosine(chunks(zero), chunks(zero)) == 0
    assert row_cosines(np.zeros((2, 3)), np.ones((2, 3))).tolist() == [0, 0]


def test_numbers_too_large_to_square_still_have_a_direction():
    huge = [np.array([1.7e308, -1.7e308])]
    assert next(chunks(huge, [-huge[0]])).tolist() == [LARGEST, -LARGEST]
    assert cosine(chunks(huge), chunks([np.array([1.0, -1.0])])) == pytest.approx(1)
    assert np.isfinite(norm(chunks(huge)))


def by_permutations(vectors, weights):
    """The Shapley value by its definition: the mean marginal over all orders of joining."""
    shares = [w * v for w, v in zip(weights, vectors, strict=True)]
    everyone = sum(shares)

    def worth(members):
        together = sum((shares[i] for i in members), start=np.zeros_like(everyone))
        lengths = np.linalg.norm(together) * np.linalg.norm(everyone)
        return together @ everyone / lengths if lengths > 0 else 0.0

    values = np.zeros(len(vectors))
    orders = list(permutations(range(len(vectors))))
    for order in orders:
        for place, player in enumerate(order):
            values[player] += worth(order[: place + 1]) - worth(order[:place])
    return values / len(orders)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_cosine_game_is_the_mean_over_all_orders(count):
    vectors = RNG.normal(size=(count, 4))
    weights = RNG.random(count)
    values = cosine_game(vectors @ vectors.T, weights)
    np.testing.assert_allclose(values, by_permutations(vectors, weights), atol=1e-12)
    assert values.sum() == pytest.approx(1)  # v(N) = cos(u_N, u_N) = 1, v(∅) = 0


def test_clients_that_cancel_have_no_direction():
    way = np.array([0.3, -0.7, 0.1])
    vectors = np.stack([way, -way, 1e-3 * np.array([1.0, 1.0, 1.0])])
    values = cosine_game(vectors @ vectors.T, [1.0, 1.0, 1.0])
    np.testing.assert_allclose(values, by_permutations(vectors, [1, 1, 1]), atol=1e-9)
    assert not cosine_game(np.zeros((2, 2)), [0.5, 0.5]).any()


def test_fifteen_clients_are_played_in_no_time():
    vectors = RNG.normal(size=(15, 40))
    values = cosine_game(vectors @ vectors.T, [1 / 15] * 15)
    assert values.sum() == pytest.approx(1)


def test_everybody_gets_the_whole_update_where_altruism_is_large():
    np.testing.assert_allclose(sparsity([0.5, 0.3, 0.2], 1e7), 1)
    assert sparsity([0.0, 0.0], 1.0).tolist() == [0, 0]


def test_a_sparsified_reward_keeps_the_largest_entries():
    update = np.array([[0.3, -0.4], [0.1, 0.0]], dtype=np.float32)
    assert sparsified(update, 0.5).tolist() == [[np.float32(0.3), np.float32(-0.4)], [0, 0]]
    assert sparsified(update, 0.3).tolist() == sparsified(update, 0.5).tolist()  # rounded up
    assert np.array_equal(sparsified(update, 1.0), update)
    assert not sparsified(update, 0.0).any()
    assert sparsified(np.array([0.7]), 1.0).tolist() == [0.7]  # the authors' code fails on a single entry
    assert sparsified(update, 0.5).dtype == np.float32
