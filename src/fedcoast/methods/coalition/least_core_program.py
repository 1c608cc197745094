"""The least core: payments with which no coalition would much rather go its own way (Yan, Procaccia, AAAI 2021).

    minimise e  subject to  Σ_i x_i = v(N),  Σ_{i∈S} x_i + e ≥ v(S)  for every S but ∅ and N

The linear programme has many solutions; the one of smallest ‖x‖₂ is taken (the egalitarian least core), so the
answer does not depend on the solver.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedcoast.errors import BadSetting, require
from fedcoast.methods.coalition.games import Values, everyone, members

_SLACK = 1e-11  # of the largest worth: rounding that must not make the solutions' polyhedron empty


def least_core(worths: Mapping[int, float], players: int, *, normalise: bool = True) -> tuple[Values, float]:
    """The payments x and the subsidy e, from all coalitions' worths or a sample of them; ∅ and N must be among them.

    `normalise` takes v(∅) off every worth first, which the theory assumes to be 0.

    >>> x, e = least_core({0: 0.0, 1: 1.0, 2: 1.5, 3: 4.0}, 2)
    >>> x.round(6).tolist(), round(e, 6)
    ([1.75, 2.25], -0.75)
    """
    empty = worths[0] if normalise else 0.0
    total = worths[everyone(players)] - empty
    if players == 1:
        return np.array([total]), 0.0
    coalitions = sorted(coalition for coalition in worths if 0 < coalition < everyone(players))
    sides = np.zeros((len(coalitions), players))
    for row, coalition in enumerate(coalitions):
        sides[row, members(coalition)] = 1
    claims = np.array([worths[coalition] - empty for coalition in coalitions])
    scale = max(abs(total), float(np.abs(claims).max(initial=0.0)))
    if scale == 0:
        return np.zeros(players), 0.0
    # The solver's tolerances are absolute: gains of 1e-7 must not look like nothing to it.
    payments, subsidy = _solve(sides, claims / scale, total / scale)
    return payments * scale, subsidy * scale


def _solve(sides: NDArray[np.float64], claims: NDArray[np.float64], total: float) -> tuple[Values, float]:
    optimize = require("scipy.optimize", extra="methods")
    players = sides.shape[1]
    answer = None
    if len(sides):
        answer = optimize.linprog(
            [0.0] * players + [1.0],
            A_ub=-np.column_stack([sides, np.ones(len(sides))]),
            b_ub=-claims,
            A_eq=[[1.0] * players + [0.0]],
            b_eq=[total],
            bounds=(None, None),
            method="highs",
        )
    if answer is None or answer.status != 0:
        unconstrained = [player for player in range(players) if not sides[:, player].any()]
        unbounded = answer is None or answer.status in (3, 4)  # by the solver's own numbers
        why = "they leave some payments free" if unbounded else f"the solver stopped ({answer})"
        which = f"no coalition has player {unconstrained[0]}" if unconstrained else why
        raise BadSetting(
            f"the least core has no bound on these {len(sides)} coalitions of {players} players: {which}."
            " Sample more coalitions; with each player alone among them there is always a bound"
        )
    subsidy = float(answer.fun)
    # What is tight in one dual solution is tight in every primal one: these equations are the face of solutions.
    tight = answer.ineqlin.marginals < -1e-9
    equations = np.vstack([np.ones(players), sides[tight]])
    centre = np.linalg.lstsq(equations, np.append(total, claims[tight] - subsidy))[0]
    return _nearest_to_zero(optimize, centre, equations, sides, claims - subsidy, answer.x[:-1]), subsidy


def _nearest_to_zero(
    optimize: Any, centre: Values, equations: Values, sides: Values, claims: Values, fallback: Values
) -> Values:
    """The smallest x with equations·x = equations·centre and sides·x ≥ claims.

    Least-distance programming (Lawson, Hanson, "Solving Least Squares Problems", chapter 23): along the free directions
    it is one non-negative least-squares problem.
    """
    _, sizes, directions = np.linalg.svd(equations)
    free = directions[int((sizes > 1e-9).sum()) :].T
    slopes, gaps = sides @ free, claims - sides @ centre - _SLACK
    binding = np.linalg.norm(slopes, axis=1) > 1e-9
    slopes, gaps = slopes[binding], gaps[binding]
    if not (gaps > 0).any():
        return centre
    system = np.vstack([slopes.T, gaps])
    target = np.append(np.zeros(free.shape[1]), 1.0)
    residual = system @ optimize.nnls(system, target)[0] - target
    if residual[-1] > -1e-9:
        return fallback  # a polyhedron so thin that rounding emptied it: any of its points will do
    return np.asarray(centre - free @ (residual[:-1] / residual[-1]))
