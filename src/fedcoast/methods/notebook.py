"""Answers as notebooks show them: a data frame, a figure, and a table in HTML."""

from html import escape
from typing import TYPE_CHECKING, Any

from fedcoast.errors import BadSetting, require
from fedcoast.methods.text import number, printable

if TYPE_CHECKING:
    from fedcoast.methods.assessment import Assessment

KINDS = ("ranking", "timeline", "heat_map")
SHOWN = 30  # rows of a table; a data frame has them all


def as_frame(assessment: "Assessment") -> Any:
    """A pandas DataFrame: a row for each client, best first; a column for each round with final credits."""
    pandas = require("pandas", extra="plots")
    ranking, ranks, mean = assessment.ranking, assessment.ranks, assessment.mean
    columns: dict[str, list[Any]] = {
        "rank": [ranks[client] for client in ranking],
        "score": [assessment.scores[client] for client in ranking],
        "mean": [mean[client] for client in ranking],
        "rounds": [assessment.rounds_scored[client] for client in ranking],
        "quarantined": [sum(client in names for names in assessment.quarantined.values()) for client in ranking],
    }
    for fl_round, credits in assessment.credits.items():
        columns[f"round {fl_round}"] = [credits.get(client, float("nan")) for client in ranking]
    return pandas.DataFrame(columns, index=pandas.Index(ranking, name="client"))


def as_axes(assessment: "Assessment", kind: str, options: dict[str, Any]) -> Any:
    """A figure of the answer. Figures need its uncertainty, a room above: they are found by name, not imported."""
    if kind not in KINDS:
        raise BadSetting(f"kind must be one of {', '.join(KINDS)}; got {kind!r}")
    return getattr(require("fedcoast.plotting", extra="plots"), kind)(assessment, **options)


def as_html(assessment: "Assessment") -> str:
    """The ranking as an HTML table; names of clients are data, and escaped."""
    ranking, ranks, mean = assessment.ranking, assessment.ranks, assessment.mean
    rows = [
        f"<tr><td>{ranks[client]}</td><td>{escape(printable(client))}</td><td>{number(assessment.scores[client])}</td>"
        f"<td>{assessment.rounds_scored[client]}</td><td>{number(mean[client])}</td></tr>"
        for client in ranking[:SHOWN]
    ]
    more = len(ranking) - len(rows)
    notes = [f"{more} more clients: to_frame() has them all"] if more > 0 else []
    if assessment.pending:
        notes.append("not final yet: round " + ", ".join(map(str, assessment.pending)))
    head = "".join(f"<th>{name}</th>" for name in ("rank", "client", "score", "rounds", "per round"))
    caption = f"<caption>{escape(assessment.method)}{''.join('; ' + note for note in notes)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
