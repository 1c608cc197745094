"""From a run to its account: every round shown once to all who are asked."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from fedcoast.analysis.health import Health
from fedcoast.analysis.rewards import Rewards, Rule, rewards
from fedcoast.analysis.uncertainty import By, certainty
from fedcoast.errors import BadSetting, Client
from fedcoast.methods import Assessor
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.comparison import Comparison, compare
from fedcoast.reports.layers import LayeredCoAst
from fedcoast.reports.report_data import ReportData, account
from fedcoast.rounds.round import Round
from fedcoast.rounds.unmoved import Shares


def survey(
    rounds: Iterable[Round],
    assessor: Assessor | None = None,
    others: Mapping[str, Assessor] | None = None,
    unmet: Mapping[str, str] | None = None,
    *,
    on_round: Callable[[Round], None] = lambda round: None,
    **told: Any,
) -> ReportData:
    """Show the rounds to an assessor (CoAst by default) and to others it is held against, and put all on record.

    `unmet` says of still others why they could not be asked; `told` is what `conclude` takes. The health of the model
    is known where the rounds carry it (`rounds.unmoved`); uploads are not read a second time for it.
    """
    chief = LayeredCoAst() if assessor is None else assessor
    comparison: Comparison | None = None
    shares: dict[int, Shares | None] = {}
    rounds = _noted(rounds, shares)
    if others or unmet:
        comparison = compare(rounds, {chief.method: chief, **(others or {})}, told.get("truth"), on_round=on_round)
        if chief.method in comparison.errors:
            raise BadSetting(f"{chief.method} has no answer: {comparison.errors[chief.method]}")
        comparison = replace(comparison, errors={**(unmet or {}), **comparison.errors})
    else:
        for round in rounds:
            chief.observe(round)
            on_round(round)
    told = {"health": Health(shares), **told}
    return conclude(chief.assessment(), assessor=chief, comparison=comparison, **told)


def _noted(rounds: Iterable[Round], shares: dict[int, Shares | None]) -> Iterator[Round]:
    for round in rounds:
        shares[round.number] = round.unmoved
        yield round


def conclude(
    assessment: Assessment,
    *,
    assessor: Assessor | None = None,
    level: float = 0.90,
    draws: int = 2000,
    budget: str | None = None,
    rule: Rule = "proportional",
    by: By = "total",
    truth: Mapping[Client, float] | None = None,
    **told: Any,
) -> ReportData:
    """All that can be said about an assessment: how sure it is, and what each would get, if anybody earned something.

    `by` is what the shares pay for; the ranking is by the scores. `told` is what `account` takes beyond that: a title,
    facts of the run, a comparison, the health of the model.
    """
    everyone = truth is not None and set(truth) == set(assessment.clients)
    return account(
        assessment,
        certainty=certainty(assessment, level, draws) if assessment.credits else None,
        layers=assessor.by_layer() if isinstance(assessor, LayeredCoAst) else None,
        rewards=_earned(assessment, budget, rule, by),
        truth=truth if everyone else None,
        **told,
    )


def _earned(assessment: Assessment, budget: str | None, rule: Rule, by: By) -> Rewards | None:
    if budget is None and not any(score > 0 for score in assessment.scores.values()):
        return None
    return rewards(assessment, budget, rule, by=by)
