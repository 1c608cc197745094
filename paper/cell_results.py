"""The value of each cell for each seed, with mean and standard deviation; empty where nothing was run."""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedcoast.simulation.experiment import Experiment
from fedcoast.stats.participation_adjustment import adjusted_mean
from fedcoast.stats.ranking import spearman
from paper.cells import Cell, Table
from paper.run_results import Facts, RunResult, RunResults


@dataclass(frozen=True)
class CellResult:
    """A cell with one value per seed: NaN where it is undefined, no entry where there is no run."""

    cell: Cell
    values: dict[int, float]

    @cached_property
    def defined(self) -> list[float]:
        return [value for value in self.values.values() if not math.isnan(value)]

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.defined) if self.defined else None

    @property
    def spread(self) -> float | None:
        """The standard deviation over the seeds; None for fewer than two."""
        return statistics.stdev(self.defined) if len(self.defined) > 1 else None


def fill(table: Table, run_results: RunResults) -> list[CellResult]:
    """Every cell of the table, filled where run results exist."""
    filled = []
    for cell in table.cells:
        values = {run.seed: value for run in table.runs(cell) if (value := _value(cell, run, run_results)) is not None}
        filled.append(CellResult(cell, values))
    return filled


def _value(cell: Cell, run: Experiment, run_results: RunResults) -> float | None:
    facts = run_results.facts(run)
    if facts is None:
        return None
    if cell.spec is None:
        return None if cell.at is None else facts.accuracy[cell.at - 1]
    run_result = run_results.get(run, cell.spec)
    truth = _truth(cell, run, facts, run_results)
    if run_result is None or truth is None:
        return None
    return spearman(truth, comparable_scores(run_result, run, cell.adjusted))


def _truth(cell: Cell, run: Experiment, facts: Facts, run_results: RunResults) -> list[float] | None:
    if cell.reference is None:
        return facts.ground_truth
    reference = run_results.get(run, cell.reference)
    return None if reference is None else comparable_scores(reference, run)


def comparable_scores(run_result: RunResult, run: Experiment, adjust: bool = False) -> list[float]:
    """The numbers that rank the clients: the scores, or mean credits where clients miss rounds and scores are sums.

    With `adjust` the means are those of clients that had been in every round.
    """
    if run.participation == 1 or not _is_sum(run_result):
        return run_result.scores
    if adjust:
        return list(map(float, adjusted_mean(np.array(list(run_result.by_round.values()), dtype=np.float64))))
    return [
        score / rounds if rounds else math.nan
        for score, rounds in zip(run_result.scores, run_result.rounds_scored, strict=True)
    ]


def _is_sum(run_result: RunResult) -> bool:
    sums = [sum(row[client] or 0.0 for row in run_result.by_round.values()) for client in range(len(run_result.scores))]
    return all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) for a, b in zip(sums, run_result.scores, strict=True))


def average(cell_results: Iterable[CellResult]) -> tuple[float | None, int, int]:
    """The mean of the means, how many there are, and of how many."""
    wanted = list(cell_results)
    means = [cell_result.mean for cell_result in wanted if cell_result.mean is not None]
    return (statistics.fmean(means) if means else None), len(means), len(wanted)


def published_average(cell_results: Iterable[CellResult]) -> float | None:
    """The paper's average over the cells that were run, or over all cells where none was."""
    wanted = list(cell_results)
    chosen = [cell_result for cell_result in wanted if cell_result.mean is not None] or wanted
    printed = [cell_result.cell.published for cell_result in chosen if cell_result.cell.published is not None]
    return statistics.fmean(printed) if len(printed) == len(chosen) else None
