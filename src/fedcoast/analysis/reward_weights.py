"""From scores and their uncertainty to what is paid for: exact scores, fair scores for ties, ranges of the shares."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from fedcoast.analysis.uncertainty import By, Uncertainty
from fedcoast.errors import BadSetting, Client
from fedcoast.methods.assessment import Assessment
from fedcoast.stats.bootstrap import Floats

_SLACK = 1 + 1e-9  # rounding must not decide a tie


def share_option(option: str, value: float | str | Fraction) -> Fraction:
    try:
        share = value if isinstance(value, Fraction) else Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        share = Fraction(-1)
    if isinstance(value, bool) or not 0 <= share <= 1:
        raise BadSetting(f"{option} must lie between 0 and 1, the share of a client; got {value!r}")
    return share


def paid_scores(assessment: Assessment, by: By) -> dict[Client, Fraction]:
    """The exact scores; a client without a scored round has 0."""
    for client in assessment.clients:
        if not math.isfinite(assessment.scores[client]):
            raise BadSetting(f"scores must be finite to be paid for; client {client!r} has {assessment.scores[client]}")
    if by == "adjusted-mean":
        return _adjusted(assessment)
    scores = {client: Fraction(assessment.scores[client]) for client in assessment.clients}
    return scores if by == "total" else {c: score / max(1, assessment.rounds_scored[c]) for c, score in scores.items()}


def _adjusted(assessment: Assessment) -> dict[Client, Fraction]:
    if not assessment.additive:
        raise BadSetting(
            f"the scores of {assessment.method} are not sums of credits, so they cannot be adjusted for missed rounds;"
            " pay for the total"
        )
    if assessment.has_disconnected_clients:
        raise BadSetting(
            "some clients share no rounds, even indirectly, and cannot be compared. Pay for the total or the mean, or"
            " pay the connected clients apart"
        )
    return {client: Fraction(0 if math.isnan(level) else level) for client, level in assessment.adjusted_mean.items()}


def without(assessment: Assessment, clients: Collection[Client]) -> Assessment:
    """The same answer without some clients: their credits change nobody else's."""
    if not clients:
        return assessment
    left = {
        number: {client: credit for client, credit in of.items() if client not in clients}
        for number, of in assessment.credits.items()
    }
    return replace(
        assessment,
        scores={client: score for client, score in assessment.scores.items() if client not in clients},
        rounds_scored={client: count for client, count in assessment.rounds_scored.items() if client not in clients},
        credits=left,
    )


def fair_scores(scores: Mapping[Client, Fraction], paid: Sequence[Client], luck: Uncertainty) -> dict[Client, Fraction]:
    """For each paid client the middle of the paid scores that it cannot be told apart from.

    Two clients tie when they differ by no more than `Uncertainty.reach`, or than two clients as uncertain as this one
    may differ: a client with a certain score is not moved by one with an uncertain score. Clients whose order the
    method cannot tell tie as well. The middle is that of the highest and the lowest tied score, so that copies of a
    client move nobody's.
    """
    places = {client: place for place, client in enumerate(luck.clients)}
    spread = np.sqrt(np.mean(np.nan_to_num(luck.luck) ** 2, axis=0))
    unknown = np.asarray(np.isnan(luck.luck).any(axis=0))
    fair = {}
    for client in paid:
        place = places[client]
        own = np.inf if unknown[place] else luck.reach_factor * np.sqrt(2) * spread[place]
        tied = [scores[client]]
        for other in paid:
            between = min(float(luck.reach[place, places[other]]), own)
            if luck.unordered[place, places[other]] or abs(scores[client] - scores[other]) <= between * _SLACK:
                tied.append(scores[other])
        fair[client] = (max(tied) + min(tied)) / 2
    return fair


def share_ranges(
    shares: Mapping[Client, Fraction],
    paid: Sequence[Client],
    luck: Uncertainty,
    rule: str,
    temperature: float,
    bounds: Mapping[str, Fraction],
) -> dict[Client, tuple[float, float] | None]:
    """The shares that luck alone could have given each paid client, by the same rule without ties.

    A range always holds the share that is paid.
    """
    places = {client: place for place, client in enumerate(luck.clients)}
    columns = [places[client] for client in paid]
    values = np.array([luck.values[client] for client in paid])
    drawn = values + luck.luck[:, columns]
    known = np.asarray(~np.isnan(drawn).any(axis=0))
    weights = _drawn_weights(np.where(np.isnan(drawn), values, drawn), rule, temperature)
    total = weights.sum(axis=1, keepdims=True)
    drawn_shares = np.divide(weights, total, out=np.full(weights.shape, 1 / len(paid)), where=total > 0)
    drawn_shares = np.clip(drawn_shares, float(bounds["floor"]), float(bounds["cap"]))
    tail = (1 - luck.level) / 2
    low, high = np.quantile(drawn_shares, [tail, 1 - tail], axis=0)
    return {
        client: (min(float(low[at]), float(shares[client])), max(float(high[at]), float(shares[client])))
        if known[at]
        else (0.0, float(bounds["cap"]))
        for at, client in enumerate(paid)
    }


def _drawn_weights(drawn: Floats, rule: str, temperature: float) -> Floats:
    positive = np.maximum(drawn, 0)
    if rule == "proportional":
        return positive
    if rule == "rank":
        order = np.argsort(np.argsort(drawn, axis=1), axis=1)
        return np.asarray(order + 1.0)
    largest = np.maximum(positive.max(axis=1, keepdims=True), 1e-300)
    return np.asarray(np.exp(np.minimum(drawn / largest, 1) / temperature - 1 / temperature))
