"""What a report says in words.

A passage is text with clients in it, so that each form of report can show their names safely.
"""

import math
import unicodedata
from collections.abc import Iterable, Sequence

from fedcoast.analysis.money import amount
from fedcoast.analysis.rewards import Rewards
from fedcoast.methods.registry import config_of
from fedcoast.methods.text import number as number
from fedcoast.reports.report_data import ClientSummary, ReportData

Passage = tuple[str | ClientSummary, ...]

_MOST_NAMED = 8
VERDICTS = {"helps": "helps", "hurts": "hurts", "idle": "idle", "cannot tell": "cannot tell", None: "–"}


def isolated(text: str) -> str:
    """Text that is written from right to left, kept apart from the direction of what stands around it.

    >>> isolated("plain"), isolated("אב") == "\u2068אב\u2069"
    ('plain', True)
    """
    from_right = any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in text)
    return f"\u2068{text}\u2069" if from_right else text


def interval(span: tuple[float, float] | None) -> str:
    """
    >>> interval((-1, 2.5))
    '−1 to 2.50'
    """
    return "–" if span is None else f"{number(span[0])} to {number(span[1])}"


def percent(share: float | None, digits: int = 0) -> str:
    """
    >>> percent(0.9)
    '90%'
    """
    return "–" if share is None else f"{share:.{digits}%}"


def chance(probability: float) -> str:
    """An estimated probability, never 0 or 1; empty where it is unknown.

    >>> chance(1.0), chance(0.84), chance(0.001), chance(float("nan"))
    ('>99%', '84%', '<1%', '')
    """
    if probability != probability:
        return ""
    return ">99%" if probability > 0.99 else "<1%" if probability < 0.01 else percent(probability)


def money(cents: int | None) -> str:
    """
    >>> money(1234507)
    '12,345.07'
    """
    return "–" if cents is None else f"{cents // 100:,}{amount(cents % 100)[1:]}"


