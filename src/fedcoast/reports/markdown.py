"""The report as Markdown, for an issue, a wiki or a mail."""

import re
from collections.abc import Callable, Sequence

from fedcoast.reports import flagged, health
from fedcoast.reports import phrasing as phrasing
from fedcoast.reports.explanations import explanations
from fedcoast.reports.facts import flat, in_words
from fedcoast.reports.phrasing import Passage, interval, number, percent
from fedcoast.reports.report_data import ClientSummary, ReportData


def markdown(report: ReportData) -> str:
    """Text and tables; the other forms have the figures."""
    parts = [
        f"# Contributions: {plain(report.title)}",
        " ".join(_passage(finding) for finding in phrasing.findings(report)),
        f"**Health of the model:** {plain(warning)}" if (warning := health.warning(report)) else "",
        plain(phrasing.about(report)),
        _ranking(report),
        "\n".join(f"* **Flagged:** {plain(sentence)}" for sentence in flagged.sentences(report)),
    ]
    if report.prob_above is not None and len(report.summaries) > 1:
        parts += ["## Who can be told apart", _passage(phrasing.settling(report))]
    if report.rounds:
        parts += ["## Who took part", plain(phrasing.coverage(report)), _quarantined(report)]
    if report.rewards is not None:
        parts += ["## Shares", f"Given out {plain(phrasing.rule(report.rewards))}."]
    parts += [_methods(report)]
    for title, paragraphs in explanations(report):
        parts += [f"## {title}", "\n\n".join(map(plain, paragraphs))]
    parts += ["## Settings and versions", _settings(report)]
    return "\n\n".join(filter(None, parts)) + "\n"


def plain(text: str) -> str:
    """Text in one line, with everything escaped that Markdown would read as markup.

    >>> plain("<b>*a* | [x](y)")
    '&lt;b&gt;\\\\*a\\\\* \\\\| \\\\[x\\\\](y)'
    """
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~#$])", r"\\\1", escaped)


def named(summary: ClientSummary) -> str:
    """A client's name, kept apart from the direction of writing around it."""
    return phrasing.isolated(plain(summary.name))


def _passage(parts: Passage) -> str:
    return "".join(plain(part) if isinstance(part, str) else named(part) for part in parts)


def _ranking(report: ReportData) -> str:
    columns = _columns(report)
    rows = [[cell(summary) for _, cell in columns] for summary in report.summaries]
    return _table([head for head, _ in columns], rows, "rlr" + "r" * (len(columns) - 3))


def _columns(report: ReportData) -> list[tuple[str, Callable[[ClientSummary], str]]]:
    sure, adjusts = report.level is not None, report.adjusts
    columns: list[tuple[bool, str, Callable[[ClientSummary], str]]] = [
        (True, "rank", lambda s: str(s.rank)),
        (True, "client", named),
        (True, "score", lambda s: number(s.score)),
        (sure, f"{percent(report.level)} range", lambda s: interval(s.interval)),
        (True, "per round", lambda s: number(s.mean)),
        (adjusts, "adjusted mean", lambda s: number(s.adjusted_mean)),
        (adjusts and sure, "adjusted range", lambda s: interval(s.adjusted_interval)),
        (sure, "rank could be", lambda s: "–" if s.ranks is None else "–".join(map(str, dict.fromkeys(s.ranks)))),
        (sure and report.zero_is_idle, "verdict", lambda s: s.verdict or "–"),
        (True, "rounds", lambda s: str(s.rounds_scored)),
        (report.rewards is not None, "share", lambda s: percent(s.share, 2)),
    ]
    return [(head, cell) for shown, head, cell in columns if shown]


def _quarantined(report: ReportData) -> str:
    names = {summary.client: summary for summary in report.summaries}
    rows = [[str(n), named(names[client]), plain(" ".join(why.split()))] for n, client, why in report.quarantined]
    return _table(["round", "client", "why it was left out"], rows, "rll") if rows else ""


def _methods(report: ReportData) -> str:
    comparison = report.comparison
    if comparison is None or not comparison.assessments:
        return ""
    ranks = {name: answer.ranks for name, answer in comparison.assessments.items()}
    rows = [[named(s), *(str(of[s.client]) for of in ranks.values())] for s in report.summaries]
    return "## Other methods\n\n" + _table(["client", *map(plain, ranks)], rows, "l" + "r" * len(ranks))


def _settings(report: ReportData) -> str:
    facts = {
        "method": report.method,
        **report.settings,
        **flat(report.facts),
        **report.versions,
        "made": report.made,
        **({"chain head": report.head} if report.head else {}),
    }
    return _table(
        ["what", "value"], [[plain(str(name)), plain(in_words(value))] for name, value in facts.items()], "ll"
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], sides: str) -> str:
    lines = [heads, ["---:" if side == "r" else "---" for side in sides], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
