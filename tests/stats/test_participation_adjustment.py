import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcoast.stats.participation_adjustment import adjusted_mean, effective_rounds, parts

NAN = float("nan")


def drawn(seed, rounds=12, clients=5, share=0.5):
    rng = np.random.default_rng(seed)
    there = rng.random((rounds, clients)) < share
    return rng, np.where(there, rng.normal(size=(rounds, clients)), NAN)


def by_least_squares(credits):
    """The same with the textbook's design matrix, which holds for connected clients alone."""
    rounds, clients = credits.shape
    places = np.argwhere(~np.isnan(credits))
    design = np.zeros((len(places), clients + rounds))
    design[np.arange(len(places)), places[:, 1]] = 1
    design[np.arange(len(places)), clients + places[:, 0]] = 1
    parts = np.linalg.lstsq(design, credits[tuple(places.T)], rcond=None)[0]
    used = ~np.isnan(credits).all(axis=1)
    return parts[:clients] + parts[clients:][used].mean()


@given(st.integers(0, 10_000))
def test_where_everybody_is_always_there_the_level_is_the_mean(seed):
    _, credits = drawn(seed, share=2)
    np.testing.assert_allclose(adjusted_mean(credits), credits.mean(axis=0), atol=1e-12)


@given(st.integers(0, 10_000), st.integers(2, 20))
def test_connected_clients_get_what_least_squares_gives(seed, clients):
    _, credits = drawn(seed, clients=clients)
    credits[0] = np.arange(clients)  # one round with everybody connects all
    np.testing.assert_allclose(adjusted_mean(credits), by_least_squares(credits), atol=1e-9)


@given(st.integers(0, 10_000))
def test_what_a_round_gives_to_all_of_its_clients_moves_no_difference(seed):
    rng, credits = drawn(seed)
    credits[0] = np.arange(5.0)
    before, after = adjusted_mean(credits), adjusted_mean(credits + 100 * rng.normal(size=(len(credits), 1)))
    np.testing.assert_allclose(after - after[0], before - before[0], atol=1e-8)


@given(st.integers(0, 10_000))
def test_worths_that_add_up_are_found_exactly_whoever_was_absent(seed):
    rng, credits = drawn(seed)
    credits[0] = 0.0
    worth, occasion = rng.normal(size=5), 10 * rng.normal(size=(len(credits), 1))
    level = adjusted_mean(np.where(np.isnan(credits), NAN, worth + occasion))
    np.testing.assert_allclose(level - level[0], worth - worth[0], atol=1e-8)


@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
def test_the_order_of_clients_and_of_rounds_does_not_matter(seed, random):
    _, credits = drawn(seed)
    clients, rounds = random.sample(range(5), 5), random.sample(range(12), 12)
    np.testing.assert_allclose(adjusted_mean(credits[rounds][:, clients]), adjusted_mean(credits)[clients], atol=1e-9)


@given(st.integers(0, 10_000), st.integers(2, 20))
def test_each_round_adds_what_least_squares_gives_with_all_others_at_zero(seed, clients):
    _, credits = drawn(seed, clients=clients)
    credits[0] = np.arange(clients)
    alone = [np.where(np.arange(len(credits))[:, None] == number, credits, 0 * credits) for number in range(12)]
    np.testing.assert_allclose(parts(credits), [by_least_squares(one) for one in alone], atol=1e-9)


def test_a_level_rests_on_the_rounds_that_connect_its_client_with_the_rest():
    _, credits = drawn(0, rounds=60, clients=4, share=2)
    assert effective_rounds(~np.isnan(credits)) == pytest.approx(60)
    credits[30:, :2] = credits[:30, 2:] = NAN
    credits[15, 2] = 0.5
    assert (effective_rounds(~np.isnan(credits)) < 2).all()
    credits[10:50, 1:3] = 0.5
    assert (effective_rounds(~np.isnan(credits)) > 10).all()
    assert np.isnan(effective_rounds(np.zeros((3, 2), dtype=bool))).all()


def test_clients_that_did_alike_have_the_same_level_to_the_last_bit():
    for seed in range(20):
        _, credits = drawn(seed, clients=4)
        credits[:, 3] = credits[:, 0]
        level = adjusted_mean(credits)
        assert level[3] == level[0]


def test_whoever_always_was_alone_keeps_its_mean():
    alone = np.array([[3.0, NAN], [5.0, NAN], [NAN, -1.0]])
    np.testing.assert_allclose(adjusted_mean(alone), [4.0, -1.0])


def test_groups_that_never_met_are_evened_out_apart():
    apart = np.array([[9.0, 8.0, NAN, NAN], [NAN, 2.0, NAN, NAN], [NAN, NAN, 1.0, 0.0]])
    np.testing.assert_allclose(adjusted_mean(apart), [6.0, 5.0, 1.0, 0.0], atol=1e-12)


def test_a_client_that_never_came_has_no_level_and_disturbs_nobody():
    _, credits = drawn(3)
    with_absent = np.column_stack([credits, np.full(len(credits), NAN)])
    np.testing.assert_allclose(adjusted_mean(with_absent)[:5], adjusted_mean(credits), atol=1e-12)
    assert np.isnan(adjusted_mean(with_absent)[5])


def test_tens_of_thousands_of_clients_in_some_rounds_need_no_table_of_pairs():
    _, credits = drawn(5, rounds=60, clients=30_000, share=0.1)
    level = adjusted_mean(credits)
    seen = ~np.isnan(credits).all(axis=0)
    assert (np.isnan(level) == ~seen).all()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_nothing_to_go_by_gives_no_level(shape):
    assert np.isnan(adjusted_mean(np.full(shape, NAN))).all()
