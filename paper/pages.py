"""Tables as Markdown: ours beside the published number, "not run" where nothing was."""

import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from statistics import fmean, stdev

from fedcoast.errors import BadFile
from fedcoast.storage.files import write_whole
from paper.cell_results import CellResult, average, published_average
from paper.cells import Table, configuration_of
from paper.health import note
from paper.method_specs import validation_images
from paper.run_results import RunResults

LEGEND = (
    "Spearman's ρ with the planted order: mean ± standard deviation over the seeds, the number of runs in round"
    " brackets, the published number in square ones. A single run has no spread. Averages are over the columns that"
    " were run, those of the published numbers too. “undefined”: no two clients could be told apart, mostly because too"
    " few rounds have a future. “not run” is just that."
)


def page(table: Table, findings: Sequence[CellResult], answers: RunResults, command: str) -> str:
    """The whole page of a table."""
    parts = [f"# {table.title}", f"    {command}", LEGEND if table.name != "table6" else "", *table.notes]
    parts += [ground(table, answers), grids(findings), _trained(table, answers), _made(table, answers)]
    return "\n\n".join(part for part in parts if part) + "\n"


def grids(findings: Sequence[CellResult]) -> str:
    """A Markdown table for each section: rows down, columns across, the average at the end."""
    sections = dict.fromkeys(finding.slot.section for finding in findings)
    parts = []
    for section in sections:
        chosen = [finding for finding in findings if finding.slot.section == section]
        parts.append((f"## {section}\n\n" if section else "") + _grid(chosen))
    return "\n\n".join(parts)


def _grid(findings: Sequence[CellResult]) -> str:
    columns = list(dict.fromkeys(finding.slot.column for finding in findings))
    rows: dict[str, dict[str, CellResult]] = {}
    for finding in findings:
        rows.setdefault(finding.slot.row, {})[finding.slot.column] = finding
    several = len(columns) > 1
    lines = [[""] + columns + (["average"] if several else [])]
    lines.append(["---"] * len(lines[0]))
    for row, found in rows.items():
        cells = [cell(found[column]) if column in found else "–" for column in columns]
        once = [finding for finding in found.values() if not finding.slot.evened]  # the same runs, by plain means
        lines.append([row, *cells] + ([_average(once)] if several else []))
    return "\n".join(map(markdown_line, lines))


def markdown_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def cell(finding: CellResult) -> str:
    """What stands in a slot."""
    return _with_paper(_measured(finding), finding.slot.published, finding.slot.at is not None)


def _measured(finding: CellResult) -> str:
    if not finding.values:
        return "not run"
    mean, runs = finding.mean, len(finding.values)
    if mean is None:
        return f"undefined ({runs})"
    spread = "" if finding.spread is None else f" ± {finding.spread:.2f}"
    lost = runs - len(finding.defined)
    return f"{two(mean)}{spread} ({runs}{f', {lost} undefined' if lost else ''})"


def _average(findings: Sequence[CellResult]) -> str:
    mean, there, wanted = average(findings)
    ours = "not run" if mean is None else f"{two(mean)}{_partly(there, wanted)}"
    return _with_paper(ours, published_average(findings))


def over_cells(values: Sequence[float], wanted: int) -> str:
    """The mean of what the cells have, its standard error from two of them on, and how many of those wanted there are.

    >>> over_cells([0.5, 1.0], 16), over_cells([0.5], 1)
    ('0.75 ± 0.25 (2 of 16)', '0.50')
    """
    error = f" ± {stdev(values) / len(values) ** 0.5:.2f}" if len(values) > 1 else ""
    return f"{two(fmean(values))}{error}{_partly(len(values), wanted)}"


def _partly(there: int, wanted: int) -> str:
    return "" if there == wanted else f" ({there} of {wanted})"


def _with_paper(ours: str, published: float | None, finely: bool = False) -> str:
    return ours if published is None else f"{ours} [{published:.4f}]" if finely else f"{ours} [{two(published)}]"


def two(value: float) -> str:
    """Two decimals, halves away from zero as the paper has them.

    >>> two(0.775), two(-0.075), two(-0.001)
    ('0.78', '−0.08', '0.00')
    """
    text = str(Decimal(repr(round(value, 9))).quantize(Decimal("0.01"), ROUND_HALF_UP))
    return "0.00" if text == "-0.00" else text.replace("-", "−")


