"""An answer in a terminal: the ranking with ranges and verdicts, in 80 columns."""

from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from fedcoast.analysis.uncertainty import Uncertainty
from fedcoast.analysis.verdicts import Verdict
from fedcoast.errors import Client
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.text import printable
from fedcoast.reports.phrasing import number, rounds
from fedcoast.stats.ranking import paper_ranks

STYLES: dict[Verdict, str] = {"helps": "blue", "hurts": "dark_orange3", "idle": "magenta", "cannot tell": "dim"}
_NAME = 28  # cells, of which a longer name shows both ends


def answer_table(
    assessment: Assessment,
    uncertainty: Uncertainty | None,
    verdicts: Mapping[Client, Verdict],
    truth: Mapping[Client, float] | None = None,
) -> Table:
    """The ranking, best first; with a known truth, its ranks beside."""
    ranks, known = assessment.ranks, uncertainty is not None and not uncertainty.note
    ranges = uncertainty.joint_intervals if uncertainty is not None and known else {}
    places = uncertainty.rank_intervals if uncertainty is not None and known else {}
    adjusted = assessment.adjusted_mean if assessment.needs_adjustment else {}
    true_ranks = {} if truth is None else dict(zip(truth, paper_ranks(list(truth.values())), strict=True))
    any_dropped = any(assessment.quarantined.values())
    table = Table("rank", "client", "score", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.columns[2].justify = "right"
    if uncertainty is not None and known:
        table.add_column(f"{uncertainty.level:.0%} range", justify="right")
    has_verdicts = assessment.zero_is_idle or "idle" in verdicts.values()
    if has_verdicts:
        table.add_column("verdict")
    heads = ["rounds", *(["adjusted"] if adjusted else []), *(["left out"] if any_dropped else [])]
    for head in [*heads, *(["true rank"] if true_ranks else [])]:
        table.add_column(head, justify="right")
    for client in assessment.ranking:
        place = f"{ranks[client]}{_could_be(places.get(client))}"
        row: list[str | Text] = [place, Text(_short(printable(client))), number(assessment.scores[client])]
        if known:
            span = ranges.get(client)
            row.append("–" if span is None else f"{number(span[0])} to {number(span[1])}")
        row += [Text(verdicts[client], STYLES[verdicts[client]])] if has_verdicts else []
        row.append(str(assessment.rounds_scored[client]))
        row += [number(adjusted[client]) if assessment.rounds_scored[client] else "–"] if adjusted else []
        row += [str(assessment.quarantine_count(client) or "")] if any_dropped else []
        row += [str(true_ranks[client])] if true_ranks else []
        table.add_row(*row)
    table.caption, table.caption_justify = "\n".join(_notes(assessment, known)) or None, "left"
    return table


def _notes(assessment: Assessment, known: bool) -> list[str]:
    notes = ["In brackets: the ranks that luck and the method's error leave open."] if known else []
    notes += ["Participation varies; compare the adjusted means."] if assessment.needs_adjustment else []
    if assessment.needs_adjustment and assessment.has_disconnected_clients:
        notes.append("Some clients share no rounds, even indirectly, and cannot be compared.")
    if assessment.pending:
        has = "has" if len(assessment.pending) == 1 else "have"
        notes.append(f"{rounds(assessment.pending).capitalize()} {has} no score: a score needs later rounds.")
    return notes


def _could_be(span: tuple[int, int] | None) -> str:
    """
    >>> _could_be((1, 4)), _could_be((2, 2)), _could_be(None)
    (' (1–4)', ' (2)', '')
    """
    return "" if span is None else f" ({'–'.join(map(str, dict.fromkeys(span)))})"


def _short(name: str) -> str:
    """
    >>> _short("a very long name of a very large hospital")
    'a very long na…rge hospital'
    """
    return name if len(name) <= _NAME else f"{name[: _NAME // 2]}…{name[-(_NAME - _NAME // 2 - 2) :]}"
