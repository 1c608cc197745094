"""From the rounds of a run to its report: every round is shown once to every assessor."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from fedcoast.analysis.behaviour import Behaviour
from fedcoast.analysis.disagreement import Disagreement
from fedcoast.analysis.flags import flags_of
from fedcoast.analysis.health import Health
from fedcoast.analysis.rewards import Rewards, Rule, rewards
from fedcoast.analysis.uncertainty import By, uncertainty
from fedcoast.errors import BadSetting, Client
from fedcoast.methods import Assessor, CoAst
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.comparison import Comparison, compare
from fedcoast.reports.report_data import ReportData, report_data
from fedcoast.rounds.round import Round
from fedcoast.rounds.unmoved import Shares


def assess_rounds(
    rounds: Iterable[Round],
    assessor: Assessor | None = None,
    others: Mapping[str, Assessor] | None = None,
    unavailable: Mapping[str, str] | None = None,
    *,
    on_round: Callable[[Round], None] = lambda fl_round: None,
    **details: Any,
) -> ReportData:
    """Show the rounds to an assessor (CoAst by default) and to the `others` it is compared with; report on all.

    `unavailable` has the methods that could not run, with the reason; `details` are passed on to `build_report`. The
    health of the model is known where the rounds carry it (`rounds.unmoved`). For flags the uploads are read once more.
    """
    main = CoAst(track_layers=True) if assessor is None else assessor
    comparison: Comparison | None = None
    shares: dict[int, Shares | None] = {}
    accuracy: dict[int, float] = {}
    behaviour, disagreement = Behaviour(), Disagreement()
    rounds = _noted(rounds, shares, accuracy, behaviour, disagreement)
    if others or unavailable:
        comparison = compare(rounds, {main.method: main, **(others or {})}, details.get("truth"), on_round=on_round)
        if main.method in comparison.errors:
            raise BadSetting(f"{main.method} has no answer: {comparison.errors[main.method]}")
        comparison = replace(comparison, errors={**(unavailable or {}), **comparison.errors})
    else:
        for fl_round in rounds:
            main.observe(fl_round)
            on_round(fl_round)
    details = {
        "health": Health(shares),
        "accuracy": accuracy,
        "update_agreement": disagreement.summary(),
        "flags": tuple(flags_of(behaviour)),
        **details,
    }
    return build_report(main.assessment(), comparison=comparison, **details)


def _noted(
    rounds: Iterable[Round],
    shares: dict[int, Shares | None],
    accuracy: dict[int, float],
    behaviour: Behaviour,
    disagreement: Disagreement,
) -> Iterator[Round]:
    for fl_round in rounds:
        shares[fl_round.number] = fl_round.unmoved
        if (value := accuracy_in(fl_round)) is not None:
            accuracy[fl_round.number] = value
        disagreement.observe(fl_round)
        yield fl_round
        behaviour.observe(fl_round)  # after the assessor, which refuses what is no round


def accuracy_in(fl_round: Round) -> float | None:
    """The accuracy that the server noted for a round: its first metric whose name speaks of accuracy."""
    return next((value for name, value in fl_round.metrics.items() if "accuracy" in name.lower()), None)


def build_report(
    assessment: Assessment,
    *,
    level: float = 0.90,
    draws: int = 2000,
    budget: str | None = None,
    rule: Rule = "proportional",
    by: By = "total",
    force: bool = False,
    truth: Mapping[Client, float] | None = None,
    **details: Any,
) -> ReportData:
    """A report on an assessment: how certain it is, and what each client would be paid if anybody earned something.

    `by` is what the shares pay for; the ranking is by the scores. `details` are passed on to `report_data`: a title,
    facts of the run, a comparison, the health of the model.
    """
    everyone = truth is not None and set(truth) == set(assessment.clients)
    data = report_data(
        assessment,
        uncertainty=uncertainty(assessment, level, draws) if assessment.credits else None,
        layers=assessment.by_layer,
        rewards=_earned(assessment, budget, rule, by, level=level, draws=draws, force=force),
        truth=truth if everyone else None,
        **details,
    )
    chosen = {"level": level, "draws": draws, "budget": budget, "rule": rule, "by": by, "force": force}
    return replace(data, options=chosen)  # all of them, so that `fedcoast verify` can make the report again


def _earned(assessment: Assessment, budget: str | None, rule: Rule, by: By, **options: Any) -> Rewards | None:
    """Shares, where they are asked for or certain enough to show."""
    try:
        return rewards(assessment, budget, rule, by=by, **options)
    except BadSetting:
        if budget is not None:
            raise
        return None
