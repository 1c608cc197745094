"""Everything a report shows, as one record of plain data without markup."""

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from fedcoast.analysis.disagreement import UpdateAgreement
from fedcoast.analysis.flags import Flag
from fedcoast.analysis.health import Health
from fedcoast.analysis.rewards import Rewards
from fedcoast.analysis.uncertainty import Interval, Uncertainty
from fedcoast.analysis.verdicts import Verdict, blind_spots, too_early, verdicts
from fedcoast.errors import Client
from fedcoast.methods import METHODS
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.comparison import Comparison
from fedcoast.methods.layer_credits import LayerCredits
from fedcoast.methods.text import printable
from fedcoast.reports.overview import Floats
from fedcoast.stats.ranking import paper_ranks


@dataclass(frozen=True)
class ClientSummary:
    """The results of one client; unknown values are None.

    `adjusted_mean` is the mean credit as if every client had been in every round; None where everybody was.
    `interval` holds for all clients at once. `verdict` is the one rule of `analysis.verdicts`; None where zero does not
    stand for doing nothing.
    """

    client: Client
    rank: int
    score: float
    mean: float | None
    rounds_scored: int
    coverage: float | None = None
    verdict: Verdict | None = None
    interval: Interval | None = None
    mean_interval: Interval | None = None
    adjusted_mean: float | None = None
    adjusted_interval: Interval | None = None
    ranks: tuple[int, int] | None = None
    group: int | None = None
    share: float | None = None
    cents: int | None = None
    true_rank: int | None = None
    quarantined: int = 0

    @property
    def name(self) -> str:
        """As one line can show it, control characters escaped; a number, and nothing, said to be a client's."""
        return printable(self.client) if self.client and isinstance(self.client, str) else f"client {self.client!r}"


@dataclass(frozen=True)
class ReportData:
    """An assessment with all that is known about it, the best client first.

    `credits` has a row for each client and a column for each of `rounds`, NaN where the client was absent.
    `prob_above` is the probability that the row is really above the column, NaN where nothing is known. `groups` are
    the places that cannot be told apart, `rounds_to_settle` the rounds that would tell each place from the next, and
    `range_note` says why there are no intervals, if there are none. `health` is how much of the model still moves.
    `zero_is_idle` says whether a client that does nothing scores 0, `additive` whether scores are sums of credits.
    """

    title: str
    assessment: Assessment
    summaries: tuple[ClientSummary, ...]
    rounds: tuple[int, ...]
    credits: Floats
    uncounted: tuple[int, ...] = ()
    quarantined: tuple[tuple[int, Client, str], ...] = ()
    zero_is_idle: bool = False
    additive: bool = True
    level: float | None = None
    prob_above: Floats | None = None
    groups: tuple[tuple[int, ...], ...] = ()
    rounds_to_settle: tuple[float | None, ...] = ()
    range_note: str = ""
    too_early: str = ""  # why nothing can be concluded yet
    blind_spots: tuple[str, ...] = ()  # what a reader must know before acting on this answer
    layers: LayerCredits = field(default_factory=LayerCredits)
    health: Health = field(default_factory=lambda: Health({}))
    flags: tuple[Flag, ...] | None = None  # None where the uploads were not looked at
    accuracy: Mapping[int, float] = field(default_factory=dict)  # of the shared model by round, if the server noted it
    update_agreement: UpdateAgreement = field(default_factory=UpdateAgreement)  # measured from the uploads
    rewards: Rewards | None = None
    comparison: Comparison | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    made: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)  # of the report: level, draws, budget, rule, by
    head: str = ""  # of the run's chain, after the last round that the assessment knows of

    @property
    def method(self) -> str:
        return self.assessment.method

    @property
    def adjusts(self) -> bool:
        """Whether clients have adjusted means: participation varies, and scores are sums."""
        return self.assessment.needs_adjustment

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.assessment.settings

    @property
    def pending(self) -> tuple[int, ...]:
        return self.assessment.pending

    @property
    def measures(self) -> str:
        """What the method measures, in a few words."""
        return METHODS[self.method].measures if self.method in METHODS else "what its own documentation says"

    @property
    def cumulative(self) -> Floats:
        """The credits added up round by round; a client that was not seen stays where it was."""
        return np.cumsum(np.nan_to_num(self.credits), axis=1)

    def of(self, verdict: Verdict) -> tuple[ClientSummary, ...]:
        return tuple(summary for summary in self.summaries if summary.verdict == verdict)


