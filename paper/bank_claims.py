"""How often "A contributed more than B" is right on the training bank, by margin and setting, as a page.

    python -m paper.bank_claims

Two ways to claim a pair: its scores differ by more than the joint reach at 90 %, as verdicts, ranks and reports ask
for; or the probability that one is above the other (`prob_above`) is at least 95 %, each pair alone. The page,
results/claims.md, shows what `METHOD_MARGIN` of `fedcoast.analysis.uncertainty` does to claims.
"""

from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

from fedcoast.analysis.uncertainty import METHOD_MARGIN, uncertainty
from paper.bank import BankRun, read_all
from paper.bank_page import RESULTS, is_tuning
from paper.bank_scores import DEFAULT, Candidate, answer
from paper.pages import markdown_line

MARGINS = (1.0, 1.5, 2.0, 3.0)
LEVEL = 0.90
ALONE = 0.95
RULES = {
    "all": f"all pairs of a run at once, {LEVEL:.0%}: what verdicts, ranks and reports claim",
    "alone": f"each pair alone, {ALONE:.0%} (`prob_above`)",
}

Counts = tuple[int, int, int]  # pairs, claimed, right


def claims(run: BankRun, margin: float, rule: str) -> Counts:
    """Pairs of clients that differ in truth, how many the default claims to differ, and how many of these rightly."""
    truth = run.truth or []
    sure = uncertainty(answer(run, Candidate(DEFAULT.horizon)), LEVEL, margin=margin)
    pairs = claimed = right = 0
    for (i, first), (j, second) in combinations(enumerate(sure.clients), 2):
        if truth[int(first)] == truth[int(second)]:
            continue
        pairs += 1
        clear = sure.values[first] - sure.values[second] > sure.reach[i, j]
        if clear if rule == "all" else sure.prob_above[i, j] >= ALONE:
            claimed += 1
            right += truth[int(first)] > truth[int(second)]
    return pairs, claimed, right


def tables(runs: Iterable[BankRun]) -> list[str]:
    """A table for each rule."""
    chosen = list(runs)
    return [
        line
        for rule, words in RULES.items()
        for line in ("", f"**{words[0].upper()}{words[1:]}**", "", *table(chosen, rule))
    ]


def table(runs: Iterable[BankRun], rule: str) -> list[str]:
    counts: dict[str, dict[float, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0, 0]))
    for run in runs:
        for margin in MARGINS:
            for at, number in enumerate(claims(run, margin, rule)):
                counts[run.experiment.setting][margin][at] += number
    heads = [f"margin {margin:g}" + (" (ours)" if margin == METHOD_MARGIN else "") for margin in MARGINS]
    lines = [markdown_line(["setting", "pairs", *heads]), markdown_line(["---"] * (len(MARGINS) + 2))]
    for setting, by_margin in sorted(counts.items()):
        cells = [_cell(*by_margin[margin]) for margin in MARGINS]
        lines.append(markdown_line([setting, str(by_margin[MARGINS[0]][0]), *cells]))
    return lines


def _cell(pairs: int, claimed: int, right: int) -> str:
    return f"{claimed / pairs:.0%} claimed, {right / claimed:.0%} right" if claimed else "none claimed"


def main() -> None:
    bank = [run for run in read_all(RESULTS / "bank") if run.truth is not None]
    lines = [
        "# Claims: how often “A contributed more than B” is right",
        "",
        "Pairs of clients with a true order, by CoAst's default. Command: `python -m paper.bank_claims`.",
        "",
        "## Runs that the default was chosen by",
        *tables(run for run in bank if is_tuning(run)),
    ]
    if judged := [run for run in bank if not is_tuning(run)]:
        lines += ["", "## Runs that the default was not chosen by", *tables(judged)]
    lines += [
        "",
        "Pairs whose order the method cannot tell (`Assessment.unordered`) are never claimed: two clients at the same",
        "place on the line of clients, and all pairs where neither end of the line is clearly better. What happens to",
        "clients that are equal in truth, docs/verdicts.md says.",
    ]
    Path(RESULTS / "claims.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