def headline(findings: Sequence[CellResult]) -> str:
    """Table 1 in short: a row for each method, a column for each setting, averaged over the configurations run.

    The last column is over all cells, with the standard error that they leave.
    """
    settings = list(dict.fromkeys(finding.slot.section for finding in findings))
    rows = list(dict.fromkeys(finding.slot.row for finding in findings))
    lines = [markdown_line(["", *settings, "mean"]), markdown_line(["---"] * (len(settings) + 2))]
    for row in rows:
        chosen = [finding for finding in findings if finding.slot.row == row]
        by_setting = [[finding for finding in chosen if finding.slot.section == setting] for setting in settings]
        means = [finding.mean for finding in chosen if finding.mean is not None]
        ours = over_cells(means, len(chosen)) if means else "not run"
        lines.append(markdown_line([row, *map(_average, by_setting), _with_paper(ours, published_average(chosen))]))
    return "\n".join(lines) + "\n\n" + _counted(findings)


def _counted(findings: Sequence[CellResult]) -> str:
    cells = {(f.slot.section, f.slot.column) for f in findings}
    run = {(f.slot.section, f.slot.column) for f in findings if f.values}
    seeds = sorted({len(finding.values) for finding in findings if finding.values})
    each = (
        "no runs yet" if not seeds else f"{seeds[0]} to {seeds[-1]} runs each" if len(seeds) > 1 else f"{seeds[0]} each"
    )
    return (
        f"{len(run)} of {len(cells)} cells (configuration × setting) have runs, {each}; ± is the standard error of the"
        " mean over the cells."
    )


def ground(table: Table, answers: RunResults) -> str:
    """What the configurations stand on, in a line; the titles of data say where they are not the published ones.

    Which runs are unhealthy comes after it: no number is made of them in silence.
    """
    titles: dict[str, str] = {}
    for slot in table.slots:
        name = configuration_of(slot.experiment)
        for run in table.runs(slot):
            if (facts := answers.facts(run)) is not None:
                titles[name] = f"{facts.dataset}, {run.model}"
        titles.setdefault(name, f"{slot.experiment.dataset}, {slot.experiment.model} (not run)")
    line = "Configurations: " + "; ".join(f"**{name}** {title}" for name, title in sorted(titles.items())) + "."
    return f"{line} {note(table, answers)}".rstrip()


def _trained(table: Table, answers: RunResults) -> str:
    """The sizes of what was trained and of what SV was given."""
    heads = ["configuration", "aggregation", "clients", "rounds", "local training in a round", "images that value SV"]
    lines: dict[str, None] = {markdown_line(heads): None, markdown_line(["---"] * len(heads)): None}
    for slot in table.slots:
        for run in table.runs(slot):
            if answers.facts(run) is None:
                continue
            amount = f"{run.steps} steps" if run.steps else f"{run.epochs:g} epochs"
            local = f"{amount} of {run.batch}, {run.optimiser} at {run.learning_rate:g}"
            sizes = [str(run.clients), str(run.rounds), local, f"at most {validation_images(run)}"]
            lines[markdown_line([configuration_of(run), run.aggregation, *sizes])] = None
    return "\n".join(["## What was trained", "", *lines]) if len(lines) > 2 else ""


def _made(table: Table, answers: RunResults) -> str:
    """Where and with what: machines, commits, the time it took to answer."""
    machines: dict[str, None] = {}
    commits: dict[str, None] = {}
    seconds, asked = 0.0, {}
    for slot in table.slots:
        for run in table.runs(slot):
            for question in slot.questions:
                key = (run.name, question.key(run))
                answer = answers.answer(run, question) if key not in asked else None
                if answer is not None:
                    asked[key] = True
                    machines[f"{answer.made['machine']}, Python {answer.made['python']}"] = None
                    commits[answer.made["commit"]] = None
                    seconds += answer.seconds
    if not asked:
        return ""
    where = f"on {'; '.join(machines)}, at {', '.join(commits)}"
    return f"{len(asked)} answers {where}, in {seconds / 60:.1f} minutes of asking (training not counted)."


def refresh(file: Path, parts: Mapping[str, str]) -> None:
    """Put new text between `<!-- begin: NAME -->` and `<!-- end: NAME -->` of a page, for each name it marks."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise BadFile(f"{file} cannot be read ({error.strerror})") from error
    for name, part in parts.items():
        marked = re.compile(rf"(<!-- begin: {re.escape(name)} -->\n).*?(<!-- end: {re.escape(name)} -->)", re.DOTALL)
        text = marked.sub(lambda found, part=part: f"{found[1]}\n{part.strip()}\n\n{found[2]}", text)  # type: ignore[misc]
    write_whole(file, lambda part_file: part_file.write_text(text, encoding="utf-8"))
