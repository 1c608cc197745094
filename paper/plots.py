"""Pictures of the tables; the same numbers give the same SVG file."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paper.cell_results import CellResult, average, published_average
from paper.cells import Cell, Table
from paper.curves import assessed_runs, band, running_scores, window_agreement
from paper.method_specs import READING_TITLES
from paper.pages import two
from paper.paper_tables import HORIZONS
from paper.run_results import RunResult, RunResults

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "fedcoast",
    "svg.fonttype": "path",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "legend.frameon": False,
}
# The colour-blind-safe palette of Okabe and Ito.
BLUE, ORANGE, GREEN, PINK, SKY, RED = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"
READING_COLOURS = dict(zip(READING_TITLES, (RED, BLUE, ORANGE, GREEN), strict=True))
MODE_LINES = {"in-loop": "-", "observer": "--"}


def draw(
    tables: Sequence[Table],
    found: dict[str, list[CellResult]],
    run_results: RunResults,
    folder: Path,
    kind: str = "svg",
) -> tuple[list[Path], list[Path]]:
    """Draw every picture that the tables have runs for; returns the files drawn, and those that lack credits."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn, left = [], []
    with mpl.rc_context(STYLE):
        for name, figure in _figures(tables, found, run_results).items():
            file = folder / f"{name}.{kind}"
            if figure is None:
                left.append(file)
                continue
            figure.savefig(file, metadata={"Date": None} if kind == "svg" else None, dpi=110)
            drawn.append(file)
    return drawn, left


def _figures(
    tables: Sequence[Table], found: dict[str, list[CellResult]], run_results: RunResults
) -> dict[str, Figure | None]:
    """Figures by name; None where a picture needs credits by round and some are missing."""
    figures: dict[str, Figure | None] = {}
    for table in tables:
        cell_results = found[table.name]
        if not any(cell_result.values for cell_result in cell_results):
            continue
        if table.name == "table1":
            figures["methods"] = heat_map(cell_results)
            for column in dict.fromkeys(f.cell.column for f in cell_results if f.values):
                counted = all(run_result.credits is not None for run_result in _run_results(table, column, run_results))
                figures[f"windows-{column}"] = windows(table, column, run_results) if counted else None
                figures[f"scores-{column}"] = trajectories(table, column, run_results) if counted else None
        elif table.name == "table2":
            figures["horizons"] = horizons(cell_results)
        elif table.name == "table6":
            figures["accuracy"] = accuracy(table, run_results)
    return figures


