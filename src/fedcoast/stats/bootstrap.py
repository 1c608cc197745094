"""How certain a score is: what chance alone does to a stream of credits.

A table of credits has a row for each round and a column for each client, NaN where a client was not seen. The model:

    c_i^t = μ_i(t) + ε_i^t

μ_i is what the client's credit is on average in that phase of training: a slow trend, since credits shrink as a model
converges. ε is the luck of the round (batches, samples drawn, noise). Neighbouring rounds share their future, so ε may
be correlated up to `horizon` rounds apart; beyond that it is taken to be independent. What an interval covers is

    Σ_t μ_i(t)  over the rounds the client was seen in:

the total the same federation would have had on average, had the luck been drawn anew. The total itself is its estimate;
only the spread of ε has to be found:

1. take the trend off (`trend`): a few terms in the logarithm of the round, fitted to each client;
2. draw the residuals anew in circular blocks of neighbouring rounds, the same for all clients, so that what clients
   share in a round stays shared (block bootstrap; Künsch 1989, Politis and Romano 1992);
3. widen the draws by what fitting a trend and cutting blocks are known to take from the spread, and by the doubt about
   the spread itself (`calibration`).

Without step 1 the trend counts as luck, and the intervals of real runs come out several times too wide. Where luck
lasts longer than the horizon, they are too narrow. docs/certainty.md has the coverage that was measured.
"""

from math import cbrt, ceil

import numpy as np
from numpy.typing import NDArray

from fedcoast.stats.participation_adjustment import comparable, effective_rounds, parts

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Places = NDArray[np.intp]

TERMS = 5  # of a trend; with fewer, the bend of a real training curve is left over
BLOCKS = 3  # that a client must be seen in
LEAST_DEGREES = 2.0  # of freedom, below which a spread says nothing about itself
PATTERNS = 8  # of being seen that are calibrated exactly; those between are interpolated
ROUNDING = 1e-12  # of its credits, is all that a client without luck has left
CHUNK = 250  # draws at a time


def block_length(rounds: int, horizon: int) -> int:
    """max(horizon + 1, n^(1/3)): long enough for what neighbours share, and growing as theory wants it to.

    >>> block_length(40, horizon=2), block_length(1000, horizon=2)
    (3, 10)
    """
    return max(horizon + 1, round(cbrt(rounds)))


