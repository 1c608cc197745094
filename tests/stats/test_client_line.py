"""A line of clients: simulated, found, and which end is the better one."""

import numpy as np
import pytest

from fedcoast.stats.client_line import LARGEST_FACTOR, AgreementSums, client_line, shared_factor

WEIGHTS = ~np.eye(5, dtype=bool) * 1.0
PLACES = np.linspace(-1, 1, 5)


def halves(table, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    parts = [np.where(WEIGHTS > 0, table + noise * rng.normal(size=table.shape), 0.0) for _ in range(2)]
    return [AgreementSums(part, WEIGHTS) for part in parts]


def line_factors(parts, line_weight=7):
    return client_line(parts).factors(line_weight)


def on_a_line(lead=0.05, range_=1.0):
    """Neighbours agree more than the two ends, and clients at low places are ahead of those at high ones."""
    distance = PLACES[:, np.newaxis] - PLACES
    return np.exp(-((distance / range_) ** 2)) * (1 - lead * distance)


def test_the_end_that_leads_gets_the_larger_factors():
    factors = line_factors(halves(on_a_line()))
    assert min(factors[:2]) > factors[2] > max(factors[3:])
    assert factors[0] > 1 > factors[4]


def test_the_line_is_found_whichever_end_leads():
    ahead, behind = (line_factors(halves(on_a_line(lead))) for lead in (0.05, -0.05))
    np.testing.assert_allclose(ahead, behind[::-1])


def test_the_end_that_agrees_clearly_more_is_the_better_one_although_the_other_leads():
    quality = np.array([1.0, 0.9, 0.8, 0.7, 0.6])
    factors = line_factors(halves(np.outer(quality, quality) * on_a_line(lead=-0.05)))
    assert min(factors[:2]) > factors[2] > max(factors[3:])


def test_without_a_line_all_factors_are_one():
    quality = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    factors = line_factors(halves(np.outer(quality, quality)))
    np.testing.assert_allclose(factors, 1, atol=1e-9)


def test_luck_makes_no_line():
    factors = [line_factors(halves(np.ones((5, 5)), noise=0.1, seed=seed)) for seed in range(50)]
    assert np.abs(np.log(factors)).mean() < 0.02


def test_with_a_weight_of_zero_all_factors_are_one():
    np.testing.assert_array_equal(line_factors(halves(on_a_line()), line_weight=0), 1)


@pytest.mark.parametrize("clients", [0, 1, 2, 3])
def test_few_clients_have_no_line(clients):
    parts = [AgreementSums(on_a_line()[:clients, :clients], WEIGHTS[:clients, :clients])] * 2
    np.testing.assert_array_equal(line_factors(parts), np.ones(clients))


def test_an_idle_client_changes_nobodys_factor():
    alone = line_factors(halves(on_a_line()))
    grown = [
        AgreementSums(np.pad(h.weighted, (0, 1)), np.pad(h.weights, (0, 1), constant_values=1))
        for h in halves(on_a_line())
    ]
    np.testing.assert_array_equal(line_factors(grown), [*alone, 1.0])


def test_factors_are_bounded():
    factors = line_factors(halves(on_a_line(range_=0.2)), line_weight=100)
    assert factors.max() <= LARGEST_FACTOR * (1 + 1e-12)
    assert factors.min() >= 1 / LARGEST_FACTOR / (1 + 1e-12)
    assert np.isclose(factors.max(), LARGEST_FACTOR)


def test_pairs_that_never_met_do_not_matter():
    weights = WEIGHTS.copy()
    weights[0, 4] = weights[4, 0] = 0
    parts = [AgreementSums(on_a_line() * weights, weights)] * 2
    factors = line_factors(parts)
    assert min(factors[:2]) > factors[2] > max(factors[3:])


def test_the_shared_factor_is_that_of_least_squares():
    rng = np.random.default_rng(1)
    noisy = np.outer([3.0, 2, 1, 1, 2], [3.0, 2, 1, 1, 2]) + 0.1 * rng.normal(size=(5, 5))
    pairs, known = (noisy + noisy.T) / 2, WEIGHTS > 0
    factor = shared_factor(pairs, known)

    def misfit(q):
        return ((pairs - np.outer(q, q))[known] ** 2).sum()

    for direction in np.eye(5):
        assert misfit(factor) <= min(misfit(factor + 1e-3 * direction), misfit(factor - 1e-3 * direction))


def test_clients_at_the_same_place_on_a_line_have_no_order():
    places = np.array([-1.0, -0.98, 0.0, 0.5, 1.0])
    distance = places[:, np.newaxis] - places
    line = client_line(halves(np.exp(-(distance**2)) * (1 - 0.05 * distance)))
    assert line.unordered[0, 1]
    assert not line.unordered[[0, 0, 0, 1, 1, 2], [2, 3, 4, 2, 4, 4]].any()
    np.testing.assert_array_equal(line.unordered, line.unordered.T)


def test_where_neither_end_leads_nobody_has_an_order():
    line = client_line(halves(on_a_line(lead=0.0), noise=1e-3))
    assert not line.clear_end
    assert line.unordered.sum() == 5 * 4


def test_an_end_that_leads_in_one_half_of_the_rounds_alone_does_not_clearly_lead():
    parts = [halves(on_a_line(lead))[0] for lead in (0.1, -0.02)]
    assert not client_line(parts).clear_end


def test_where_there_is_no_line_every_pair_has_an_order():
    quality = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    assert not client_line(halves(np.outer(quality, quality))).unordered.any()


def test_an_idle_client_is_on_no_line():
    grown = [
        AgreementSums(*(np.pad(array, (0, 1)) for array in (half.weighted, half.weights)))
        for half in halves(on_a_line(lead=0.0), noise=1e-3)
    ]
    line = client_line(grown)
    assert np.isnan(line.place[-1])
    assert not line.unordered[-1].any()
