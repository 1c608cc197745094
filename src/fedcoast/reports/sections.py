"""The sections of a report: a heading, what it says, a figure, and the same numbers as a table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from fedcoast.analysis.verdicts import Verdict
from fedcoast.reports import flagged, health, markup, tables
from fedcoast.reports import phrasing as phrasing
from fedcoast.reports.explanations import explanations
from fedcoast.reports.facts import facts
from fedcoast.reports.overview import windows
from fedcoast.reports.phrasing import percent, rounds
from fedcoast.reports.plot_base import MOST_BARS, MOST_COLUMNS, MOST_LAYERS, MOST_LINES, MOST_PAIRS, MOST_ROWS
from fedcoast.reports.report_data import ClientSummary, ReportData


@dataclass(frozen=True)
class Section:
    """`name` is its anchor, and that of its figure if it has one."""

    name: str
    title: str
    html: str


def sections(report: ReportData, heights: Mapping[str, int]) -> list[Section]:
    """The sections that have content; `heights` names the figures that can be drawn."""
    drawn: list[tuple[str, str, Callable[[ReportData, Callable[..., str]], str]]] = [
        ("ranking", "Ranking", _ranking),
        ("accuracy", "Accuracy of the model", _accuracy),
        ("timeline", "Over time", _timeline),
        ("heat-map", "Round by round", _heat_map),
        ("layers", "Layers of the model", _layers),
        ("health", "Health of the model", lambda report, place: health.section(report)),
        ("flags", "Flags", lambda report, place: flagged.section(report)),
        ("above", "Who is above whom", _prob_above),
        ("coverage", "Who took part", _coverage),
        ("shares", "Shares", _shares),
        ("agreement", "Other methods", _methods),
        ("meaning", "What the numbers mean", _explanations),
        ("settings", "Settings and versions", lambda report, place: facts(report)),
    ]

    def place(name: str, words: str, caption: str) -> str:
        return markup.figure(name, words, heights[name], caption) if name in heights else ""

    made = [Section(name, title, write(report, place)) for name, title, write in drawn]
    return [section for section in made if section.html]


def headline(report: ReportData) -> str:
    """The answer in short: who helps, who does not, and how certain that is."""
    opening = " ".join(map(markup.passage, phrasing.opening(report)))
    how = f'{escape(phrasing.about(report))} <a href="#meaning">What the numbers mean, and what they do not.</a>'
    details = markup.details("How the scores work", markup.paragraph(how, "note"), "how-details")
    notices = health.notice(report) + flagged.notice(report)
    return f'<p class="lead">{opening}</p>{notices}{_verdict_cards(report)}{_facts(report)}{details}'


def _verdict_cards(report: ReportData) -> str:
    """One card for each verdict that a client has, with the names."""
    cards = []
    words: dict[Verdict, tuple[str, str]] = {
        "helps": ("helps", "help"),
        "hurts": ("hurts", "hurt"),
        "idle": ("is idle: it returned the model unchanged", "are idle: they returned the model unchanged"),
    }
    for verdict, (one, many) in words.items():
        if clients := report.of(verdict):
            cards.append(_verdict_card(verdict, one if len(clients) == 1 else many, clients))
    if (clients := report.of("cannot tell")) and not report.too_early:
        cards.append(_verdict_card("cannot tell", "not yet certain", clients))
    return f'<div class="verdicts">{"".join(cards)}</div>' if cards else ""


def _verdict_card(verdict: str, words: str, clients: Sequence[ClientSummary]) -> str:
    names = markup.passage(phrasing.listed(clients, 5))
    head = f"{phrasing.several(len(clients), 'client')} {words}"
    return f'<div class="card {verdict.replace(" ", "-")}"><p>{head}</p><p>{names}</p></div>'


def _facts(report: ReportData) -> str:
    facts = [
        (f"{len(report.summaries):,}", "client" if len(report.summaries) == 1 else "clients"),
        (f"{len(report.rounds):,}", "round scored" if len(report.rounds) == 1 else "rounds scored"),
        *([(percent(report.level), "confidence")] if report.level is not None else []),
        *([(f"{len(report.quarantined):,}", "uploads left out")] if report.quarantined else []),
    ]
    cards = "".join(f"<div><dt>{escape(what)}</dt><dd>{escape(value)}</dd></div>" for value, what in facts)
    return f'<dl class="cards">{cards}{_trend(report)}</dl>'


def _trend(report: ReportData) -> str:
    """The accuracy of the model now, and a line of it over the rounds."""
    if not report.accuracy:
        return ""
    values = [report.accuracy[number] for number in sorted(report.accuracy)]
    low, high = min(values), max(values)
    height = (high - low) or 1.0
    points = " ".join(
        f"{100 * at / max(1, len(values) - 1):.1f},{30 * (high - value) / height:.1f}"
        for at, value in enumerate(values)
    )
    words = f"accuracy over the rounds, from {percent(values[0], 1)} to {percent(values[-1], 1)}"
    line = f'<svg viewBox="0 0 100 30" preserveAspectRatio="none" role="img" aria-label="{words}">'
    return (
        f'<div class="trend"><dt>accuracy now</dt><dd>{percent(values[-1], 1)}</dd>'
        f'<dd>{line}<polyline points="{points}"/></svg></dd></div>'
    )


def _ranking(report: ReportData, place: Callable[..., str]) -> str:
    if not report.summaries:
        return ""
    count, shown = len(report.summaries), min(len(report.summaries), MOST_BARS)
    of = f"the best and the worst, {shown} of {count:,} clients" if shown < count else "all clients"
    ranges = "" if report.level is None else f" with ranges of {percent(report.level)} confidence"
    groups = (
        " Clients on a common band cannot all be told apart." if any(1 < len(g) < count for g in report.groups) else ""
    )
    drawn = place(
        "ranking",
        f"Scores of {of}{ranges}, best first; the table below has the same numbers",
        f"Scores of {of}{ranges}, best first." + groups,
    )
    return drawn + _search(count) + tables.ranking_table(report)


def _search(count: int) -> str:
    few = count <= MOST_BARS
    more = "" if few else '<button type="button" id="show-all" aria-pressed="false">Show everyone</button>'
    hint = "Click a column heading to sort, or a client’s name to draw it in “Over time”."
    return (
        '<div class="tools" data-keep="search"><label for="search">Find a client</label>'
        '<input type="search" id="search" autocomplete="off" spellcheck="false">'
        f'{more}<span id="found" role="status"></span><span class="hint">{hint}</span></div>'
    )


def _accuracy(report: ReportData, place: Callable[..., str]) -> str:
    drawn = place(
        "accuracy",
        "Accuracy of the shared model over the rounds; the table below has the same numbers",
        "Accuracy of the shared model over the rounds, as the server noted it. No score uses it. Where the line is flat"
        " the model has stopped learning, and later rounds can reward clients that memorise wrong labels.",
    )
    return drawn and drawn + tables.accuracy_table(report)


def _timeline(report: ReportData, place: Callable[..., str]) -> str:
    few = len(report.summaries) <= MOST_LINES
    whom = "each client" if few else f"the {MOST_LINES} best and worst clients, and the middle of all others"
    width = len(windows(report.rounds, MOST_COLUMNS)[0]) if report.rounds else 1
    thinned = f" Drawn at every {width}th round." if width > 1 else ""
    sums = (
        "" if report.additive else f" {report.method} does not add its credits up, so lines need not end at the scores."
    )
    return place(
        "timeline",
        f"Credit added up over the rounds for {whom}",
        f"Credit added up over the rounds, for {whom}. A line that rises steadily is a client that keeps helping; a"
        f" flat one adds nothing.{thinned}{sums}"
        + ("" if few else " Choose further clients by their names in the ranking."),
    )


def _heat_map(report: ReportData, place: Callable[..., str]) -> str:
    binned = []
    if len(report.summaries) > MOST_ROWS:
        binned.append("clients between the best and the worst share rows, which show their mean")
    if report.rounds and (width := len(windows(report.rounds, MOST_COLUMNS)[0])) > 1:
        binned.append(f"{width} rounds share a column, which shows their mean")
    caption = "Credit of each client in each round: blue helps, orange hurts, empty was absent."
    caption += f" Too much for one page, so {', and '.join(binned)}." if binned else ""
    caption += " Crosses are uploads that could not be used." if report.quarantined and not binned else ""
    caption += f" Valued, but not counted in the scores: {rounds(report.uncounted)}." if report.uncounted else ""
    drawn = place("heat-map", "Credit for each client and round", caption)
    return drawn + (tables.credits_table(report) if drawn else "")


def _layers(report: ReportData, place: Callable[..., str]) -> str:
    many = len(report.layers.names) > MOST_LAYERS
    several = (
        " Too many for one page, so neighbours share a row: “name + 2” is that layer and the next two." if many else ""
    )
    drawn = place(
        "layers",
        "Net agreement of each client in each layer, as a share of the votes it cast there",
        "Of the votes a client cast in a layer, how many pointed where the model went, less how many pointed the other"
        " way, and less the part that only went on where the model came from. 0% is chance. Layers are listed from"
        " input to output." + several,
    )
    return drawn + (tables.layers_table(report) if drawn else "")


def _prob_above(report: ReportData, place: Callable[..., str]) -> str:
    if report.prob_above is None or len(report.summaries) < 2:
        return ""
    count, shown = len(report.summaries), min(len(report.summaries), MOST_PAIRS)
    of = f"the best and the worst, {shown} of {count:,} clients" if shown < count else "all clients"
    drawn = place(
        "above",
        f"Probability that one client is really above another, for {of}",
        f"The probability that the row’s client is really above the column’s client, for {of}: 50% is a coin toss.",
    )
    return markup.paragraph(markup.passage(phrasing.settling(report))) + drawn + tables.prob_above_table(report)


def _coverage(report: ReportData, place: Callable[..., str]) -> str:
    if not report.rounds:
        return ""
    text = markup.paragraph(escape(phrasing.coverage(report)))
    return text + tables.absence_table(report) + tables.quarantine_table(report)


def _shares(report: ReportData, place: Callable[..., str]) -> str:
    if report.rewards is None:
        return ""
    nothing = [summary for summary in report.summaries if not summary.share]
    whole = "" if report.rewards.budget is None else f" The budget is {phrasing.money(report.rewards.budget)}."
    html = markup.paragraph(f"Shared out {escape(phrasing.rule(report.rewards))}. The shares add up to 100%.{whole}")
    if nothing:
        html += markup.paragraph(markup.passage((*phrasing.listed(nothing), " would get nothing by this rule.")))
    return html + place(
        "shares", "Share of each client; the ranking’s table has the numbers", "What each client would get."
    )


def _methods(report: ReportData, place: Callable[..., str]) -> str:
    comparison = report.comparison
    if comparison is None:
        return ""
    html = markup.paragraph(
        "Other methods were shown the same rounds. The numbers are the ranks each would give; docs/methods.md of"
        " fedcoast says what each of them measures."
    )
    html += tables.methods_table(report, comparison)
    for reason, names in comparison.without_answer().items():
        html += markup.paragraph(f"No answer from {escape(', '.join(names))}: {escape(reason)}", "note")
    drawn = place(
        "agreement",
        "Rank correlation of any two methods (Spearman)",
        "Rank correlation of any two methods (Spearman’s ρ): +1 the same order, 0 unrelated, −1 reversed.",
    )
    return html + drawn + (tables.agreement_table(comparison) if drawn else "")


def _explanations(report: ReportData, place: Callable[..., str]) -> str:
    blocks = []
    for title, paragraphs in explanations(report):
        blocks.append(
            f"<div><h3>{escape(title)}</h3>{''.join(markup.paragraph(escape(text)) for text in paragraphs)}</div>"
        )
    return f'<div class="prose">{"".join(blocks)}</div>'
