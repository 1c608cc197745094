"""Clients that lie along a line: how to find the line from their pairwise agreement, and what a place on it means.

    A[i, j]   how well client i agrees with where client j goes next, mean over the rounds; self left out
    S         the symmetric part of A
    q         the factor that fits S[i, j] ≈ q_i · q_j best: what all clients share
    R         S − q qᵀ: what is left. Neighbours on a line agree more than q says, its two ends less
    x         the leading eigenvector of R, centred: the client's place on the line
    misfit    Σ R² / Σ S²: how much of the agreement the line explains, as far as two halves of the rounds show it alike
    f         how well each client agrees with the others' next rounds: the mean over j of A[i, j]
    f − p     its lead: the same, less how well it agrees with the others' last rounds, the mean over j of A[j, i]

Agreement alone ranks clients that differ in how clearly they show one direction. Where they differ in the direction
itself (sharp and blurred images), it favours whoever is in the middle. The line tells them apart.

The better end of the line is the one that agrees more, where f changes clearly along the line (noise, wrong labels).
Where it does not (blurred and masked images), the better end is the one that leads.

The line does not order everyone. Two clients at about the same place on it may be in either order, and where neither
end clearly leads, nobody's order is known: `ClientLine.unordered`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LARGEST_FACTOR = 8.0  # and its inverse the smallest: an odd client alone must not decide everybody's score
STEPS = 200  # of the fit of q, which converges geometrically
CLEAR_LINE = 0.02  # misfit from which the order of the clients rests on the line
SAME_PLACE = 0.2  # standard deviations along the line
CLEAR_CHANGE = 0.1  # of agreement along the line, in shares of its mean for each standard deviation: it decides the end
CLEAR_LEAD = 0.02  # the same of the lead, below which neither end is clearly better


@dataclass(frozen=True)
class AgreementSums:
    """Sums over rounds: weighted agreement of client i with client j's next ballots, and the weights."""

    weighted: Floats
    weights: Floats

    def __add__(self, other: "AgreementSums") -> "AgreementSums":
        return AgreementSums(self.weighted + other.weighted, self.weights + other.weights)

    @property
    def mean(self) -> Floats:
        """A; NaN for pairs that were never compared."""
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Floats = np.where(self.weights > 0, self.weighted / self.weights, np.nan)
        return found


@dataclass(frozen=True)
class ClientLine:
    """Where the clients lie along a line.

    place      of each client, towards the better end, with a standard deviation of 1; NaN for idle clients
    misfit     how much of the agreement the line explains; not above 0 where there is no line
    clear_end  whether one end is clearly better, in both halves of the rounds alike
    """

    place: Floats
    misfit: float
    clear_end: bool

    def factors(self, line_weight: float) -> Floats:
        """What each client's credits are multiplied by: above 1 towards the better end; 1 where there is no line."""
        if self.misfit <= 0:
            return np.ones(len(self.place))
        most = math.log(LARGEST_FACTOR)
        return np.exp(np.clip(line_weight * self.misfit * np.nan_to_num(self.place), -most, most))

    @property
    def unordered(self) -> NDArray[np.bool]:
        """The pairs whose order is not known: at the same place on a clear line, or all if neither end is better."""
        on_line = ~np.isnan(self.place)
        pairs = on_line[:, np.newaxis] & on_line & ~np.eye(len(on_line), dtype=bool)
        if self.misfit < CLEAR_LINE:
            return np.zeros_like(pairs)
        if not self.clear_end:
            return pairs
        places = np.nan_to_num(self.place)
        same: NDArray[np.bool] = pairs & (np.abs(places[:, np.newaxis] - places) < SAME_PLACE)
        return same