def several(count: int, what: str) -> str:
    """
    >>> several(1, "client"), several(1200, "round")
    ('1 client', '1,200 rounds')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def spans(numbers: Iterable[int]) -> str:
    """Round numbers in a few words.

    >>> spans([1, 2, 3, 7, 9, 10])
    '1–3, 7, 9–10'
    """
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    shown = [f"{run[0]}" if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs]
    return ", ".join(shown[:_MOST_NAMED] + (["…"] if len(shown) > _MOST_NAMED else []))


def rounds(numbers: Sequence[int]) -> str:
    """
    >>> rounds([7]), rounds([39, 40])
    ('round 7', 'rounds 39–40')
    """
    return f"round{'' if len(numbers) == 1 else 's'} {spans(numbers)}"


def listed(summaries: Sequence[ClientSummary], most: int = _MOST_NAMED) -> Passage:
    """Some clients by name, and how many more there are."""
    passage: list[str | ClientSummary] = []
    for place, summary in enumerate(summaries[:most]):
        last = place == len(summaries) - 1
        passage += [" and " if last and place else ", " if place else "", summary]
    return (*passage, f" and {len(summaries) - most:,} more") if len(summaries) > most else tuple(passage)


def findings(report: ReportData) -> list[Passage]:
    """The answer in a few sentences, with the warnings and the rounds that wait."""
    sentences = verdict_sentences(report)
    if not report.rounds:
        return sentences
    sentences += [(text,) for text in report.blind_spots]
    if report.pending:
        has = "has" if len(report.pending) == 1 else "have"
        sentences.append((f"{rounds(report.pending).capitalize()} {has} no score: a score needs later rounds.",))
    return sentences


def verdict_sentences(report: ReportData) -> list[Passage]:
    """Who helps, who does not, and who is first. It claims only what the ranges support."""
    if not report.rounds:
        return [(report.too_early,)] if report.too_early else [("No round has been scored yet.",)]
    sentences: list[Passage] = [(report.too_early,)] if report.too_early else _claims(report)
    helps, hurts, idle, open_ = (report.of(verdict) for verdict in ("helps", "hurts", "idle", "cannot tell"))
    sure = f"with {percent(report.level)} confidence for all of them together"
    if helps:
        sentences.append((f"{several(len(helps), 'client')} {_verb(helps, 'helps', 'help')}, {sure}: ",))
        sentences[-1] = (*sentences[-1], *listed(helps, 6), ".")
    if hurts:
        sentences.append((f"{several(len(hurts), 'client')} {_verb(hurts, 'hurts', 'hurt')}: ", *listed(hurts, 6), "."))
    if idle:
        returned = f"{_verb(idle, 'is', 'are')} idle and returned the model unchanged in most rounds: "
        sentences.append((f"{several(len(idle), 'client')} {returned}", *listed(idle, 6), "."))
    if open_ and not report.too_early:
        sentences.append(("The rounds do not show whether ", *listed(open_, 4), f" {_verb(open_, 'helps', 'help')}."))
    return sentences


def opening(report: ReportData) -> list[Passage]:
    """The same for a page that shows the verdicts as cards: what is certain, and the warnings."""
    if not report.rounds:
        return findings(report)
    sentences: list[Passage] = [(report.too_early,)] if report.too_early else _claims(report)
    if report.level is not None and report.zero_is_idle:
        misled = ", unless the following misleads them" if report.update_agreement.sentences() else ""
        sentences.append((f"All verdicts together are right with {percent(report.level)} confidence{misled}.",))
    return sentences + [(text,) for text in report.blind_spots]


def _verb(clients: Sequence[ClientSummary], one: str, many: str) -> str:
    return one if len(clients) == 1 else many


def _claims(report: ReportData) -> list[Passage]:
    """Who contributed most and least, where that is certain."""
    count = len(report.summaries)
    if count < 2 or report.summaries[0].score == report.summaries[-1].score:
        return []
    first, last = report.summaries[0], report.summaries[-1]
    claims: list[Passage] = []
    if first.ranks == (1, 1):
        claims.append((first, " contributed most."))
    elif first.ranks is not None:
        rivals = [summary for summary in report.summaries if summary.ranks and summary.ranks[0] == 1]
        claims.append(("First place is open between ", *listed(rivals, 4), "."))
    if last.ranks == (count, count):
        claims.append((last, " contributed least."))
    return claims


def about(report: ReportData) -> str:
    """What a score is, for someone who reads no further."""
    config = config_of(report.method, report.settings)
    meaning = config.score_meaning() if config is not None else ""
    if not meaning:
        return f"Scores are by {report.method}, which measures {report.measures}."
    zero = " A client that does nothing scores zero." if report.zero_is_idle else ""
    return f"{meaning}{zero} No test data were used."


def settling(report: ReportData) -> Passage:
    """Which clients cannot be told apart, and how many rounds would settle it."""
    ties = [sorted(group) for group in report.groups if len(group) > 1]
    if not ties:
        return ("Any two clients can be told apart.",)
    if len(report.groups) == 1:
        passage: list[str | ClientSummary] = ["No clear split exists anywhere in the ranking."]
    else:
        passage = [f"The ranking splits into {len(report.groups):,} groups: every client is above all later groups,"]
        passage.append(f" with {percent(report.level)} confidence. Not all clients of a group can be told apart: ")
        for place, tie in enumerate(ties[:_MOST_NAMED]):
            passage += ["; " if place else "", *_group([report.summaries[p] for p in tie])]
        passage.append("; …." if len(ties) > _MOST_NAMED else ".")
    return (*passage, _patience(report))


def _group(members: Sequence[ClientSummary]) -> Passage:
    if len(members) <= 4:
        return listed(members)
    return members[0], " to ", members[-1], f" ({several(len(members), 'client')})"


def _patience(report: ReportData) -> str:
    """How many more rounds would settle it, if at most ten times as many as so far."""
    needed = [more for more in report.rounds_to_settle if more]
    near = [more for more in needed if more <= 10 * len(report.rounds)]
    if not near:
        return " Many more rounds would hardly change that." if needed else ""
    about = f" About {several(math.ceil(max(near)), 'more round')} like these would tell"
    return f"{about} {'all' if len(near) == len(needed) else 'some'} neighbours apart."


def coverage(report: ReportData) -> str:
    """Who took part in how many rounds."""
    full = sum(summary.rounds_scored == len(report.rounds) for summary in report.summaries)
    dropped = len(report.quarantined)
    count, of_rounds = len(report.summaries), len(report.rounds)
    whole = "the one valued round" if of_rounds == 1 else f"all {of_rounds:,} valued rounds"
    who = f"{full:,} of {several(count, 'client')}" if full else "No client"
    text = (
        f"{'The client' if count == 1 else f'All {count:,} clients'} took part in {whole}."
        if full == count
        else f"{who} took part in {whole}. Totals favour clients that took part often; compare"
        f" {'the adjusted means' if report.adjusts else 'them per round'}."
    )
    if report.adjusts and report.assessment.has_disconnected_clients:
        text += " Some clients share no rounds, even indirectly, and cannot be compared."
    return text + (f" {several(dropped, 'upload')} could not be used." if dropped else " Every upload could be used.")


def rule(rewards: Rewards) -> str:
    """How the shares were computed."""
    by = {
        "proportional": "in proportion to the scores",
        "softmax": "by the exponential of the scores",
        "rank": "by rank: one part for the last, two for the next, and so on",
    }[rewards.rule]
    options = rewards.options
    per_round = {"mean": "per round", "adjusted-mean": "per round, adjusted for absences"}
    parts = [by, per_round.get(options.get("by", ""), "")]
    parts.append("to clients above zero that are neither harmful nor idle")
    parts.append("equally to clients that cannot be told apart" if options.get("equal_pay_ties") else "")
    parts.append(f"nobody below a share of {options['floor']}" if options.get("floor", "0") != "0" else "")
    parts.append(f"nobody above a share of {options['cap']}" if options.get("cap", "1") != "1" else "")
    return ", ".join(filter(None, parts))
