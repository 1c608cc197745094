"""What the paper concludes from its tables, as differences between rows, over the seeds that both rows have.

Differences are computed within each cell and averaged over the cells; ± is the standard error over the cells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from statistics import fmean

from paper.cell_results import CellResult
from paper.cells import MODES
from paper.default_selection import OBSERVER_FIRST, ROWS
from paper.method_specs import READING_TITLES
from paper.pages import markdown_line, over_cells, two
from paper.paper_tables import ARM_TITLES, BASELINES

MINUS = " less "


@dataclass(frozen=True)
class Side:
    """The cells of one row, in one section or in all. `{coast}` and `{mode}` stand for a reading and a mode."""

    row: str
    section: str | None = None

    def places(self, cell_results: Sequence[CellResult], coast: str, mode: str) -> dict[tuple[str, str], CellResult]:
        row, section = (
            None if text is None else text.format(coast=coast, mode=mode) for text in (self.row, self.section)
        )
        return {
            ("" if section else cell_result.cell.section, cell_result.cell.column): cell_result
            for cell_result in cell_results
            if cell_result.cell.row == row and section in (None, cell_result.cell.section)
        }


@dataclass(frozen=True)
class Claim:
    """One row or section compared with another."""

    table: str
    words: str
    first: Side
    second: Side

    def in_mode(self, mode: str) -> bool:
        """Whether the rows belong to this mode; rows without a mode are in-loop."""
        return mode == "in-loop" or "{mode}" in self.first.row


CLAIMS = (
    *(
        Claim("table1", f"CoAst{MINUS}{row}", Side("{coast}, {mode}"), Side(row))
        for row, method, _ in BASELINES
        if not method.endswith("-research-code")
    ),
    *(
        Claim("table2", f"k = 5{MINUS}k = {k}", Side("{coast}, {mode}, k=5"), Side(f"{{coast}}, {{mode}}, k={k}"))
        for k in (1, 2, 10)
    ),
    *(
        Claim("table3", f"O{MINUS}{arm}", Side(f"{{coast}}, {ARM_TITLES['O']}"), Side(f"{{coast}}, {ARM_TITLES[arm]}"))
        for arm in ("Exp1", "Exp2", "Exp3")
    ),
    *(
        Claim("table4", f"α = 0.02{MINUS}α = {step}", Side("α = 0.02", "{coast}"), Side(f"α = {step}", "{coast}"))
        for step in ("0.01", "avg")
    ),
    Claim(
        "table5",
        f"10 clients{MINUS}5 clients, k = 10",
        Side("{coast}, {mode}, k=10", "10 clients"),
        Side("{coast}, {mode}, k=10", "5 clients"),
    ),
)


def claims(found: Mapping[str, Sequence[CellResult]]) -> str:
    """One line per claim of the given tables: the published difference, and ours in each reading and mode."""
    columns = [(title, mode) for mode in MODES.values() for title in READING_TITLES.values()]
    heads = [f"{title.removeprefix('CoAst, ')}, {mode}" for title, mode in columns]
    lines = [["table", "difference", "published", *heads], ["---"] * (3 + len(heads))]
    for claim in CLAIMS:
        if claim.table in found:
            cells = [
                _difference(claim, found[claim.table], title, mode) if claim.in_mode(mode) else "–"
                for title, mode in columns
            ]
            lines.append([claim.table.removeprefix("table"), claim.words, _published(claim, found), *cells])
    return "\n".join(map(markdown_line, lines))


def default_margins(cell_results: Sequence[CellResult]) -> str:
    """How far our default is ahead of each other row, on the same rounds."""
    ours, *others = ROWS
    lines = [["our default less", *OBSERVER_FIRST.values()], ["---"] * (1 + len(OBSERVER_FIRST))]
    for row in others:
        claim = Claim("holdout", f"{ours}{MINUS}{row}", Side(f"{ours}, {{mode}}"), Side(f"{row}, {{mode}}"))
        lines.append([row, *(_difference(claim, cell_results, ours, mode) for mode in OBSERVER_FIRST.values())])
    return "\n".join(map(markdown_line, lines))


def faults(cell_results: Sequence[CellResult]) -> str:
    """Each baseline of table 1 as published and as the public code computes it, on the same rounds."""
    lines = [["", "the method", "the public code", "published", "mean difference of a run, in size", "runs"]]
    lines.append(["---"] * len(lines[0]))
    for (row, _, _), (faulty, _, _) in zip(BASELINES[::2], BASELINES[1::2], strict=True):
        right, wrong = (Side(name).places(cell_results, "", "") for name in (row, faulty))
        both = [place for place in right if right[place].mean is not None and wrong[place].mean is not None]
        if not both:
            lines.append([row, *["not run"] * 4, "0"])
            continue
        apart = [
            abs(value - wrong[place].values[seed])
            for place in both
            for seed, value in right[place].values.items()
            if seed in wrong[place].values
        ]
        means = [fmean(side[place].mean or 0.0 for place in both) for side in (right, wrong)]
        printed = fmean(right[place].cell.published or 0.0 for place in both)
        lines.append([row, *map(two, (*means, printed, fmean(apart))), str(len(apart))])
    return "\n".join(map(markdown_line, lines))


def _difference(claim: Claim, cell_results: Sequence[CellResult], title: str, mode: str) -> str:
    pairs = _pairs(claim, cell_results, title, mode)
    ours = [gaps for one, other in pairs if (gaps := _gaps(one, other))]
    if not ours:
        return "not run" if pairs else "–"
    return over_cells(list(map(fmean, ours)), len(pairs))


def _gaps(one: CellResult, other: CellResult) -> list[float]:
    """The difference between two cells, for each seed that both have."""
    gaps = [value - other.values[seed] for seed, value in one.values.items() if seed in other.values]
    return [gap for gap in gaps if not isnan(gap)]


def _published(claim: Claim, found: Mapping[str, Sequence[CellResult]]) -> str:
    """The published difference over all cells of the claim."""
    pairs = _pairs(claim, found[claim.table], next(iter(READING_TITLES.values())), "in-loop")
    theirs = [(one.cell.published, other.cell.published) for one, other in pairs]
    gaps = [one - other for one, other in theirs if one is not None and other is not None]
    return two(fmean(gaps)) if gaps else "–"


def _pairs(
    claim: Claim, cell_results: Sequence[CellResult], title: str, mode: str
) -> list[tuple[CellResult, CellResult]]:
    first, second = (side.places(cell_results, title, mode) for side in (claim.first, claim.second))
    return [(one, second[place]) for place, one in first.items() if place in second]