def client_line(halves: Sequence[AgreementSums]) -> ClientLine:
    """Find the line of the clients and its better end.

    `halves` are the sums of every other round and of the rest: only a misfit that shows in both halves alike counts,
    so that luck does not make a line.
    """
    total = halves[0] + halves[1]
    place = np.full(len(total.weights), np.nan)
    active = np.flatnonzero((total.weighted != 0).any(axis=0) | (total.weighted != 0).any(axis=1))
    among = np.ix_(active, active)  # an idle client agrees with nobody, and has no place on a line
    halves = [AgreementSums(half.weighted[among], half.weights[among]) for half in halves]
    total = halves[0] + halves[1]
    found, misfit = _line(halves, total)
    quality = _row_means if abs(_change(_row_means, total, found)) > CLEAR_CHANGE else _lead
    change, *changes = (_change(quality, part, found) for part in (total, *halves))
    place[active] = np.sign(change) * found
    return ClientLine(place, misfit, abs(change) >= CLEAR_LEAD and min(one * change for one in changes) > 0)


def _change(quality: Callable[[Floats], Floats], sums: AgreementSums, place: Floats) -> float:
    """How much a quality of the clients changes along the line, in shares of the mean agreement."""
    agreement = abs(float(_row_means(sums.mean).sum()))
    return float(place @ quality(sums.mean)) / agreement if agreement else 0.0


def _lead(agreement: Floats) -> Floats:
    """How much better each client agrees with the others' next rounds than with their last ones."""
    lead: Floats = _row_means(agreement) - _row_means(agreement.T)
    return lead


def _line(halves: Sequence[AgreementSums], total: AgreementSums) -> tuple[Floats, float]:
    """The place of each client on the line, with a standard deviation of 1, and the misfit; 0 where there is no line.

    Three clients fit one factor exactly, so that they have no line.
    """
    nowhere = np.zeros(len(total.weights)), 0.0
    if len(total.weights) < 4:
        return nowhere
    symmetric, known = _symmetric(total.mean)
    if not known.any() or symmetric[known].mean() <= 0:
        return nowhere
    left = _residual(symmetric, known)
    place = np.linalg.eigh(left)[1][:, -1]
    place = place - place.mean()
    size = float(np.sqrt((place**2).mean()))
    parts = [_symmetric(half.mean) for half in halves]
    known = parts[0][1] & parts[1][1]
    if size == 0 or not known.any() or any(part[known].mean() <= 0 for part, _ in parts):
        return nowhere
    one, other = (_residual(part, known) for part, _ in parts)
    sizes = [float((part[known] ** 2).sum()) for part, _ in parts]
    return place / size, float((one * other)[known].sum()) / math.sqrt(sizes[0] * sizes[1])


def _symmetric(agreement: Floats) -> tuple[Floats, NDArray[np.bool]]:
    """The mean of A[i, j] and A[j, i], and where it is known; zero where it is not, and for a client with itself."""
    stacked = np.stack([agreement, agreement.T])
    counted = (~np.isnan(stacked)).sum(axis=0)
    np.fill_diagonal(counted, 0)
    known = counted > 0
    return np.where(known, np.nan_to_num(stacked).sum(axis=0) / np.maximum(counted, 1), 0.0), known


def _residual(symmetric: Floats, known: NDArray[np.bool]) -> Floats:
    """R: what one shared factor leaves, zero where nothing is known."""
    factor = shared_factor(symmetric, known)
    return np.where(known, symmetric - np.outer(factor, factor), 0.0)


def shared_factor(symmetric: Floats, known: NDArray[np.bool]) -> Floats:
    """The q of the best fit S[i, j] ≈ q_i · q_j over the known pairs, by damped fixed-point steps.

    >>> q = np.array([3.0, 2.0, 1.0, 0.5])
    >>> others = ~np.eye(4, dtype=bool)
    >>> shared_factor(np.where(others, np.outer(q, q), 0), others).round(6).tolist()
    [3.0, 2.0, 1.0, 0.5]
    """
    pairs = np.where(known, symmetric, 0.0)
    factor = np.full(len(pairs), np.sqrt(max(float(pairs[known].mean()), 0.0)))
    for _ in range(STEPS):
        squares = known @ (factor * factor)
        wanted = np.divide(pairs @ factor, squares, out=factor.copy(), where=squares > 0)
        factor = (factor + wanted) / 2
    return factor


def _row_means(agreement: Floats) -> Floats:
    others = ~np.isnan(agreement)
    np.fill_diagonal(others, False)
    means: Floats = np.where(others, np.nan_to_num(agreement), 0).sum(axis=1) / np.maximum(others.sum(axis=1), 1)
    return means
