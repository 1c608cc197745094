"""Series behind the pictures: scores as they add up, agreement in windows of rounds, accuracy over the rounds."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fedcoast.simulation.experiment import Experiment
from fedcoast.stats.ranking import spearman
from paper.cells import Cell, Table
from paper.run_results import RunResult, RunResults

Values = NDArray[np.float64]


def credit_table(answer: RunResult) -> tuple[list[int], Values]:
    """The valued rounds, and a row of credits for each; an absent client has 0."""
    credits = answer.by_round
    numbers = sorted(map(int, credits))
    rows = [[credit or 0.0 for credit in credits[str(number)]] for number in numbers]
    return numbers, np.array(rows, dtype=np.float64).reshape(len(numbers), len(answer.scores))


def running_scores(answer: RunResult) -> tuple[list[int], Values]:
    """What each client had after each valued round."""
    numbers, credits = credit_table(answer)
    return numbers, credits.cumsum(axis=0)


def window_agreement(answer: RunResult, truth: Sequence[float], width: int) -> tuple[list[int], list[float]]:
    """Spearman's ρ with the truth of the credits within each window, by the window's last round.

    A window of the whole run would be the table's number.
    """
    numbers, credits = credit_table(answer)
    ends = range(width, len(numbers) + 1)
    return [numbers[end - 1] for end in ends], [
        spearman(truth, credits[end - width : end].sum(axis=0).tolist()) for end in ends
    ]


def answered(table: Table, slot: Cell, answers: RunResults) -> Iterator[tuple[Experiment, RunResult, list[float]]]:
    """The runs of a slot that have an answer and a planted order."""
    for run in table.runs(slot):
        facts = answers.facts(run)
        answer = None if slot.question is None else answers.answer(run, slot.question)
        if facts is not None and answer is not None and facts.planted is not None:
            yield run, answer, facts.planted


def band(series: Sequence[Sequence[float]]) -> tuple[Values, Values, Values]:
    """Least, mean and most over the runs, place by place; NaN where no run has a number."""
    values = np.array(series, dtype=np.float64)
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    sums = np.where(known, values, 0).sum(axis=0)
    mean = np.divide(sums, count, out=np.full(count.shape, np.nan), where=count > 0)
    least = np.where(known, values, np.inf).min(axis=0)
    most = np.where(known, values, -np.inf).max(axis=0)
    return np.where(count > 0, least, np.nan), mean, np.where(count > 0, most, np.nan)