def blocks_seen(places: Places, rounds: int, length: int) -> int:
    """In how many blocks of rounds a client was seen; never more than there are whole ones.

    >>> blocks_seen(np.arange(11), rounds=11, length=3), blocks_seen(np.array([0, 1, 9]), rounds=11, length=3)
    (3, 2)
    """
    return min(rounds // length, len(np.unique(places // length)))


def trend(places: Places, rounds: int, length: int) -> Floats:
    """An orthonormal basis of the slow trends, at the rounds a client was seen in.

    Polynomials in log(t + 1), t = 1, …, n: training moves fast at first and slower and slower. Up to five terms, and
    always fewer than there are blocks' worth of credits to fit them to.

    >>> trend(np.arange(40), rounds=40, length=3).shape, trend(np.arange(9), rounds=9, length=3).shape
    ((40, 5), (9, 2))
    """
    terms = max(1, min(TERMS, len(places) // length - 1))
    last = np.log(rounds + 1) - np.log(2)
    phase = 2 * (np.log(places + 2) - np.log(2)) / max(last, 1e-12) - 1
    basis, _ = np.linalg.qr(np.polynomial.legendre.legvander(phase, terms - 1))
    return np.asarray(basis)


def residuals(credits: Floats, length: int) -> Floats:
    """ε̂: the credits less each client's own trend; 0 where a client was not seen.

    >>> rounds = np.arange(1, 31.0)
    >>> float(abs(residuals(np.log(rounds + 1)[:, None], length=3)).max()) < 1e-9
    True
    """
    left = np.zeros(credits.shape)
    for places, columns in _patterns(~np.isnan(credits)):
        if not len(places):
            continue
        own = credits[np.ix_(places, columns)]
        basis = trend(places, len(credits), length)
        rest = own - basis @ (basis.T @ own)
        rounding = np.abs(rest).max(axis=0) <= ROUNDING * np.abs(own).max(axis=0)
        left[np.ix_(places, columns)] = np.where(rounding, 0, rest)
    return left


def correlations(left: Floats, present: Bools, length: int, horizon: int) -> Floats:
    """The correlation of the luck of rounds 0, 1, …, `horizon` apart: ρ̂_k, the same for all clients.

    Residues are paler than the luck they come from, by an amount that is known: E[ε̂ε̂ᵀ] = M·E[εεᵀ]·M, where
    M = I − QQᵀ and Q is the trend. Its diagonals are linear in the ρ_k, and are solved for them. What comes out lies
    between 0 and 1 − k/(horizon + 1), the most that rounds can share which see horizon + 1 rounds each.

    >>> noise = np.random.default_rng(0).normal(size=(402, 5))
    >>> moving = noise[2:] + noise[1:-1] + noise[:-2]  # ρ = 1, 2/3, 1/3
    >>> correlations(residuals(moving, 7), ~np.isnan(moving), 7, horizon=2).round(2).tolist()
    [1.0, 0.65, 0.33]
    """
    most = 1 - np.arange(horizon + 1) / (horizon + 1)
    lags = range(min(horizon, len(left) - 1) + 1)
    spread = np.sqrt((left**2).sum(axis=0) / np.maximum(present.sum(axis=0), 1))
    usable = spread > 0
    if not usable.any():
        return np.where(np.arange(horizon + 1) == 0, 1.0, 0.0)
    scaled, usable_present = left[:, usable] / spread[usable], present[:, usable]
    found = np.array([_lagged(scaled, lag) / max(1, _lagged(usable_present.astype(np.float64), lag)) for lag in lags])
    gaps = _gaps(np.arange(len(left)))
    basis = trend(np.arange(len(left)), len(left), length)
    paled = np.empty((len(lags), len(lags)))
    for lag in lags:
        without_trend = _less_trend(np.where(gaps == lag, 1.0, 0.0), basis)
        paled[:, lag] = [np.diagonal(without_trend, other).mean() for other in lags]
    luck = np.linalg.lstsq(paled, found)[0]
    result = np.zeros(horizon + 1)
    result[: len(lags)] = luck / luck[0] if luck[0] > 0 else np.equal(lags, 0)
    return np.clip(result, 0, most)


def calibration(places: Places, rounds: int, length: int, alike: Floats) -> tuple[float, float]:
    """What share of the variance of a total the blocks of residuals show, and how many degrees of freedom it has.

    Blocks drawn from ε̂ = Mε vary by ε̂ᵀBε̂, B_st = 1 − |s−t|/length around the circle of rounds. With luck correlated
    as `alike` says, Γ, a total varies by 1ᵀΓ1, and ε̂ᵀBε̂ is tr(AΓ), A = MBM, on average; as if it had
    tr(AΓ)² / tr(AΓAΓ) degrees of freedom (Satterthwaite 1946).

    >>> share, degrees = calibration(np.arange(40), rounds=40, length=3, alike=np.ones(1))
    >>> round(share, 2), round(degrees, 1)
    (0.69, 15.7)
    """
    gaps = _gaps(places)
    blocks = np.maximum(1 - np.minimum(gaps, rounds - gaps) / length, 0)
    luck = np.append(alike, 0.0)[np.minimum(gaps, len(alike))]
    product = _less_trend(blocks, trend(places, rounds, length)) @ luck
    shown = float(np.trace(product))
    return shown / float(luck.sum()), shown**2 / max(float((product * product.T).sum()), 1e-300)


def deviations(credits: Floats, horizon: int, draws: int, seed: int, adjusted: bool = False) -> Floats:
    """What luck might have added to each client's total: a row for each draw; NaN for clients seen too rarely to tell.

    Too rarely is in fewer than three blocks of rounds, or with fewer than two degrees of freedom left. `adjusted` asks
    for the deviations of adjusted means (`stats.participation_adjustment`), to which the luck of other clients adds.
    They are NaN also for clients whose adjusted mean rests on too few rounds, or that share no rounds with most others.

    >>> table = np.random.default_rng(0).normal(size=(900, 2))
    >>> deviations(table, horizon=2, draws=4000, seed=0).std(axis=0).round(-1).tolist()  # √900 = 30
    [30.0, 30.0]
    """
    rounds, length = len(credits), block_length(len(credits), horizon)
    present = ~np.isnan(credits)
    if rounds < BLOCKS * length or not present.any():
        return np.full((draws, credits.shape[1]), np.nan)
    unit = float(np.nanmax(np.abs(credits))) or 1.0  # squares of huge credits must stay numbers
    left = residuals(credits / unit, length)
    share, degrees = _calibrations(present, length, correlations(left, present, length, horizon))
    known = ~np.isnan(share)
    rng = np.random.default_rng(seed)
    doubt = rng.normal(size=(draws, 1))
    count = ceil(rounds / length)
    usual = float(np.median(share[known])) if known.any() else 1.0
    left *= unit * np.sqrt(rounds / (count * length) / np.where(known, share, usual))
    if adjusted:
        left = parts(np.where(present, left, np.nan))
        left -= left.mean(axis=0)
        degrees = np.minimum(degrees, effective_rounds(present))
        known &= comparable(present) & (degrees >= LEAST_DEGREES)
    left[:, ~known] = np.nan
    result = np.empty((draws, credits.shape[1]))
    for first in range(0, draws, CHUNK):
        part = slice(first, min(draws, first + CHUNK))
        result[part] = _times_drawn(rng, part.stop - first, rounds, length) @ left
        result[part] *= _doubt(doubt[part], degrees)
    return result


def half_widths(luck: Floats, level: float) -> Floats:
    """Half the width of each client's interval: `level` of the draws lie within. NaN where nothing is known.

    Symmetric: too few rounds are seen to know which way luck is skewed, and symmetric intervals err less (Hall 1988).

    >>> half_widths(np.array([[-1.0, np.nan], [2.0, np.nan], [-3.0, np.nan], [0.0, np.nan]]), 1.0).tolist()
    [3.0, nan]
    """
    known = ~np.isnan(luck).any(axis=0)
    widths = np.full(luck.shape[1], np.nan)
    widths[known] = np.quantile(np.abs(luck[:, known]), level, axis=0)
    return widths


def _patterns(present: Bools) -> list[tuple[Places, Places]]:
    """Clients that were seen in the same rounds, together: the rounds, and the clients."""
    columns: dict[bytes, list[int]] = {}
    for column, pattern in enumerate(np.packbits(present, axis=0).T):
        columns.setdefault(pattern.tobytes(), []).append(column)
    return [(np.flatnonzero(present[:, of[0]]), np.array(of, dtype=np.intp)) for of in columns.values()]


def _calibrations(present: Bools, length: int, alike: Floats) -> tuple[Floats, Floats]:
    """The calibration of each client; NaN for those seen too rarely."""
    rounds = len(present)
    patterns = [p for p in _patterns(present) if blocks_seen(p[0], rounds, length) >= BLOCKS]
    patterns.sort(key=lambda pattern: len(pattern[0]))
    share, degrees = np.full((2, present.shape[1]), np.nan)
    if not patterns:
        return share, degrees
    picked = sorted({round(place) for place in np.linspace(0, len(patterns) - 1, PATTERNS)})
    exact = [calibration(patterns[place][0], rounds, length, alike) for place in picked]
    for place, (_, columns) in enumerate(patterns):
        share[columns] = np.interp(place, picked, [one[0] for one in exact])
        degrees[columns] = np.interp(place, picked, [one[1] for one in exact])
    share[~((degrees >= LEAST_DEGREES) & (share > 0))] = np.nan
    return share, degrees


def _doubt(normal: Floats, degrees: Floats) -> Floats:
    """√(ν/χ²_ν), which turns normal draws into draws of Student's t; χ² by Wilson and Hilferty's cube (1931)."""
    part = 2 / (9 * np.maximum(degrees, LEAST_DEGREES))
    return np.asarray(np.maximum(1 - part + normal * np.sqrt(part), 0.1) ** -1.5)


def _times_drawn(rng: np.random.Generator, draws: int, rounds: int, length: int) -> Floats:
    """How often each draw has each round: blocks around the circle of rounds, as many as cover all."""
    starts = rng.integers(rounds, size=(draws, ceil(rounds / length), 1))
    picked = (starts + np.arange(length)) % rounds + rounds * np.arange(draws)[:, None, None]
    return np.bincount(picked.ravel(), minlength=draws * rounds).reshape(draws, rounds).astype(np.float64)


def _less_trend(table: Floats, basis: Floats) -> Floats:
    """M·table·M with M = I − QQᵀ, for a symmetric table."""
    half = table - basis @ (basis.T @ table)
    return np.asarray(half - (half @ basis) @ basis.T)


def _gaps(places: Places) -> Places:
    return np.asarray(np.abs(places[:, None] - places))


def _lagged(table: Floats, lag: int) -> float:
    return float((table[: len(table) - lag] * table[lag:]).sum())


def joint_half_widths(luck: Floats, level: float) -> Floats:
    """Half the width of intervals that hold for all clients at once: in `level` of the draws no client is outside.

    c·σ_i with one c for all clients, the `level` quantile of the largest |luck_i| / σ_i of a draw.

    >>> noise = np.random.default_rng(0).normal(size=(4000, 10))
    >>> float(half_widths(noise, 0.9).mean().round(1)), float(joint_half_widths(noise, 0.9).mean().round(1))
    (1.6, 2.6)
    """
    known = ~np.isnan(luck).any(axis=0)
    widths = np.full(luck.shape[1], np.nan)
    spread = np.sqrt(np.mean(luck[:, known] ** 2, axis=0))
    scaled = np.divide(np.abs(luck[:, known]), spread, out=np.zeros(luck[:, known].shape), where=spread > 0)
    widths[known] = np.quantile(scaled.max(axis=1, initial=0), level) * spread if known.any() else 0.0
    return widths
