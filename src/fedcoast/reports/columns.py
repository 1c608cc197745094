"""The table of the ranking: a column for each thing that is known about anybody."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fedcoast.reports import markup, wording
from fedcoast.reports.account import Account, Standing
from fedcoast.reports.markup import Cell
from fedcoast.reports.overview import ends
from fedcoast.reports.plots import MOST_BARS
from fedcoast.reports.wording import interval, number, percent


def ranking_table(account: Account) -> str:
    """Everyone, best first. Of many, the two ends; the page fetches the others from a second table when it needs them.

    To a browser that runs scripts what is in `noscript` is mere text, and costs nothing until then; others show it.
    """
    columns = [column for column in _COLUMNS if any(column.known(standing) for standing in account.standings)]
    if len({standing.seen for standing in account.standings}) == 1:  # then it says nothing that the range does not
        columns = [column for column in columns if column.head != "per round, range"]
    count = len(account.standings)
    shown = ends(count, MOST_BARS)
    between = [place for place in range(count) if place not in set(shown)]
    heads = [column.head.format(level=percent(account.level)) for column in columns]

    def table(name: str, caption: str, places: Sequence[int]) -> str:
        rows = ([column.cell(account.standings[place]) for column in columns] for place in places)
        return markup.table(name, caption, heads, rows, sortable=name == "ranking-table", places=places)

    some = f" ({len(shown)} of {count:,} are shown)" if between else ""
    caption = f"The clients, best first{some}. A click on a head sorts, on a name draws it in “Over time”."
    others = (
        f'<noscript id="ranking-rest">{table("ranking-others", "The others", between)}</noscript>' if between else ""
    )
    return table("ranking-table", caption, shown) + others


@dataclass(frozen=True)
class _Column:
    head: str
    known: Callable[[Standing], object]
    cell: Callable[[Standing], Cell]


def _client(standing: Standing) -> Cell:
    button = f'<button type="button" class="pick" aria-pressed="false">{markup.named(standing)}</button>'
    return Cell(button, standing.name, "client")


def _verdict(standing: Standing) -> Cell:
    words = wording.VERDICTS[standing.verdict]
    order = {"hurts": 0, "unclear": 1, "helps": 2, None: -1}[standing.verdict]
    return Cell(f'<span class="verdict {standing.verdict or ""}">{words}</span>', order, "words")


def _span(span: tuple[float, float] | None) -> Cell:
    return Cell(interval(span), "" if span is None else span[0])


_COLUMNS = [
    _Column("rank", lambda s: True, lambda s: Cell(str(s.rank), s.rank)),
    _Column("client", lambda s: True, _client),
    _Column("score", lambda s: True, lambda s: Cell(number(s.score), s.score)),
    _Column("{level} range", lambda s: s.interval, lambda s: _span(s.interval)),
    _Column("per round", lambda s: s.seen, lambda s: Cell(number(s.mean), "" if s.mean is None else s.mean)),
    _Column("per round, range", lambda s: s.mean_interval, lambda s: _span(s.mean_interval)),
    _Column(
        "rank could be",
        lambda s: s.ranks,
        lambda s: Cell("–") if s.ranks is None else Cell("–".join(map(str, dict.fromkeys(s.ranks))), s.ranks[0]),
    ),
    _Column("verdict", lambda s: s.verdict, _verdict),
    _Column("rounds", lambda s: True, lambda s: Cell(f"{s.seen:,}", s.seen)),
    _Column("share", lambda s: s.share is not None, lambda s: Cell(percent(s.share, 2), s.share or 0)),
    _Column("amount", lambda s: s.cents is not None, lambda s: Cell(wording.money(s.cents), s.cents or 0)),
    _Column(
        "planted rank",
        lambda s: s.planted,
        lambda s: Cell("–", "") if s.planted is None else Cell(str(s.planted), s.planted),
    ),
]