def report_data(
    assessment: Assessment,
    *,
    title: str = "A federation",
    uncertainty: Uncertainty | None = None,
    layers: LayerCredits | None = None,
    health: Health | None = None,
    flags: tuple[Flag, ...] | None = None,
    accuracy: Mapping[int, float] | None = None,
    update_agreement: UpdateAgreement | None = None,
    rewards: Rewards | None = None,
    comparison: Comparison | None = None,
    truth: Mapping[Client, float] | None = None,
    facts: Mapping[str, Any] | None = None,
    made: datetime | None = None,
) -> ReportData:
    """Collect an answer and everything else that is known about it.

    `truth` is a true value of each client; `facts` are what the run says about itself, in JSON's types.
    """
    rounds = assessment.counted
    uncounted = tuple(sorted(set(assessment.credits) - set(rounds)))
    ranking = assessment.ranking
    level = assessment.adjusted_mean if assessment.needs_adjustment else {}
    places = {client: place for place, client in enumerate(ranking)}
    return ReportData(
        title=printable(title),
        assessment=assessment,
        summaries=_summaries(assessment, uncertainty, rewards, truth, len(rounds), level),
        rounds=rounds,
        credits=assessment.credits_of(ranking).T,
        uncounted=uncounted,
        quarantined=tuple((n, c, why) for n, of in sorted(assessment.quarantined.items()) for c, why in of.items()),
        zero_is_idle=assessment.zero_is_idle,
        additive=assessment.additive,
        level=None if uncertainty is None or uncertainty.note else uncertainty.level,
        prob_above=None if uncertainty is None or uncertainty.note else _prob_above(uncertainty, ranking),
        groups=() if uncertainty is None else tuple(tuple(places[c] for c in group) for group in uncertainty.groups),
        rounds_to_settle=()
        if uncertainty is None
        else tuple(uncertainty.rounds_to_settle.get(pair) for pair in pairwise(ranking)),
        range_note="" if uncertainty is None else uncertainty.note,
        too_early=too_early(assessment, uncertainty),
        blind_spots=tuple(blind_spots(assessment, uncertainty, update_agreement)),
        update_agreement=update_agreement or UpdateAgreement(),
        layers=layers or LayerCredits(),
        health=health or Health({}),
        flags=flags,
        accuracy=dict(accuracy or {}),
        rewards=rewards,
        comparison=comparison,
        facts=dict(facts or {}),
        versions={name: installed_version(name) for name in ("fedcoast", "numpy")}
        | {"python": platform.python_version()},
        made=(made or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC"),
    )


def _summaries(
    assessment: Assessment,
    uncertainty: Uncertainty | None,
    rewards: Rewards | None,
    truth: Mapping[Client, float] | None,
    valued: int,
    level: Mapping[Client, float],
) -> tuple[ClientSummary, ...]:
    ranks, mean, found = assessment.ranks, assessment.mean, verdicts(assessment, uncertainty)
    true_ranks = {} if truth is None else dict(zip(truth, paper_ranks(list(truth.values())), strict=True))
    intervals = {} if uncertainty is None else uncertainty.joint_intervals
    means = {} if uncertainty is None else uncertainty.mean_intervals
    levels = {} if uncertainty is None or not level else uncertainty.adjusted_intervals
    rank_intervals = {} if uncertainty is None or uncertainty.note else uncertainty.rank_intervals
    groups = {} if uncertainty is None else {c: place for place, of in enumerate(uncertainty.groups) for c in of}
    return tuple(
        ClientSummary(
            client=client,
            rank=ranks[client],
            score=assessment.scores[client],
            mean=mean[client] if assessment.rounds_scored[client] else None,
            rounds_scored=assessment.rounds_scored[client],
            coverage=assessment.rounds_scored[client] / valued if valued else None,
            verdict=found[client] if assessment.zero_is_idle or found[client] == "idle" else None,
            interval=intervals.get(client),
            mean_interval=means.get(client),
            adjusted_mean=level.get(client) if assessment.rounds_scored[client] else None,
            adjusted_interval=levels.get(client),
            ranks=rank_intervals.get(client),
            group=groups.get(client),
            share=None if rewards is None else float(rewards.shares[client]),
            cents=None if rewards is None or rewards.cents is None else rewards.cents[client],
            true_rank=true_ranks.get(client),
            quarantined=assessment.quarantine_count(client),
        )
        for client in assessment.ranking
    )


def title_of(folder: Path) -> str:
    """The name of a run's folder for people: without the hash at its end, words apart.

    >>> title_of(Path("runs/digits-noise-3f9a2c1b7d")), title_of(Path("runs/demo"))
    ('digits noise', 'demo')
    """
    name = re.sub(r"-[0-9a-f]{8,}$", "", folder.resolve().name)
    return name if name == folder.resolve().name else name.replace("-", " ")


def _prob_above(uncertainty: Uncertainty, ranking: tuple[Client, ...]) -> Floats:
    places = {client: place for place, client in enumerate(uncertainty.clients)}
    order = [places[client] for client in ranking]
    return np.asarray(uncertainty.prob_above, dtype=np.float64)[np.ix_(order, order)]


def installed_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"
