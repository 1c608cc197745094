"""What came out: the value of each slot for each seed, its mean and spread; nothing where nothing was run."""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedcoast.simulation.experiment import Experiment
from fedcoast.stats.participation_adjustment import evened
from fedcoast.stats.ranking import spearman
from paper.cells import Cell, Table
from paper.run_results import Facts, RunResult, RunResults


@dataclass(frozen=True)
class CellResult:
    """A slot with what was found: a value by seed, NaN where it is undefined, and no entry where there is no run."""

    slot: Cell
    values: dict[int, float]

    @cached_property
    def defined(self) -> list[float]:
        return [value for value in self.values.values() if not math.isnan(value)]

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.defined) if self.defined else None

    @property
    def spread(self) -> float | None:
        """The standard deviation over the seeds, from two of them on."""
        return statistics.stdev(self.defined) if len(self.defined) > 1 else None


def find(table: Table, answers: RunResults) -> list[CellResult]:
    """Every slot of the table, filled as far as there are answers."""
    found = []
    for slot in table.slots:
        values = {run.seed: value for run in table.runs(slot) if (value := _value(slot, run, answers)) is not None}
        found.append(CellResult(slot, values))
    return found


def _value(slot: Cell, run: Experiment, answers: RunResults) -> float | None:
    facts = answers.facts(run)
    if facts is None:
        return None
    if slot.question is None:
        return None if slot.at is None else facts.accuracy[slot.at - 1]
    answer = answers.answer(run, slot.question)
    truth = _truth(slot, run, facts, answers)
    if answer is None or truth is None:
        return None
    return spearman(truth, worths(answer, run, slot.evened))


def _truth(slot: Cell, run: Experiment, facts: Facts, answers: RunResults) -> list[float] | None:
    if slot.reference is None:
        return facts.planted
    reference = answers.answer(run, slot.reference)
    return None if reference is None else worths(reference, run)


def worths(answer: RunResult, run: Experiment, even: bool = False) -> list[float]:
    """What ranks the clients: the scores; where clients miss rounds, sums of credits become means over those seen.

    Or, if asked for, means as if everybody had been in every round.
    """
    if run.participation == 1 or not _is_sum(answer):
        return answer.scores
    if even:
        return list(map(float, evened(np.array(list(answer.by_round.values()), dtype=np.float64))))
    return [score / seen if seen else math.nan for score, seen in zip(answer.scores, answer.seen, strict=True)]


def _is_sum(answer: RunResult) -> bool:
    sums = [sum(row[client] or 0.0 for row in answer.by_round.values()) for client in range(len(answer.scores))]
    return all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) for a, b in zip(sums, answer.scores, strict=True))


def average(findings: Iterable[CellResult]) -> tuple[float | None, int, int]:
    """The mean of the means, how many there are, and of how many."""
    wanted = list(findings)
    means = [finding.mean for finding in wanted if finding.mean is not None]
    return (statistics.fmean(means) if means else None), len(means), len(wanted)


def published_average(findings: Iterable[CellResult]) -> float | None:
    """What the paper has on average in the slots that were run, or in all where none was."""
    wanted = list(findings)
    chosen = [finding for finding in wanted if finding.mean is not None] or wanted
    printed = [finding.slot.published for finding in chosen if finding.slot.published is not None]
    return statistics.fmean(printed) if len(printed) == len(chosen) else None
