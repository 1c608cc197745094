"""The tables of a report: the ranking, and the numbers behind every figure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from fedcoast.methods.comparison import Comparison
from fedcoast.reports import markup
from fedcoast.reports import phrasing as phrasing
from fedcoast.reports.markup import Cell
from fedcoast.reports.overview import ends
from fedcoast.reports.phrasing import chance, interval, number, percent
from fedcoast.reports.plot_base import MOST_BARS, MOST_PAIRS
from fedcoast.reports.report_data import ClientSummary, ReportData

_MOST_CELLS, _MOST_LISTED, _MOST_ABSENT = 3000, 100, 20
_ELSEWHERE = "Too many numbers for a table here; the report as CSV or JSON has them all."


def ranking_table(report: ReportData) -> str:
    """Everyone, best first. Of many, the two ends; the page fetches the others from a second table when it needs them.

    The second table is in `noscript`: browsers that run scripts treat it as text until the page needs it, others show
    it.
    """
    columns = [column for column in _COLUMNS if any(column.known(summary) for summary in report.summaries)]
    count = len(report.summaries)
    shown = ends(count, MOST_BARS)
    between = [place for place in range(count) if place not in set(shown)]
    heads = [column.head.format(level=percent(report.level)) for column in columns]

    def table(name: str, caption: str, places: Sequence[int]) -> str:
        rows = ([column.cell(report.summaries[place]) for column in columns] for place in places)
        return markup.table(name, caption, heads, rows, sortable=name == "ranking-table", places=places)

    some = f" ({len(shown)} of {count:,} are shown)" if between else ""
    others = (
        f'<noscript id="ranking-rest">{table("ranking-others", "The others", between)}</noscript>' if between else ""
    )
    meanings = {head: column.means for head, column in zip(heads, columns, strict=True) if column.means}
    listed = "".join(f"<dt>{escape(head)}</dt><dd>{escape(means)}</dd>" for head, means in meanings.items())
    key = markup.details("What the columns mean", f'<dl class="key">{listed}</dl>', "columns-details")
    return table("ranking-table", f"The clients, best first{some}", shown) + others + key


@dataclass(frozen=True)
class _Column:
    head: str
    means: str
    known: Callable[[ClientSummary], object]
    cell: Callable[[ClientSummary], Cell]


def client_cell(summary: ClientSummary) -> Cell:
    return Cell(markup.named(summary), summary.name, "client")


def _button(summary: ClientSummary) -> Cell:
    button = f'<button type="button" class="pick" aria-pressed="false">{markup.named(summary)}</button>'
    return Cell(button, summary.name, "client")


def _verdict(summary: ClientSummary) -> Cell:
    words = phrasing.VERDICTS[summary.verdict]
    order = {"hurts": 0, "idle": 1, "cannot tell": 2, "helps": 3, None: -1}[summary.verdict]
    kind = (summary.verdict or "").replace(" ", "-")
    return Cell(f'<span class="verdict {kind}">{words}</span>', order, "words")


def _span(span: tuple[float, float] | None) -> Cell:
    return Cell(interval(span), "" if span is None else span[0])


def _whole(value: float | None, text: str) -> Cell:
    return Cell("–" if value is None else text, "" if value is None else value)


_COLUMNS = [
    _Column("rank", "1 is the best.", lambda s: True, lambda s: Cell(str(s.rank), s.rank)),
    _Column("client", "", lambda s: True, _button),
    _Column(
        "score",
        "What the client contributed, by the method named under “Settings and versions”.",
        lambda s: True,
        lambda s: Cell(number(s.score), s.score),
    ),
    _Column(
        "{level} range",
        "Where the score would lie if the rounds were repeated. With that confidence all ranges hold at once.",
        lambda s: s.interval,
        lambda s: _span(s.interval),
    ),
    _Column(
        "per round",
        "The score divided by the rounds that the client took part in.",
        lambda s: s.rounds_scored,
        lambda s: _whole(s.mean, number(s.mean)),
    ),
    _Column(
        "adjusted mean",
        "The score per round as if all had been in every round, if a round adds the same to every client: some"
        " give more, and a client should not depend on which it was in.",
        lambda s: s.adjusted_mean is not None,
        lambda s: _whole(s.adjusted_mean, number(s.adjusted_mean)),
    ),
    _Column(
        "adjusted range",
        "Where the adjusted mean would lie, with the same confidence, if the rounds were repeated.",
        lambda s: s.adjusted_interval,
        lambda s: _span(s.adjusted_interval),
    ),
    _Column(
        "rank could be",
        "The ranks that luck alone could have given this client, with the same confidence.",
        lambda s: s.ranks,
        lambda s: Cell("–") if s.ranks is None else Cell("–".join(map(str, dict.fromkeys(s.ranks))), s.ranks[0]),
    ),
    _Column(
        "verdict",
        "helps: the whole range lies above zero, the score of a client that does nothing. hurts: the whole range lies"
        " below zero. idle: the client returned the model it was sent in most rounds. cannot tell: everything else.",
        lambda s: s.verdict,
        _verdict,
    ),
    _Column(
        "rounds",
        "The valued rounds it took part in.",
        lambda s: True,
        lambda s: Cell(f"{s.rounds_scored:,}", s.rounds_scored),
    ),
    _Column(
        "share",
        "Its share of the whole, by the rule named under “Shares”.",
        lambda s: s.share is not None,
        lambda s: Cell(percent(s.share, 2), s.share or 0),
    ),
    _Column(
        "amount",
        "Its share of the budget.",
        lambda s: s.cents is not None,
        lambda s: Cell(phrasing.money(s.cents), s.cents or 0),
    ),
    _Column(
        "true rank",
        "The order that this experiment was built with. The method did not see it.",
        lambda s: s.true_rank,
        lambda s: _whole(s.true_rank, str(s.true_rank)),
    ),
]


# --- the numbers behind the figures


def accuracy_table(report: ReportData) -> str:
    if len(report.accuracy) * 3 > _MOST_CELLS:
        return markup.paragraph(_ELSEWHERE, "note")
    values = list(report.accuracy.values())
    changes = [None, *(after - before for before, after in pairwise(values))]
    rows = [
        [
            Cell(f"round {fl_round}"),
            Cell(escape(percent(value, 1))),
            Cell("" if change is None else number(100 * change)),
        ]
        for fl_round, value, change in zip(report.accuracy, values, changes, strict=True)
    ]
    return _behind("accuracy", "Accuracy after each round", ["round", "accuracy", "change in points"], rows)


def credits_table(report: ReportData) -> str:
    if report.credits.size > _MOST_CELLS:
        return markup.paragraph(_ELSEWHERE, "note")
    heads = ["client", *(f"round {n}" for n in report.rounds)]
    rows = [
        [client_cell(summary)]
        + [Cell("" if credit != credit else number(float(credit))) for credit in report.credits[row]]
        for row, summary in enumerate(report.summaries)
    ]
    return _behind("credits", "Credit of each client in each round", heads, rows)


def layers_table(report: ReportData) -> str:
    shown = [report.summaries[place] for place in ends(len(report.summaries), MOST_BARS)]
    names = report.layers.names
    if len(shown) * len(names) > _MOST_CELLS:
        return markup.paragraph(_ELSEWHERE, "note")
    rows = [
        [client_cell(summary), *(Cell(number(net.item())) for net in report.layers.agreement[summary.client])]
        for summary in shown
    ]
    return _behind("layers", "Credit by layer; a row adds up to the score", ["client", *names], rows)


def prob_above_table(report: ReportData) -> str:
    if report.prob_above is None or len(report.summaries) > MOST_PAIRS:
        return markup.paragraph(_ELSEWHERE, "note")
    rows = [
        [client_cell(summary)]
        + [Cell("" if row == column else escape(chance(float(p)))) for column, p in enumerate(report.prob_above[row])]
        for row, summary in enumerate(report.summaries)
    ]
    heads = ["above", *(summary.name for summary in report.summaries)]
    return _behind("above", "Probability that the row is above the column", heads, rows)


def agreement_table(comparison: Comparison) -> str:
    found = comparison.agreement()
    rows = [[Cell(escape(name), name, "client"), *map(_signed, row.values())] for name, row in found.items()]
    return _behind("agreement", "Spearman’s ρ of any two methods", ["method", *found], rows)


def methods_table(report: ReportData, comparison: Comparison) -> str:
    """The rank of each client by each method."""
    names, found = list(comparison.assessments), comparison.spearman()
    shown = [report.summaries[place] for place in ends(len(report.summaries), MOST_BARS)]
    ranks = {name: answer.ranks for name, answer in comparison.assessments.items()}
    rows = [[client_cell(s), *(Cell(str(ranks[name][s.client])) for name in names)] for s in shown]
    if found:
        rows.append([Cell("ρ with the true order", "", "client"), *(_signed(found[name]) for name in names)])
    some = "" if len(shown) == len(report.summaries) else f" ({len(shown)} of {len(report.summaries):,})"
    return markup.table("methods-table", f"Rank of each client by each method{some}", ["client", *names], rows)


def absence_table(report: ReportData) -> str:
    missing = sorted(
        (s for s in report.summaries if s.rounds_scored < len(report.rounds)), key=lambda s: s.rounds_scored
    )
    if not missing:
        return ""
    most = len(report.rounds)
    rows = [
        [
            client_cell(s),
            Cell(f'<meter min="0" max="{most}" value="{s.rounds_scored}">{s.rounds_scored} of {most}</meter>'),
            Cell(f"{s.rounds_scored:,}"),
            Cell(percent(s.coverage)),
        ]
        for s in missing[:_MOST_ABSENT]
    ]
    caption = f"Clients that missed rounds, the most absent first{_some(len(missing), _MOST_ABSENT)}"
    return markup.table("coverage-table", caption, ["client", "took part", "rounds", "of all"], rows)


def quarantine_table(report: ReportData) -> str:
    if not report.quarantined:
        return ""
    names = {summary.client: summary for summary in report.summaries}
    rows = [
        [Cell(str(n), n), client_cell(names[client]), Cell(escape(why), why, "words")]
        for n, client, why in report.quarantined[:_MOST_LISTED]
    ]
    caption = f"Uploads left out of their round{_some(len(report.quarantined), _MOST_LISTED)}"
    return markup.table("quarantine-table", caption, ["round", "client", "why"], rows)


def _behind(name: str, caption: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    table = markup.table(f"{name}-table", caption, heads, rows)
    return markup.details("These numbers as a table", table, f"{name}-details")


def _signed(value: float) -> Cell:
    return Cell("–" if value != value else f"{value:+.2f}".replace("-", "−"))


def _some(count: int, most: int) -> str:
    return f" ({most} of {count:,}; the JSON has all)" if count > most else ""
