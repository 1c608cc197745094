"""The sections of a report: a heading, what it says, a figure, and the same numbers as a table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape

from fedcoast.reports import health, markup, tables
from fedcoast.reports import phrasing as wording
from fedcoast.reports.explanations import meaning
from fedcoast.reports.facts import facts
from fedcoast.reports.overview import windows
from fedcoast.reports.phrasing import percent, rounds
from fedcoast.reports.plot_base import MOST_BARS, MOST_COLUMNS, MOST_LAYERS, MOST_LINES, MOST_PAIRS, MOST_ROWS
from fedcoast.reports.report_data import ReportData


@dataclass(frozen=True)
class Section:
    """`name` is its anchor, and that of its figure if it has one."""

    name: str
    title: str
    html: str


def sections(account: ReportData, heights: Mapping[str, int]) -> list[Section]:
    """Those for which there is something to say; `heights` names the figures that can be drawn."""
    drawn: list[tuple[str, str, Callable[[ReportData, Callable[..., str]], str]]] = [
        ("ranking", "Ranking", _ranking),
        ("timeline", "Over time", _timeline),
        ("heat-map", "Round by round", _heat_map),
        ("layers", "Layers of the model", _layers),
        ("health", "Health of the model", lambda account, place: health.section(account)),
        ("above", "Who is above whom", _above),
        ("coverage", "Who took part", _coverage),
        ("shares", "Shares", _shares),
        ("agreement", "Other methods", _methods),
        ("meaning", "What the numbers mean", _meaning),
        ("settings", "Settings and versions", lambda account, place: facts(account)),
    ]

    def place(name: str, words: str, caption: str) -> str:
        return markup.figure(name, words, heights[name], caption) if name in heights else ""

    made = [Section(name, title, write(account, place)) for name, title, write in drawn]
    return [section for section in made if section.html]


def summary(account: ReportData) -> str:
    """The answer at a glance."""
    facts = [
        (len(account.standings), "client", "s"),
        (len(account.rounds), "round", "s valued"),
        (len(account.pending), "round", "s pending"),
        (len(account.of("helps")), "surely help", ""),
        (len(account.of("hurts")), "surely hurt", ""),
        (len(account.quarantined), "upload", "s quarantined"),
    ]
    shown = [fact for place, fact in enumerate(facts) if fact[0] or place < 2]
    cards = "".join(
        f"<div><dt>{what}{more[1:] if value == 1 else more}</dt><dd>{value:,}</dd></div>" for value, what, more in shown
    )
    said = " ".join(map(markup.passage, wording.findings(account)))
    about = f'{escape(wording.about(account))} <a href="#meaning">What the numbers mean, and what they do not.</a>'
    lead = f'<p class="lead">{said}</p>{health.notice(account)}'
    return f'{lead}{markup.paragraph(about, "note")}<dl class="cards">{cards}</dl>'


def _ranking(account: ReportData, place: Callable[..., str]) -> str:
    if not account.standings:
        return ""
    count, shown = len(account.standings), min(len(account.standings), MOST_BARS)
    of = f"the best and the worst, {shown} of {count:,} clients" if shown < count else "all clients"
    ranges = "" if account.level is None else f" with ranges of {percent(account.level)} confidence"
    groups = (
        " On a common band not everyone can be told apart." if any(1 < len(g) < count for g in account.groups) else ""
    )
    drawn = place(
        "ranking",
        f"Scores of {of}{ranges}, best first; the table below has the same numbers",
        f"Scores of {of}{ranges}, best first." + groups,
    )
    return drawn + _search(count) + tables.ranking_table(account)


def _search(count: int) -> str:
    few = count <= MOST_BARS
    more = "" if few else '<button type="button" id="show-all" aria-pressed="false">Show everyone</button>'
    hint = "A column’s head sorts. A client’s name draws it in “Over time”."
    return (
        '<div class="tools" data-keep="search"><label for="search">Find a client</label>'
        '<input type="search" id="search" autocomplete="off" spellcheck="false">'
        f'{more}<span id="found" role="status"></span><span class="hint">{hint}</span></div>'
    )


def _timeline(account: ReportData, place: Callable[..., str]) -> str:
    few = len(account.standings) <= MOST_LINES
    whom = "each client" if few else f"the {MOST_LINES} best and worst clients, and the middle of all others"
    width = len(windows(account.rounds, MOST_COLUMNS)[0]) if account.rounds else 1
    thinned = f" Drawn at every {width}th round." if width > 1 else ""
    sums = (
        ""
        if account.additive
        else f" {account.method} does not add its credits up, so lines need not end at the scores."
    )
    return place(
        "timeline",
        f"Credit added up over the rounds for {whom}",
        f"Credit added up over the rounds, for {whom}. A line that rises steadily is a client that keeps helping; a"
        f" flat one adds nothing.{thinned}{sums}"
        + ("" if few else " Choose further clients by their names in the ranking."),
    )


def _heat_map(account: ReportData, place: Callable[..., str]) -> str:
    binned = []
    if len(account.standings) > MOST_ROWS:
        binned.append("clients between the best and the worst share rows, which show their mean")
    if account.rounds and (width := len(windows(account.rounds, MOST_COLUMNS)[0])) > 1:
        binned.append(f"{width} rounds share a column, which shows their mean")
    caption = "Credit of each client in each round: blue helps, orange hurts, empty was absent."
    caption += f" Too much for one page, so {', and '.join(binned)}." if binned else ""
    caption += " Crosses are uploads that could not be used." if account.quarantined and not binned else ""
    caption += f" Valued, but not counted in the scores: {rounds(account.uncounted)}." if account.uncounted else ""
    drawn = place("heat-map", "Credit for each client and round", caption)
    return drawn + (tables.credits_table(account) if drawn else "")


def _layers(account: ReportData, place: Callable[..., str]) -> str:
    many = len(account.layers.names) > MOST_LAYERS
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
    return drawn + (tables.layers_table(account) if drawn else "")


def _above(account: ReportData, place: Callable[..., str]) -> str:
    if account.above is None or len(account.standings) < 2:
        return ""
    count, shown = len(account.standings), min(len(account.standings), MOST_PAIRS)
    of = f"the best and the worst, {shown} of {count:,} clients" if shown < count else "all clients"
    drawn = place(
        "above",
        f"Probability that one client is really above another, for {of}",
        f"How likely the client of the row really is above that of the column, for {of}: 50% is a coin toss.",
    )
    return markup.paragraph(markup.passage(wording.settling(account))) + drawn + tables.above_table(account)


def _coverage(account: ReportData, place: Callable[..., str]) -> str:
    if not account.rounds:
        return ""
    said = markup.paragraph(escape(wording.coverage(account)))
    return said + tables.absence_table(account) + tables.quarantine_table(account)


def _shares(account: ReportData, place: Callable[..., str]) -> str:
    if account.rewards is None:
        return ""
    nothing = [standing for standing in account.standings if not standing.share]
    whole = "" if account.rewards.budget is None else f" The budget is {wording.money(account.rewards.budget)}."
    html = markup.paragraph(f"Given out {escape(wording.rule(account.rewards))}. The shares add up to 100%.{whole}")
    if nothing:
        html += markup.paragraph(markup.passage((*wording.listed(nothing), " would get nothing by this rule.")))
    return html + place(
        "shares", "Share of each client; the ranking’s table has the numbers", "What each client would get."
    )


def _methods(account: ReportData, place: Callable[..., str]) -> str:
    comparison = account.comparison
    if comparison is None:
        return ""
    html = markup.paragraph(
        "Other methods were shown the same rounds. The numbers are the ranks each would give; docs/methods.md of"
        " fedcoast says what each of them measures."
    )
    html += tables.methods_table(account, comparison)
    for name, reason in comparison.errors.items():
        html += markup.paragraph(f"No answer from {escape(name)}: {escape(reason)}", "note")
    drawn = place(
        "agreement",
        "How alike any two methods rank the clients, by Spearman’s rank correlation",
        "How alike any two methods rank the clients (Spearman’s ρ): +1 the same order, 0 unrelated, −1 reversed.",
    )
    return html + drawn + (tables.agreement_table(comparison) if drawn else "")


def _meaning(account: ReportData, place: Callable[..., str]) -> str:
    blocks = []
    for title, said in meaning(account):
        blocks.append(f"<div><h3>{escape(title)}</h3>{''.join(markup.paragraph(escape(text)) for text in said)}</div>")
    return f'<div class="prose">{"".join(blocks)}</div>'
