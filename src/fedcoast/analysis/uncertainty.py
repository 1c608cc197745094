"""The uncertainty of an assessment: intervals, possible ranks, and ties."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from fedcoast.errors import BadSetting, Client
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.text import as_text
from fedcoast.rounds.clients import client_to_json
from fedcoast.stats import bootstrap, rank_inference
from fedcoast.stats.bootstrap import Bools, Floats

if TYPE_CHECKING:
    from rich.table import Table

FORMAT = "fedcoast-uncertainty"
VERSION = 1

METHOD_MARGIN = 2.0
"""By what factor comparisons are wider than the luck of the rounds, because the method errs too.

Whatever compares clients with each other or with zero uses it: joint ranges, ranks, groups, probabilities, verdicts and
ties. The interval of one client is about the luck of the rounds alone. Set so that equal clients are rarely told apart
(docs/default.md); `python -m paper.bank_claims` shows what it does to claims. 1.0 takes the method to be without error.
"""

DRAWS = 2000  # of the luck of the rounds

By = Literal["total", "mean", "adjusted-mean"]
Interval = tuple[float, float]


@dataclass(frozen=True)
class Uncertainty:
    """How much of an assessment is more than luck.

    An interval contains, with probability `level`, the score that the same federation would get on average if its
    rounds were repeated: the same clients with the same data, taking part in the same rounds. It says nothing about
    other data, or about whether the method measures what you want to pay for.

    clients           in the order of the ranking
    by                what is ranked, `values`: the "total"; the "mean" credit per round, which does not reward being
                      selected more often; or the "adjusted-mean", which does not reward the choice of rounds either
    intervals         of the totals, `mean_intervals` of the means, `adjusted_intervals` of the adjusted means; None for
                      a client with too few rounds, or (adjusted) one that shared too few rounds with the others
    joint_intervals   of the totals, for all clients at once: with probability `level` not one is wrong. Verdicts and
                      reports use these
    reach             how far apart the ranked values of two clients must be to tell them apart, all pairs at once:
                      `reach_factor` standard deviations of their difference; infinite where `unordered`
    rank_intervals    the best and the worst rank a client may really have, by `reach`
    prob_above        prob_above[i, j] is the probability that clients[i] really is above clients[j]; NaN if unknown
    unordered         unordered[i, j] is true where the method cannot tell the order of two clients at all
    groups            runs of the ranking: whoever cannot be told apart is in the same one; clients without an
                      interval are in none
    rounds_to_settle  for neighbours in the ranking: how many more rounds would probably tell them apart; 0 where
                      they are, infinity where they do not differ, None where nothing is known
    coverage          the share of the `rounds` valued that a client was seen in
    block             how many neighbouring rounds were drawn together
    rounds_needed     how many scored rounds the ranges need
    note              why nobody has an interval, if so
    """

    method: str
    level: float
    by: By
    clients: tuple[Client, ...]
    values: Mapping[Client, float]
    intervals: Mapping[Client, Interval | None]
    mean_intervals: Mapping[Client, Interval | None]
    adjusted_intervals: Mapping[Client, Interval | None]
    joint_intervals: Mapping[Client, Interval | None]
    rank_intervals: Mapping[Client, tuple[int, int]]
    reach: Floats = field(repr=False, compare=False)
    reach_factor: float
    prob_above: Floats = field(repr=False, compare=False)
    groups: tuple[tuple[Client, ...], ...]
    rounds_to_settle: Mapping[tuple[Client, Client], float | None]
    coverage: Mapping[Client, float]
    rounds: int
    block: int
    rounds_needed: int = 0
    note: str = ""
    luck: Floats = field(default_factory=lambda: np.empty((0, 0)), repr=False, compare=False)  # draws, by client
    unordered: Bools = field(default_factory=lambda: np.zeros((0, 0), bool), repr=False, compare=False)

    @property
    def of_values(self) -> Mapping[Client, Interval | None]:
        """The intervals of what is ranked."""
        return {"total": self.intervals, "mean": self.mean_intervals, "adjusted-mean": self.adjusted_intervals}[self.by]

    @property
    def unknown(self) -> tuple[Client, ...]:
        """The clients that were seen too rarely for an interval."""
        return tuple(client for client in self.clients if self.of_values[client] is None)

    def to_json(self) -> str:
        """Everything, clients in the order of the ranking; null where nothing is known, "never" for infinity."""
        places = {client: place for place, client in enumerate(self.clients)}
        rounds_to_settle = [self.rounds_to_settle[pair] for pair in pairwise(self.clients)]
        return json.dumps(
            {
                "format": FORMAT,
                "version": VERSION,
                "method": self.method,
                "level": self.level,
                "by": self.by,
                "rounds": self.rounds,
                "block": self.block,
                "note": self.note,
                "clients": [client_to_json(client) for client in self.clients],
                "intervals": [self.intervals[client] for client in self.clients],
                "mean_intervals": [self.mean_intervals[client] for client in self.clients],
                "adjusted_intervals": [self.adjusted_intervals[client] for client in self.clients],
                "joint_intervals": [self.joint_intervals[client] for client in self.clients],
                "rank_intervals": [self.rank_intervals[client] for client in self.clients],
                "coverage": [self.coverage[client] for client in self.clients],
                "groups": [[places[client] for client in group] for group in self.groups],
                "rounds_to_settle": ["never" if more == math.inf else more for more in rounds_to_settle],
                "above": [[None if math.isnan(p) else round(p, 4) for p in row] for row in self.prob_above.tolist()],
            },
            allow_nan=False,
        )

    def table(self) -> "Table":
        """The ranking with its uncertainty, for a terminal."""
        from fedcoast.analysis.uncertainty_table import table

        return table(self)

    def __rich__(self) -> "Table":
        return self.table()

    def __str__(self) -> str:
        return as_text(self)


def uncertainty(
    assessment: Assessment,
    level: float = 0.90,
    draws: int = DRAWS,
    seed: int = 0,
    by: By = "total",
    margin: float = METHOD_MARGIN,
) -> Uncertainty:
    """How sure an assessment is, from its credits per round (see `stats.bootstrap`).

    Neighbouring rounds are drawn together, at least so many that those further apart share no movement of the model
    (CoAst's default: five); the same seed gives the same answer.

    >>> from fedcoast import Assessment
    >>> credits = {n: {"ann": 5 + n % 3, "bob": 5 + n % 2, "cid": -1 + n % 2} for n in range(30)}
    >>> scores = {c: sum(of[c] for of in credits.values()) for c in ("ann", "bob", "cid")}
    >>> sure = uncertainty(Assessment("mine", scores, credits, rounds_scored=dict.fromkeys(scores, 30)))
    >>> sure.groups, sure.rank_intervals["cid"]
    ((('ann',), ('bob',), ('cid',)), (3, 3))
    """
    _check(level, draws, seed, by)
    ranking, numbers, reach = _ranking(assessment, by), assessment.counted, assessment.dependence_span
    table = assessment.credits_of(ranking)
    scores = np.array([assessment.scores[client] for client in ranking], dtype=np.float64)
    per_round = 1 / np.maximum([assessment.rounds_scored[client] for client in ranking], 1)
    block = bootstrap.block_length(len(numbers), reach)
    note = _why_not(assessment, len(numbers), block)
    nothing = np.full((draws, len(ranking)), np.nan)
    of_total = nothing if note else bootstrap.deviations(table, reach, draws, seed)
    adjusts = assessment.has_absences and not note
    of_level = of_total * per_round
    if adjusts:
        of_level = bootstrap.deviations(table, reach, draws, seed, adjusted=True)
    adjusted, half = assessment.adjusted_mean, bootstrap.half_widths(of_total, level)
    levels = np.nan_to_num([adjusted[client] for client in ranking])
    values = {"total": scores, "mean": scores * per_round, "adjusted-mean": levels}[by]
    luck = {"total": of_total, "mean": of_total * per_round, "adjusted-mean": of_level}[by]
    doubt = margin * luck
    unordered = _table(ranking, assessment.unordered)
    chances, needed, factor = rank_inference.comparisons(values, doubt, unordered, level)
    apart = np.abs(values[:, None] - values) > needed
    ranks = rank_inference.rank_bounds(values, needed)
    pair_level = 1 - (1 - level) / max(1, len(ranking) * (len(ranking) - 1) // 2)
    return Uncertainty(
        method=assessment.method,
        level=level,
        by=by,
        clients=ranking,
        values=dict(zip(ranking, values.tolist(), strict=True)),
        intervals=_intervals(ranking, scores, half),
        mean_intervals=_intervals(ranking, scores * per_round, half * per_round),
        adjusted_intervals=_intervals(ranking, levels, bootstrap.half_widths(of_level, level)),
        joint_intervals=_intervals(ranking, scores, bootstrap.joint_half_widths(margin * of_total, level)),
        reach=needed,
        reach_factor=factor,
        rank_intervals={client: (int(best), int(worst)) for client, (best, worst) in zip(ranking, ranks, strict=True)},
        prob_above=chances,
        groups=_groups(ranking, apart, ~np.isnan(luck[0])),
        rounds_to_settle=_rounds_to_settle(ranking, values, luck, apart, unordered, len(numbers), pair_level),
        coverage={client: assessment.rounds_scored[client] / max(1, len(numbers)) for client in ranking},
        rounds=len(numbers),
        block=block,
        rounds_needed=bootstrap.BLOCKS * block if assessment.additive else 0,
        note=note,
        luck=luck,
        unordered=unordered,
    )


def joint_ranges(assessment: Assessment, level: float = 0.90) -> dict[Client, Interval | None]:
    """`joint_intervals` alone: comparing every two clients takes most of the time where they are many."""
    ranking, rounds, reach = assessment.ranking, len(assessment.counted), assessment.dependence_span
    if _why_not(assessment, rounds, bootstrap.block_length(rounds, reach)):
        return dict.fromkeys(ranking)
    scores = np.array([assessment.scores[client] for client in ranking], dtype=np.float64)
    luck = METHOD_MARGIN * bootstrap.deviations(assessment.credits_of(ranking), reach, DRAWS, seed=0)
    return _intervals(ranking, scores, bootstrap.joint_half_widths(luck, level))


def _check(level: float, draws: int, seed: int, by: By) -> None:
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        hint = f" (did you mean {level / 100:.2f}?)" if isinstance(level, int | float) and 1 < level < 100 else ""
        raise BadSetting(f"level must lie between 0 and 1, how often an interval is to be right; got {level!r}{hint}")
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 100:
        raise BadSetting(f"draws must be an integer of at least 100; got {draws!r}")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise BadSetting(f"seed must be an integer of at least 0; got {seed!r}")
    if by not in get_args(By):
        raise BadSetting(f"by must be 'total', 'mean' or 'adjusted-mean', the number that ranks; got {by!r}")


def _ranking(assessment: Assessment, by: By) -> tuple[Client, ...]:
    if by == "total":
        return assessment.ranking
    values = assessment.mean if by == "mean" else assessment.adjusted_mean
    present = [client for client in assessment.clients if not math.isnan(values[client])]
    absent = [client for client in assessment.clients if math.isnan(values[client])]
    return (*sorted(present, key=lambda client: -values[client]), *absent)


def _why_not(assessment: Assessment, rounds: int, block: int) -> str:
    """Why no client has an interval; empty if some may."""
    if not assessment.additive:
        return f"no intervals: the scores of {assessment.method} are not sums of its credits"
    if rounds < bootstrap.BLOCKS * block:
        return f"no intervals: they need {bootstrap.BLOCKS * block} scored rounds or more; there are {rounds}"
    return ""


def _table(ranking: tuple[Client, ...], pairs: Iterable[tuple[Client, Client]]) -> Bools:
    """Which pairs of places of the ranking are among the pairs of clients."""
    places = {client: place for place, client in enumerate(ranking)}
    table = np.zeros((len(ranking), len(ranking)), bool)
    for one, other in pairs:
        table[places[one], places[other]] = table[places[other], places[one]] = True
    return table


def _intervals(ranking: tuple[Client, ...], values: Floats, half: Floats) -> dict[Client, Interval | None]:
    return {
        client: None if math.isnan(reach) else (value - reach, value + reach)
        for client, value, reach in zip(ranking, values.tolist(), half.tolist(), strict=True)
    }


def _groups(ranking: tuple[Client, ...], apart: Bools, known: Bools) -> tuple[tuple[Client, ...], ...]:
    places = np.flatnonzero(known)
    runs = rank_inference.groups(apart[np.ix_(places, places)])
    return tuple(tuple(ranking[places[place]] for place in run) for run in runs)


def _rounds_to_settle(
    ranking: tuple[Client, ...],
    values: Floats,
    luck: Floats,
    apart: Bools,
    unordered: Bools,
    rounds: int,
    level: float,
) -> dict[tuple[Client, Client], float | None]:
    rounds_to_settle: dict[tuple[Client, Client], float | None] = {}
    for place, pair in enumerate(pairwise(ranking)):
        spread = float(np.std(luck[:, place] - luck[:, place + 1]))
        lead = float(values[place] - values[place + 1])
        if math.isnan(spread):
            rounds_to_settle[pair] = None
        elif apart[place, place + 1]:
            rounds_to_settle[pair] = 0
        elif unordered[place, place + 1]:
            rounds_to_settle[pair] = math.inf
        else:  # the draws decide; the formula may be a round early
            rounds_to_settle[pair] = max(1.0, rank_inference.rounds_to_settle(lead, spread, rounds, level))
    return rounds_to_settle
