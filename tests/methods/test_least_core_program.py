"""The least core: feasible, least, and of its solutions the smallest."""

import numpy as np
import pytest
from scipy.optimize import minimize

from fedcoast.errors import BadSetting, MissingExtra
from fedcoast.methods.coalition.games import members
from fedcoast.methods.coalition.least_core_program import least_core


def sides(coalitions, players):
    return np.array([[float(player in members(c)) for player in range(players)] for c in coalitions])


def games():
    for seed in range(24):
        rng = np.random.default_rng(seed)
        players = 2 + seed % 4
        table = rng.normal(size=2**players) * 10.0 ** rng.integers(-9, 6)
        yield players, np.round(table, 1) if seed % 3 == 0 else table


@pytest.mark.parametrize(("players", "table"), list(games()))
def test_payments_are_feasible_least_and_smallest(players, table):
    payments, subsidy = least_core(dict(enumerate(table)), players)
    scale = np.abs(table - table[0]).max() or 1.0
    claims, total = (table[1:-1] - table[0]) / scale, (table[-1] - table[0]) / scale
    x, e, bounds = payments / scale, subsidy / scale, sides(range(1, 2**players - 1), players)
    assert x.sum() == pytest.approx(total, abs=1e-9)
    assert (bounds @ x + e - claims).min() >= -1e-9
    # Some coalitions that together count everybody alike claim all that they get: no smaller e can do.
    constraints = [
        {"type": "eq", "fun": lambda z: z[:-1].sum() - total},
        {"type": "ineq", "fun": lambda z: bounds @ z[:-1] + z[-1] - claims},
    ]
    least = minimize(lambda z: z[-1], np.append(x, e + 1), constraints=constraints, method="SLSQP")
    assert e == pytest.approx(least.fun, abs=1e-6)
    constraints = [
        {"type": "eq", "fun": lambda z: z.sum() - total},
        {"type": "ineq", "fun": lambda z: bounds @ z + e + 1e-10 - claims},
    ]
    smallest = minimize(lambda z: z @ z, x, constraints=constraints, method="SLSQP", options={"ftol": 1e-14})
    np.testing.assert_allclose(x, smallest.x, atol=1e-6)


def test_equal_players_are_paid_alike():
    by_size = [0.0, 0.1, 0.5, 0.6, 1.0]
    payments, _ = least_core({c: by_size[c.bit_count()] for c in range(16)}, 4)
    np.testing.assert_allclose(payments, 0.25, atol=1e-10)


def test_one_player_gets_all():
    payments, subsidy = least_core({0: 0.25, 1: 1.0}, 1)
    assert payments.tolist() == [0.75]
    assert subsidy == 0


def test_a_game_of_nothing_pays_nothing():
    payments, subsidy = least_core(dict.fromkeys(range(8), 0.3), 3)
    assert payments.tolist() == [0, 0, 0]
    assert subsidy == 0


def test_a_sample_that_misses_a_player_is_refused():
    with pytest.raises(BadSetting, match=r"no bound on these 3 coalitions of 3 players: no coalition has player 2"):
        least_core({0: 0.0, 1: 1.0, 2: 1.0, 3: 2.0, 7: 3.0}, 3)
    with pytest.raises(BadSetting, match="no bound on these 0 coalitions"):
        least_core({0: 0.0, 7: 3.0}, 3)


def test_a_sample_that_leaves_payments_free_is_refused_though_it_has_everybody():
    with pytest.raises(BadSetting, match="they leave some payments free"):
        least_core({0: 0.0, 0b011: 1.0, 0b110: 1.0, 7: 3.0}, 3)


def test_without_scipy_it_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.delitem(sys.modules, "scipy.optimize", raising=False)
    with pytest.raises((MissingExtra, ModuleNotFoundError), match="scipy"):
        least_core({0: 0.0, 1: 1.0, 2: 1.0, 3: 2.0}, 2)
