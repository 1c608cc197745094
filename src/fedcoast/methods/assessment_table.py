"""An assessment as a table for a terminal."""

from collections.abc import Mapping

from rich.table import Table
from rich.text import Text

from fedcoast.errors import Client
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.text import number, printable
from fedcoast.stats.ranking import paper_ranks


def table(answer: Assessment, truth: Mapping[Client, float] | None = None) -> Table:
    """The ranking; with a known truth, its ranks beside."""
    output = Table("rank", "client", "score", "rounds", "per round")
    for column in output.columns[2:]:
        column.justify = "right"
    output.columns[0].justify = "right"
    adjusts = answer.needs_adjustment
    adjusted = answer.adjusted_mean if adjusts else {}
    if adjusts:
        output.add_column("adjusted mean", justify="right")
    any_quarantined = any(answer.quarantined.values())
    if any_quarantined:
        output.add_column("quarantined", justify="right")
    if truth is not None:
        output.add_column("true rank", justify="right")
        true_ranks = dict(zip(truth, paper_ranks(list(truth.values())), strict=True))
    mean, ranks, scored = answer.mean, answer.ranks, answer.rounds_scored
    for client in answer.ranking:
        cells = [number(answer.scores[client]), str(scored[client]), number(mean[client] if scored[client] else None)]
        cells += [number(adjusted[client] if scored[client] else None)] if adjusts else []
        cells += [str(answer.quarantine_count(client) or "")] if any_quarantined else []
        cells += [] if truth is None else [str(true_ranks[client])]
        output.add_row(str(ranks[client]), Text(printable(client)), *cells)
    output.caption = "\n".join(_notes(answer, adjusts)) or None
    return output


def _notes(answer: Assessment, adjusts: bool) -> list[str]:
    notes = ["Participation varies; compare the adjusted means."] if adjusts else []
    if adjusts and answer.has_disconnected_clients:
        notes.append("Some clients share no rounds, even indirectly, and cannot be compared.")
    if answer.pending:
        notes.append(f"Not final yet: round {', '.join(map(str, answer.pending))}")
    return notes
