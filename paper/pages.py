"""Tables as Markdown: our number beside the published one, "not run" where there is none."""

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
    "Spearman's ρ with the true order: mean ± standard deviation over the seeds, with the number of runs in round"
    " brackets and the published number in square brackets. A single run has no standard deviation. Averages, published"
    " ones included, are over the columns that were run. “undefined”: all scores are equal, mostly because too few"
    " rounds have a future. “not run”: there are no runs."
)


def page(table: Table, cell_results: Sequence[CellResult], run_results: RunResults, command: str) -> str:
    """The whole page of a table."""
    parts = [f"# {table.title}", f"    {command}", LEGEND if table.name != "table6" else "", *table.notes]
    parts += [
        describe_configurations(table, run_results),
        grids(cell_results),
        _trained(table, run_results),
        _made(table, run_results),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def grids(cell_results: Sequence[CellResult]) -> str:
    """One Markdown table per section, with the average in the last column."""
    sections = dict.fromkeys(cell_result.cell.section for cell_result in cell_results)
    parts = []
    for section in sections:
        chosen = [cell_result for cell_result in cell_results if cell_result.cell.section == section]
        parts.append((f"## {section}\n\n" if section else "") + _grid(chosen))
    return "\n\n".join(parts)


def _grid(cell_results: Sequence[CellResult]) -> str:
    columns = list(dict.fromkeys(cell_result.cell.column for cell_result in cell_results))
    rows: dict[str, dict[str, CellResult]] = {}
    for cell_result in cell_results:
        rows.setdefault(cell_result.cell.row, {})[cell_result.cell.column] = cell_result
    several = len(columns) > 1
    lines = [[""] + columns + (["average"] if several else [])]
    lines.append(["---"] * len(lines[0]))
    for row, found in rows.items():
        cells = [cell_text(found[column]) if column in found else "–" for column in columns]
        once = [
            cell_result for cell_result in found.values() if not cell_result.cell.adjusted
        ]  # plain means only, so that each run counts once
        lines.append([row, *cells] + ([_average(once)] if several else []))
    return "\n".join(map(markdown_line, lines))


def markdown_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def cell_text(cell_result: CellResult) -> str:
    """The text of a cell."""
    return _with_paper(_measured(cell_result), cell_result.cell.published, cell_result.cell.at is not None)


def _measured(cell_result: CellResult) -> str:
    if not cell_result.values:
        return "not run"
    mean, runs = cell_result.mean, len(cell_result.values)
    if mean is None:
        return f"undefined ({runs})"
    spread = "" if cell_result.spread is None else f" ± {cell_result.spread:.2f}"
    lost = runs - len(cell_result.defined)
    return f"{two(mean)}{spread} ({runs}{f', {lost} undefined' if lost else ''})"


def _average(cell_results: Sequence[CellResult]) -> str:
    mean, there, wanted = average(cell_results)
    ours = "not run" if mean is None else f"{two(mean)}{_partly(there, wanted)}"
    return _with_paper(ours, published_average(cell_results))


def over_cells(values: Sequence[float], wanted: int) -> str:
    """The mean over the cells, its standard error for two or more, and how many of the wanted cells there are.

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
    """Two decimals, halves rounded away from zero as in the paper.

    >>> two(0.775), two(-0.075), two(-0.001)
    ('0.78', '−0.08', '0.00')
    """
    text = str(Decimal(repr(round(value, 9))).quantize(Decimal("0.01"), ROUND_HALF_UP))
    return "0.00" if text == "-0.00" else text.replace("-", "−")


def headline(cell_results: Sequence[CellResult]) -> str:
    """Table 1 in short: one row per method, one column per setting, averaged over the configurations run.

    The last column is the mean over all cells with its standard error.
    """
    settings = list(dict.fromkeys(cell_result.cell.section for cell_result in cell_results))
    rows = list(dict.fromkeys(cell_result.cell.row for cell_result in cell_results))
    lines = [markdown_line(["", *settings, "mean"]), markdown_line(["---"] * (len(settings) + 2))]
    for row in rows:
        chosen = [cell_result for cell_result in cell_results if cell_result.cell.row == row]
        by_setting = [
            [cell_result for cell_result in chosen if cell_result.cell.section == setting] for setting in settings
        ]
        means = [cell_result.mean for cell_result in chosen if cell_result.mean is not None]
        ours = over_cells(means, len(chosen)) if means else "not run"
        lines.append(markdown_line([row, *map(_average, by_setting), _with_paper(ours, published_average(chosen))]))
    return "\n".join(lines) + "\n\n" + _counted(cell_results)


def _counted(cell_results: Sequence[CellResult]) -> str:
    cells = {(f.cell.section, f.cell.column) for f in cell_results}
    run = {(f.cell.section, f.cell.column) for f in cell_results if f.values}
    seeds = sorted({len(cell_result.values) for cell_result in cell_results if cell_result.values})
    each = (
        "no runs yet" if not seeds else f"{seeds[0]} to {seeds[-1]} runs each" if len(seeds) > 1 else f"{seeds[0]} each"
    )
    return (
        f"{len(run)} of {len(cells)} cells (configuration × setting) have runs, {each}; ± is the standard error of the"
        " mean over the cells."
    )


def describe_configurations(table: Table, run_results: RunResults) -> str:
    """Datasets and models of the configurations in one line, followed by the runs that are unhealthy.

    The title of a dataset says where it differs from the published one.
    """
    titles: dict[str, str] = {}
    for cell in table.cells:
        name = configuration_of(cell.experiment)
        for run in table.runs(cell):
            if (facts := run_results.facts(run)) is not None:
                titles[name] = f"{facts.dataset}, {run.model}"
        titles.setdefault(name, f"{cell.experiment.dataset}, {cell.experiment.model} (not run)")
    line = "Configurations: " + "; ".join(f"**{name}** {title}" for name, title in sorted(titles.items())) + "."
    return f"{line} {note(table, run_results)}".rstrip()


def _trained(table: Table, run_results: RunResults) -> str:
    """Training sizes, and the number of test images that SV used."""
    heads = ["configuration", "aggregation", "clients", "rounds", "local training in a round", "test images for SV"]
    lines: dict[str, None] = {markdown_line(heads): None, markdown_line(["---"] * len(heads)): None}
    for cell in table.cells:
        for run in table.runs(cell):
            if run_results.facts(run) is None:
                continue
            amount = f"{run.steps} steps" if run.steps else f"{run.epochs:g} epochs"
            local = f"{amount} of {run.batch}, {run.optimiser} at {run.learning_rate:g}"
            sizes = [str(run.clients), str(run.rounds), local, f"at most {validation_images(run)}"]
            lines[markdown_line([configuration_of(run), run.aggregation, *sizes])] = None
    return "\n".join(["## What was trained", "", *lines]) if len(lines) > 2 else ""


def _made(table: Table, run_results: RunResults) -> str:
    """Machines, commits and computing time."""
    machines: dict[str, None] = {}
    commits: dict[str, None] = {}
    seconds, counted = 0.0, set[tuple[str, str]]()
    for cell in table.cells:
        for run in table.runs(cell):
            for spec in cell.specs:
                key = (run.name, spec.key(run))
                run_result = run_results.get(run, spec) if key not in counted else None
                if run_result is not None:
                    counted.add(key)
                    machines[f"{run_result.provenance['machine']}, Python {run_result.provenance['python']}"] = None
                    commits[run_result.provenance["commit"]] = None
                    seconds += run_result.seconds
    if not counted:
        return ""
    where = f"on {'; '.join(machines)}, at {', '.join(commits)}"
    return f"{len(counted)} results {where}, in {seconds / 60:.1f} minutes (training not counted)."


def refresh(file: Path, parts: Mapping[str, str]) -> None:
    """Replace the text between `<!-- begin: NAME -->` and `<!-- end: NAME -->` of a page, for each name it marks."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise BadFile(f"{file} cannot be read ({error.strerror})") from error
    for name, part in parts.items():
        marked = re.compile(rf"(<!-- begin: {re.escape(name)} -->\n).*?(<!-- end: {re.escape(name)} -->)", re.DOTALL)
        text = marked.sub(lambda found, part=part: f"{found[1]}\n{part.strip()}\n\n{found[2]}", text)  # type: ignore[misc]
    write_whole(file, lambda part_file: part_file.write_text(text, encoding="utf-8"))
