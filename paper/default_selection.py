"""The judgement of the default: cells that it was not chosen by.

The default was chosen on the training bank (bank_page.py): configuration 1, Fashion-MNIST and digits with even seeds.
It is judged on configuration 1 with odd seeds and on all other configurations, beside exact Shapley values, the
readings of the paper and every method that needs no validation data, on the same rounds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fedcoast.methods import METHODS
from fedcoast.simulation.experiment import Experiment
from paper.cell_results import CellResult
from paper.cells import MODES, Cell, Parity, Size, Table, configurations, experiment, settings
from paper.method_specs import READING_TITLES, MethodSpec, coast, plain
from paper.pages import grids, headline, markdown_line, over_cells

OBSERVER_FIRST = dict(reversed(MODES.items()))
SHAPLEY = ("SV (exact Shapley)", "shapley")  # costly, so only of federations that CoAst observes
NO_RIVALS = ("coast", "chance", "constant")  # chance has a mean of 0 and a single draw that every run would repeat
RIVALS = tuple(
    name
    for name, method in METHODS.items()
    if not {"utility", "gradient", "weights"} & set(method.needs) and name not in NO_RIVALS
)
WELL_KNOWN = (*READING_TITLES.values(), SHAPLEY[0], "cgsv", "fed-pca", "shapfed", "fedce-novelty")  # in the README
ROWS = (*READING_TITLES.values(), SHAPLEY[0], *RIVALS)


def compared(trained: Experiment) -> Iterator[tuple[str, MethodSpec]]:
    """The name of each row and its method, our default first."""
    for reading, title in READING_TITLES.items():
        yield title, coast(reading, trained)
    if trained.aggregation == "fedavg":
        yield SHAPLEY[0], plain(SHAPLEY[1])
    for name in RIVALS:
        yield name, plain(name)


def holdout(size: Size, seeds: tuple[int, ...]) -> Table:
    """The cells that the default is judged on."""

    def cells() -> Iterator[Cell]:
        for setting in settings(size):
            for place, column in enumerate(configurations(size)):
                trained = experiment(size, column, setting=setting)
                yield from _cells(setting, column, trained, None if place else "odd")

    notes = (
        "Configuration 1 with odd seeds, all others with all seeds: no choice was made by any of these runs."
        " docs/default.md says which of them had been looked at before the last change of the default.",
    )
    return Table("holdout", "The default, judged", tuple(cells()), seeds, notes)


def _cells(setting: str, column: str, typical: Experiment, parity: Parity | None) -> Iterator[Cell]:
    for aggregation, mode in OBSERVER_FIRST.items():
        trained = replace(typical, aggregation=aggregation)
        for row, spec in compared(trained):
            yield Cell(setting, f"{row}, {mode}", column, trained, spec, parity=parity)


def holdout_summary(cell_results: Sequence[CellResult]) -> str:
    """Every row in short, those that observe first."""
    return headline(sorted(cell_results, key=lambda cell_result: cell_result.cell.row.endswith("in-loop")))


def in_short(cell_results: Sequence[CellResult]) -> str:
    """The default and the best known methods: one line each, the mean over the cells of each mode."""
    lines = [markdown_line(["", *OBSERVER_FIRST.values()]), markdown_line(["---"] * (1 + len(OBSERVER_FIRST)))]
    for row in WELL_KNOWN:
        by_mode = [
            [one for one in cell_results if one.cell.row == f"{row}, {mode}"] for mode in OBSERVER_FIRST.values()
        ]
        means = [([one.mean for one in cells if one.mean is not None], len(cells)) for cells in by_mode]
        texts = [over_cells(values, wanted) if values else "not run" if wanted else "–" for values, wanted in means]
        lines.append(markdown_line([row, *texts]))
    return "\n".join(lines)


def default_cells(cell_results: Sequence[CellResult]) -> str:
    """The default in every cell: one line per setting and mode, one column per configuration."""
    chosen = []
    for mode in OBSERVER_FIRST.values():
        for cell_result in cell_results:
            if cell_result.cell.row == f"{READING_TITLES['ours']}, {mode}":
                cell = replace(cell_result.cell, section="", row=f"{cell_result.cell.section}, {mode}")
                chosen.append(replace(cell_result, cell=cell))
    return grids(chosen)
