"""The report as Markdown, for an issue, a wiki or a mail."""

import re
from collections.abc import Callable, Sequence

from fedcoast.reports import health
from fedcoast.reports import phrasing as wording
from fedcoast.reports.explanations import meaning
from fedcoast.reports.facts import flat, told
from fedcoast.reports.phrasing import Passage, interval, number, percent
from fedcoast.reports.report_data import ClientSummary, ReportData


def markdown(account: ReportData) -> str:
    """Words and tables; the figures are in the other forms."""
    parts = [
        f"# Contributions: {plain(account.title)}",
        " ".join(_passage(said) for said in wording.findings(account)),
        f"**Health of the model:** {plain(warning)}" if (warning := health.warning(account)) else "",
        plain(wording.about(account)),
        _ranking(account),
    ]
    if account.above is not None and len(account.standings) > 1:
        parts += ["## Who can be told apart", _passage(wording.settling(account))]
    if account.rounds:
        parts += ["## Who took part", plain(wording.coverage(account)), _quarantined(account)]
    if account.rewards is not None:
        parts += ["## Shares", f"Given out {plain(wording.rule(account.rewards))}."]
    parts += [_methods(account)]
    for title, said in meaning(account):
        parts += [f"## {title}", "\n\n".join(map(plain, said))]
    parts += ["## Settings and versions", _settings(account)]
    return "\n\n".join(filter(None, parts)) + "\n"


def plain(text: str) -> str:
    """Text that no reader of Markdown takes for markup, in one line.

    >>> plain("<b>*a* | [x](y)")
    '&lt;b&gt;\\\\*a\\\\* \\\\| \\\\[x\\\\](y)'
    """
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~#$])", r"\\\1", escaped)


def named(standing: ClientSummary) -> str:
    """A client's name, kept apart from the direction of writing around it."""
    return wording.isolated(plain(standing.name))


def _passage(parts: Passage) -> str:
    return "".join(plain(part) if isinstance(part, str) else named(part) for part in parts)


def _ranking(account: ReportData) -> str:
    columns = _columns(account)
    rows = [[cell(standing) for _, cell in columns] for standing in account.standings]
    return _table([head for head, _ in columns], rows, "rlr" + "r" * (len(columns) - 3))


def _columns(account: ReportData) -> list[tuple[str, Callable[[ClientSummary], str]]]:
    sure, evens = account.level is not None, account.evens
    columns: list[tuple[bool, str, Callable[[ClientSummary], str]]] = [
        (True, "rank", lambda s: str(s.rank)),
        (True, "client", named),
        (True, "score", lambda s: number(s.score)),
        (sure, f"{percent(account.level)} range", lambda s: interval(s.interval)),
        (True, "per round", lambda s: number(s.mean)),
        (evens, "evened", lambda s: number(s.evened)),
        (evens and sure, "evened, range", lambda s: interval(s.evened_interval)),
        (sure, "rank could be", lambda s: "–" if s.ranks is None else "–".join(map(str, dict.fromkeys(s.ranks)))),
        (sure and account.zero_is_idle, "verdict", lambda s: s.verdict or "–"),
        (True, "rounds", lambda s: str(s.seen)),
        (account.rewards is not None, "share", lambda s: percent(s.share, 2)),
    ]
    return [(head, cell) for shown, head, cell in columns if shown]


def _quarantined(account: ReportData) -> str:
    names = {standing.client: standing for standing in account.standings}
    rows = [[str(n), named(names[client]), plain(" ".join(why.split()))] for n, client, why in account.quarantined]
    return _table(["round", "client", "why it was left out"], rows, "rll") if rows else ""


def _methods(account: ReportData) -> str:
    comparison = account.comparison
    if comparison is None or not comparison.assessments:
        return ""
    ranks = {name: answer.ranks for name, answer in comparison.assessments.items()}
    rows = [[named(s), *(str(of[s.client]) for of in ranks.values())] for s in account.standings]
    return "## Other methods\n\n" + _table(["client", *map(plain, ranks)], rows, "l" + "r" * len(ranks))


def _settings(account: ReportData) -> str:
    facts = {
        "method": account.method,
        **account.settings,
        **flat(account.facts),
        **account.versions,
        "made": account.made,
        **({"chain head": account.head} if account.head else {}),
    }
    return _table(["what", "value"], [[plain(str(name)), plain(told(value))] for name, value in facts.items()], "ll")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], sides: str) -> str:
    lines = [heads, ["---:" if side == "r" else "---" for side in sides], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