def heat_map(cell_results: Sequence[CellResult]) -> Figure:
    """Every method in every setting, averaged over the configurations that were run, above the paper's average."""
    rows = list(dict.fromkeys(cell_result.cell.row for cell_result in cell_results))
    settings = list(dict.fromkeys(cell_result.cell.section for cell_result in cell_results))
    figure, (axes,) = _figure(1, 9.5, 0.42 * len(rows) + 1.2)
    means = np.full((len(rows), len(settings)), np.nan)
    for y, row in enumerate(rows):
        for x, setting in enumerate(settings):
            chosen = [f for f in cell_results if f.cell.row == row and f.cell.section == setting]
            mean, there, wanted = average(chosen)
            printed = published_average(chosen)
            small = [] if printed is None else [f"paper {two(printed)}"]
            small += [f"{there} of {wanted}"] if 0 < there < wanted else []
            if mean is not None:
                means[y, x] = mean
            ours = "not run" if mean is None else two(mean)
            dark = mean is not None and abs(mean) > 0.6
            colour = "white" if dark else "black"
            axes.text(x, y - (0.14 if small else 0), ours, ha="center", va="center", color=colour, fontsize=9)
            axes.text(x, y + 0.24, " · ".join(small), ha="center", va="center", color=colour, fontsize=6.5)
    painted = axes.imshow(means, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
    axes.set_facecolor("#eeeeee")
    axes.set_xticks(range(len(settings)), settings)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    for side in axes.spines.values():
        side.set_visible(False)
    figure.colorbar(painted, ax=axes, shrink=0.6, label="Spearman's ρ with the true order")
    return figure


def horizons(cell_results: Sequence[CellResult]) -> Figure:
    """Agreement over k, a panel for each setting: readings by colour, in-loop or observer by line, the paper grey."""
    settings = list(dict.fromkeys(cell_result.cell.section for cell_result in cell_results))
    figure, panels = _figure(len(settings), 10, 3.2, sharey=True)
    for axes, setting in zip(panels, settings, strict=True):
        here = [
            cell_result for cell_result in cell_results if cell_result.cell.section == setting and cell_result.cell.spec
        ]
        for reading, title in READING_TITLES.items():
            for mode, line in MODE_LINES.items():
                points = [_at_horizon(here, f"{title}, {mode}, k={k}") for k in HORIZONS]
                label = f"{title.removeprefix('CoAst, ')}, {mode}"
                known = [(x, y) for x, y in enumerate(points) if y is not None]
                if known:
                    axes.plot(
                        *zip(*known, strict=True), line, color=READING_COLOURS[reading], marker="o", ms=3, label=label
                    )
        printed = [_printed(here, k) for k in HORIZONS]
        theirs = [value for value in printed if value is not None]
        if len(theirs) == len(HORIZONS):
            axes.plot(range(len(HORIZONS)), theirs, color="0.6", lw=3, zorder=0, label="the paper, all configurations")
        axes.set_xticks(range(len(HORIZONS)), map(str, HORIZONS))
        axes.set_title(setting)
        axes.set_xlabel("rounds of future k")
        _agreement_axis(axes)
    panels[0].set_ylabel("Spearman's ρ, mean over\nthe configurations run")
    _legend(figure, panels)
    return figure


def _at_horizon(cell_results: Sequence[CellResult], row: str) -> float | None:
    return average([cell_result for cell_result in cell_results if cell_result.cell.row == row])[0]


def _printed(cell_results: Sequence[CellResult], horizon: int) -> float | None:
    chosen = {f.cell.column: f.cell.published for f in cell_results if f.cell.row.endswith(f", k={horizon}")}
    values = [value for value in chosen.values() if value is not None]
    return float(np.mean(values)) if values and len(values) == len(chosen) else None


WINDOW_ROWS = {
    "SV (exact Shapley)": ("black", "-"),
    "CGSV, the public code": (PINK, "-"),
    **{
        f"{title}, {mode}": (READING_COLOURS[reading], line)
        for reading, title in READING_TITLES.items()
        for mode, line in MODE_LINES.items()
    },
}


def windows(table: Table, column: str, run_results: RunResults) -> Figure:
    """Agreement with the true order within windows of rounds, which shows the phases of training."""
    settings = list(dict.fromkeys(cell.section for cell in table.cells))
    figure, panels = _figure(len(settings), 10, 3.4, sharey=True)
    width = 0
    for axes, setting in zip(panels, settings, strict=True):
        for row, (colour, line) in WINDOW_ROWS.items():
            cell = _cell(table, setting, row, column)
            width = max(3, cell.experiment.rounds // 4)
            series = [
                window_agreement(run_result, truth, width)
                for _, run_result, truth in assessed_runs(table, cell, run_results)
            ]
            if series and series[0][0]:
                least, mean, most = band([values for _, values in series])
                axes.plot(series[0][0], mean, line, color=colour, lw=1.5, label=row)
                axes.fill_between(series[0][0], least, most, color=colour, alpha=0.08, lw=0)
        axes.set_title(setting)
        axes.set_xlabel("last round of the window")
        _agreement_axis(axes)
    panels[0].set_ylabel(f"Spearman's ρ within\nwindows of {width} rounds")
    _legend(figure, panels)
    return figure


def trajectories(table: Table, column: str, run_results: RunResults) -> Figure:
    """Cumulative scores, one line per client: mean, minimum and maximum over the seeds."""
    settings = list(dict.fromkeys(cell.section for cell in table.cells))
    row = f"{READING_TITLES['ours']}, observer"
    figure, panels = _figure(len(settings), 10, 3)
    for axes, setting in zip(panels, settings, strict=True):
        series = [
            running_scores(run_result)
            for _, run_result, _ in assessed_runs(table, _cell(table, setting, row, column), run_results)
        ]
        if series:
            numbers, clients = series[0][0], series[0][1].shape[1]
            for client in range(clients):
                # The mean of all clients is subtracted, so that differences show.
                least, mean, most = band([(s[:, client] - s.mean(axis=1)).tolist() for _, s in series])
                colour = mpl.colormaps["viridis"](0.9 * client / max(1, clients - 1))
                axes.plot(numbers, mean, color=colour, label=f"client {client}{', the best' if client == 0 else ''}")
                axes.fill_between(numbers, least, most, color=colour, alpha=0.15, lw=0)
        axes.axhline(0, color="0.8", lw=0.8, zorder=0)
        axes.set_title(f"{setting} ({len(series)} {'run' if len(series) == 1 else 'runs'})")
        axes.set_xlabel("round")
        axes.ticklabel_format(axis="y", style="sci", scilimits=(-2, 3))
    panels[0].set_ylabel("score so far less the mean\nof all (default, observer)")
    _legend(figure, panels)
    return figure


def accuracy(table: Table, run_results: RunResults) -> Figure:
    """Test accuracy over the rounds, typical beside pruned, a panel for each configuration."""
    columns = list(dict.fromkeys(cell.column for cell in table.cells))
    settings = list(dict.fromkeys(cell.section for cell in table.cells))
    figure, panels = _figure(len(columns), 2.6 * len(columns) + 1, 3.2)
    colours = dict(zip(settings, (BLUE, ORANGE, GREEN, PINK), strict=False))
    for axes, column in zip(panels, columns, strict=True):
        for cell in table.cells:
            if cell.column != column or "1.5" in cell.row:
                continue
            curves = [facts.accuracy for run in table.runs(cell) if (facts := run_results.facts(run)) is not None]
            if curves:
                typical = cell.row.startswith("typical")
                least, mean, most = band(curves)
                rounds = np.arange(1, len(mean) + 1)
                name = f"{cell.section}, {'typical' if typical else 'pruned'}"
                line = "-" if typical else "--"
                axes.plot(rounds, mean, line, color=colours[cell.section], lw=1.3, label=name)
                axes.fill_between(rounds, least, most, color=colours[cell.section], alpha=0.12, lw=0)
        axes.set_title(f"configuration {column}")
        axes.set_xlabel("round")
        axes.grid(alpha=0.25)
    panels[0].set_ylabel("test accuracy")
    _legend(figure, panels)
    return figure


def _run_results(table: Table, column: str, run_results: RunResults) -> Iterator[RunResult]:
    """All results of a column."""
    for cell in table.cells:
        if cell.column == column:
            yield from (run_result for _, run_result, _ in assessed_runs(table, cell, run_results))


def _cell(table: Table, section: str, row: str, column: str) -> Cell:
    return next(s for s in table.cells if (s.section, s.row, s.column) == (section, row, column))


def _figure(panels: int, width: float, height: float, **options: Any) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(1, panels, squeeze=False, **options)[0])


def _agreement_axis(axes: Axes) -> None:
    axes.set_ylim(-1.08, 1.08)
    axes.axhline(0, color="0.8", lw=0.8, zorder=0)
    axes.grid(axis="y", alpha=0.25)


def _legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """One legend below all panels; a panel without lines is marked "not run"."""
    for axes in panels:
        if not axes.lines or not axes.get_legend_handles_labels()[0]:
            axes.text(0.5, 0.5, "not run", ha="center", va="center", color="0.5", transform=axes.transAxes)
            axes.tick_params(left=False, labelleft=False, bottom=False, labelbottom=False)
            axes.grid(visible=False)
    entries = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    if entries:
        figure.legend(
            entries.values(), entries.keys(), loc="outside lower center", ncols=min(4, max(2, len(panels))), fontsize=8
        )
