"""Scores of CoAst's default and its neighbours, from the agreement of ballots that the training bank keeps.

The arithmetic is that of the product (`fedcoast.methods.coast.pair_credits`); only the counting of ballots is done
already. So a choice of options can be tried on all runs in seconds.
"""

from dataclasses import dataclass

import numpy as np

from fedcoast.methods.assessment import Assessment
from fedcoast.methods.coast.config import CoAstConfig
from fedcoast.methods.coast.pair_credits import PairCredits, PairTable
from fedcoast.methods.ledger import Credits, scaled, totals
from paper.bank import LAGS, BankRun

DEFAULT = CoAstConfig()


@dataclass(frozen=True)
class Candidate:
    """Options of CoAst that the bank can tell the scores of: all layers, and the share that the bank was made with."""

    horizon: int = DEFAULT.horizon
    past_weight: float = DEFAULT.past_weight
    line_weight: float = DEFAULT.line_weight

    def __post_init__(self) -> None:
        if not 1 <= self.horizon <= LAGS:
            raise ValueError(f"the bank keeps the agreement of up to {LAGS} rounds; got horizon={self.horizon}")


CANDIDATES: dict[str, Candidate] = {
    "CoAst, our default": Candidate(),
    "without the line (`line_weight=0`)": Candidate(line_weight=0),
    "line_weight=3": Candidate(line_weight=3),
    "line_weight=14": Candidate(line_weight=14),
    "past_weight=0": Candidate(past_weight=0),
    "past_weight=0.25": Candidate(past_weight=0.25),
    "past_weight=0.38": Candidate(past_weight=0.38),
    "past_weight=0.4": Candidate(past_weight=0.4),
    "past_weight=0.5": Candidate(past_weight=0.5),
    "past_weight=0.6": Candidate(past_weight=0.6),
    "past_weight=1": Candidate(past_weight=1),
    "horizon=2": Candidate(horizon=2),
    "horizon=5": Candidate(horizon=5),
    "plain lead, five rounds (`horizon=5, past_weight=1, line_weight=0`)": Candidate(5, 1.0, 0),
}


def answer(run: BankRun, candidate: Candidate) -> Assessment:
    """What CoAst answers about a run of the bank, up to one factor that all credits share."""
    total = run.agreement.sum(axis=0, dtype=np.int64)
    rounds, _, clients, _ = total.shape
    everyone, compared = tuple(range(clients)), ~np.eye(clients, dtype=bool)
    pairs = PairCredits(candidate.horizon, candidate.past_weight)
    credits: Credits = {}
    for number in range(rounds):
        pairs = pairs.with_round(number, everyone, 0)
        for lag in range(min(candidate.horizon, number), 0, -1):
            table = np.where(compared, total[number - lag, lag], 0)
            pairs = pairs.with_table(
                PairTable(number - lag, number, lag, everyone, everyone, table[np.newaxis], compared, votes=1)
            )
        if number >= candidate.horizon:
            credits[number - candidate.horizon] = pairs.credits(number - candidate.horizon)
            pairs = pairs.without(number - candidate.horizon)
    credits = scaled(credits, pairs.factors(candidate.line_weight))
    sums, scored = totals(credits, everyone)
    span = CoAstConfig(**vars(candidate)).dependence_span
    return Assessment(
        "coast",
        sums,
        credits,
        rounds_scored=scored,
        zero_is_idle=True,
        dependence_span=span,
        unordered=pairs.unordered(candidate.line_weight),
    )


def scores(run: BankRun, candidate: Candidate) -> list[float]:
    """The score of each client of a run of the bank."""
    of = answer(run, candidate).scores
    return [of[client] for client in range(run.experiment.clients)]
