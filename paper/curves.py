"""Series behind the pictures: cumulative scores, agreement in windows of rounds, accuracy by round."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fedcoast.simulation.experiment import Experiment
from fedcoast.stats.ranking import spearman
from paper.cells import Cell, Table
from paper.run_results import RunResult, RunResults

Values = NDArray[np.float64]


def credit_table(run_result: RunResult) -> tuple[list[int], Values]:
    """The scored rounds, and a row of credits for each; an absent client has 0."""
    credits = run_result.by_round
    numbers = sorted(map(int, credits))
    rows = [[credit or 0.0 for credit in credits[str(number)]] for number in numbers]
    return numbers, np.array(rows, dtype=np.float64).reshape(len(numbers), len(run_result.scores))


def running_scores(run_result: RunResult) -> tuple[list[int], Values]:
    """The score of each client after each scored round."""
    numbers, credits = credit_table(run_result)
    return numbers, credits.cumsum(axis=0)


def window_agreement(run_result: RunResult, truth: Sequence[float], width: int) -> tuple[list[int], list[float]]:
    """Spearman's ρ between the true order and the credits within each window, by the window's last round.

    A window of the whole run gives the table's number.
    """
    numbers, credits = credit_table(run_result)
    ends = range(width, len(numbers) + 1)
    return [numbers[end - 1] for end in ends], [
        spearman(truth, credits[end - width : end].sum(axis=0).tolist()) for end in ends
    ]


def assessed_runs(
    table: Table, cell: Cell, run_results: RunResults
) -> Iterator[tuple[Experiment, RunResult, list[float]]]:
    """The runs of a cell that have a result and a true order."""
    for run in table.runs(cell):
        facts = run_results.facts(run)
        run_result = None if cell.spec is None else run_results.get(run, cell.spec)
        if facts is not None and run_result is not None and facts.ground_truth is not None:
            yield run, run_result, facts.ground_truth


def band(series: Sequence[Sequence[float]]) -> tuple[Values, Values, Values]:
    """Minimum, mean and maximum over the runs at each position; NaN where no run has a number."""
    values = np.array(series, dtype=np.float64)
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    sums = np.where(known, values, 0).sum(axis=0)
    mean = np.divide(sums, count, out=np.full(count.shape, np.nan), where=count > 0)
    least = np.where(known, values, np.inf).min(axis=0)
    most = np.where(known, values, -np.inf).max(axis=0)
    return np.where(count > 0, least, np.nan), mean, np.where(count > 0, most, np.nan)
