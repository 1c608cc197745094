"""Selection of the default: the candidates, the tuning cells and the holdout cells.

Tuning: configuration 1, Fashion-MNIST and digits with even seeds, in six settings. Holdout, evaluated once:
configuration 1 with odd seeds and all other configurations. Both tables list every candidate, so that readers can see
what another choice would have scored.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from fedcoast.methods import METHODS
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.presets import preset as sized
from paper.cell_results import CellResult, average
from paper.cells import (
    CONFIGURATIONS,
    FASHION,
    MODES,
    SMOKE,
    SMOKE_ROUNDS,
    Cell,
    Parity,
    Size,
    Table,
    configurations,
    experiment,
    settings,
)
from paper.method_specs import READING_TITLES, MethodSpec, coast, plain
from paper.pages import grids, headline, markdown_line, two

DIGITS = next(iter(SMOKE))
TUNING = {"1": CONFIGURATIONS["1"], **FASHION, **SMOKE}
TUNING_SETTINGS = ("quantity", "noise", "resolution", "mask", "label-noise", "mixed")
OBSERVER_FIRST = dict(reversed(MODES.items()))

HORIZONS = (1, 2, 3)
LAYERS = {"all": "all", "head": "head", "ends": "first+head"}  # as rows name them, and as CoAst does
PASTS = (0, 0.25, 0.5, 0.75)
VARIANTS: dict[str, dict[str, Any]] = {
    "r = 5 %": {"keep": 0.05},
    "r = 20 %": {"keep": 0.2},
    "the sign of the whole update": {"signal": "update"},
    "the majority of the ballots to come": {"reference": "votes"},
    "the first five rounds left out": {"score_rounds": slice(5, None)},
}
NO_RIVALS = ("coast", "chance", "constant")  # chance has a mean of 0 and a single draw that every run would repeat
RIVALS = tuple(
    name
    for name, method in METHODS.items()
    if not {"utility", "gradient", "weights"} & set(method.needs) and name not in NO_RIVALS
)

SHORTLIST = (*READING_TITLES.values(), *RIVALS)


def candidates(trained: Experiment) -> Iterator[tuple[str, MethodSpec]]:
    """The name of each row and its method."""
    yield READING_TITLES["ours"], coast("ours", trained)
    for reading in ("votes", "text", "code"):
        yield READING_TITLES[reading], coast(reading, trained)
    for name, changes in VARIANTS.items():
        yield f"{READING_TITLES['ours']}, {name}", coast("ours", trained, **changes)
    for layers in LAYERS:
        for horizon in HORIZONS:
            for past in PASTS:
                yield (
                    _row(layers, horizon, past),
                    coast("votes", trained, horizon, layers=LAYERS[layers], past_weight=past),
                )
    for reading in ("text", "code"):
        for layers in ("head", "ends"):
            yield f"{READING_TITLES[reading]}, {layers}", coast(reading, trained, layers=LAYERS[layers])
        both = coast(reading, trained, layers=LAYERS["ends"], past_weight=0.5)
        yield f"{READING_TITLES[reading]}, ends, past 0.5", both
    for name in RIVALS:
        yield name, plain(name)


def tuning(size: Size, seeds: tuple[int, ...]) -> Table:
    """The cells that the default was chosen on."""

    def cells() -> Iterator[Cell]:
        if size == "smoke":
            for setting in settings(size):
                trained = sized("quick", *SMOKE[DIGITS], setting=setting, rounds=SMOKE_ROUNDS)
                yield from _cells(setting, DIGITS, trained, "even")
            return
        for column, pair in TUNING.items():
            for setting in TUNING_SETTINGS:
                yield from _cells(setting, column, _tuned_on(size, pair, setting), "even")

    notes = ("Configuration 1, Fashion-MNIST and digits, even seeds: the cells that the default was chosen by.",)
    return Table("tuning", "The choice of default: cells it was tuned on", tuple(cells()), seeds, notes)


def _tuned_on(size: Size, pair: tuple[str, str], setting: str) -> Experiment:
    """Digits train in seconds, so every size uses their `quick` preset."""
    return sized("quick" if pair == SMOKE[DIGITS] or size == "smoke" else size, *pair, setting=setting)


def holdout(size: Size, seeds: tuple[int, ...]) -> Table:
    """The cells that played no part in choosing the default."""

    def cells() -> Iterator[Cell]:
        for setting in settings(size):
            for place, column in enumerate(configurations(size)):
                trained = experiment(size, column, setting=setting)
                yield from _cells(setting, column, trained, None if place else "odd")

    notes = ("Configuration 1 with odd seeds, all others with all seeds: no choice was made by any of these runs.",)
    return Table("holdout", "The choice of default: cells it is judged on", tuple(cells()), seeds, notes)


def _cells(setting: str, column: str, typical: Experiment, parity: Parity | None) -> Iterator[Cell]:
    for aggregation, mode in OBSERVER_FIRST.items():
        trained = replace(typical, aggregation=aggregation)
        for row, spec in candidates(trained):
            yield Cell(setting, f"{row}, {mode}", column, trained, spec, parity=parity)


def _row(layers: str, horizon: int, past: float) -> str:
    return f"votes, {layers}, k = {horizon}, past {past:g}"


def shortlist(cell_results: Sequence[CellResult]) -> str:
    """The default beside the readings of the paper and the other methods without validation data."""
    wanted = {f"{row}, {mode}" for row in SHORTLIST for mode in OBSERVER_FIRST.values()}
    chosen = [cell_result for cell_result in cell_results if cell_result.cell.row in wanted]
    return headline(sorted(chosen, key=lambda cell_result: cell_result.cell.row.endswith("in-loop")))


def default_cells(cell_results: Sequence[CellResult]) -> str:
    """The default in every cell: one line per setting and mode, one column per configuration."""
    chosen = []
    for mode in OBSERVER_FIRST.values():
        for cell_result in cell_results:
            if cell_result.cell.row == f"{READING_TITLES['ours']}, {mode}":
                cell = replace(cell_result.cell, section="", row=f"{cell_result.cell.section}, {mode}")
                chosen.append(replace(cell_result, cell=cell))
    return grids(chosen)


def grid(cell_results: Sequence[CellResult]) -> str:
    """The candidates: one line per layers and horizon, one column per weight of the past; means over all cells run."""
    heads = [f"past {past:g}, {mode}" for mode in OBSERVER_FIRST.values() for past in PASTS]
    lines = [markdown_line(["", *heads]), markdown_line(["---"] * (len(heads) + 1))]
    for layers in LAYERS:
        for horizon in HORIZONS:
            cells = []
            for mode in OBSERVER_FIRST.values():
                for past in PASTS:
                    row = f"{_row(layers, horizon, past)}, {mode}"
                    mean, _, _ = average(cell_result for cell_result in cell_results if cell_result.cell.row == row)
                    cells.append("not run" if mean is None else two(mean))
            lines.append(markdown_line([f"{layers}, k = {horizon}", *cells]))
    return "\n".join(lines)
