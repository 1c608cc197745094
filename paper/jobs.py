"""One piece of work for one process: train a run if it is missing, show it once to all questions, hand back answers."""

import functools
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fedcoast.errors import BadFile, FedcoastError
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.coalition.utility import Evaluator
from fedcoast.methods.comparison import Comparison, compare
from fedcoast.rounds.unmoved import Shares, unmoved_in
from fedcoast.simulation.datasets import Dataset, load
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.provenance import provenance
from fedcoast.simulation.settings import setting_named
from fedcoast.simulation.simulation import experiment_of, simulate
from fedcoast.simulation.utility import utility_for
from fedcoast.simulation.worker_pool import one_thread
from fedcoast.storage import read_about, replay
from fedcoast.storage.run_folder import ROUNDS, is_run
from paper.method_specs import MethodSpec, validation_images
from paper.run_results import FACTS, Facts, RunResult, Unmoved

RUN = "run"  # the name of an error that is of the run and not of one question


@dataclass(frozen=True)
class Job:
    """A run and what to ask about it; the answers are named by the questions' keys. `trains` is what is expected."""

    experiment: Experiment
    runs: Path
    questions: tuple[MethodSpec, ...]
    facts: bool = False
    trains: bool = False

    @property
    def folder(self) -> Path:
        return self.runs / self.experiment.name

    @property
    def kind(self) -> str:
        """What takes the time, for a guess of what is left."""
        if self.trains:
            return f"train {self.experiment.dataset} {self.experiment.model}"
        dear = any(question.judges for question in self.questions)
        return f"{'judge' if dear else 'ask'} {self.experiment.dataset} {self.experiment.model}"


@dataclass(frozen=True)
class Outcome:
    """What came of a job: what to keep, by name, and what went wrong."""

    job: Job
    kept: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def runs(self) -> bool:
        """Whether the run can be asked about at all."""
        return RUN not in self.errors


def recorded(experiment: Experiment, runs: Path) -> bool:
    """Whether the run is there to its last round."""
    folder = runs / experiment.name
    return is_run(folder) and len(list((folder / ROUNDS).glob("[0-9]*"))) >= experiment.rounds


def accuracy(experiment: Experiment, runs: Path) -> list[float]:
    """The test accuracy after each round, by which one training is told from another with the same seed."""
    return [round.metrics["test accuracy"] for round in replay(runs / experiment.name)]


def do(job: Job) -> Outcome:
    """Do the job; what fails is told and never raised, so that one run does not stop the others."""
    begun = time.perf_counter()
    kept: dict[str, dict[str, Any]] = {}
    errors: dict[str, str] = {}
    try:
        with one_thread():
            if not recorded(job.experiment, job.runs):
                simulate(Federation(job.experiment, dataset=_data(job.experiment.dataset)), job.folder)
            _check(job)
            if job.facts:
                kept[FACTS] = asdict(_facts(job))
            for asked in _together(job.questions):
                _ask(job, asked, kept, errors)
    except FedcoastError as error:
        errors[RUN] = str(error)
    return Outcome(job, kept, errors, time.perf_counter() - begun)


def _check(job: Job) -> None:
    found = experiment_of(read_about(job.folder))
    if found != job.experiment:
        raise BadFile(f"{job.folder} holds another experiment than its name says; it was altered")


def _facts(job: Job) -> Facts:
    planted = setting_named(job.experiment.setting).planted(job.experiment.clients)
    return Facts(
        dataset=read_about(job.folder)["dataset"],
        accuracy=accuracy(job.experiment, job.runs),
        planted=None if planted is None else list(planted),
        unmoved=_unmoved(job.folder),
    )


def _unmoved(folder: Path) -> Unmoved | None:
    """Carried by the rounds; of a recording of before, its uploads are read once for it."""
    found = [_rounded(unmoved_in(fl_round)) for fl_round in replay(folder)]
    return found if any(shares is not None for shares in found) else None


def _rounded(shares: Shares | None) -> dict[str, float] | None:
    return None if shares is None else {layer: round(share, 4) for layer, share in shares.items()}


def _together(questions: Sequence[MethodSpec]) -> list[list[MethodSpec]]:
    """Those that look at the same rounds: one pass each."""
    passes: dict[float | None, list[MethodSpec]] = {}
    for question in questions:
        passes.setdefault(question.sparse, []).append(question)
    return list(passes.values())


def _ask(job: Job, asked: list[MethodSpec], kept: dict[str, dict[str, Any]], errors: dict[str, str]) -> None:
    judge = None
    if any(question.judges for question in asked):
        limit = validation_images(job.experiment)
        data = _data(job.experiment.dataset)
        judge = Evaluator(utility_for(read_about(job.folder), limit=limit, workers=1, dataset=data))
    keys = {question.key(job.experiment): question for question in asked}
    comparison = compare(
        asked[0].shown(replay(job.folder)), {key: question.assessor(judge) for key, question in keys.items()}
    )
    made = provenance()
    clients = range(job.experiment.clients)
    for key, assessment in comparison.assessments.items():
        kept[key] = asdict(_answer(comparison, key, assessment, clients, made))
    errors.update(comparison.errors)


def _answer(comparison: Comparison, key: str, of: Assessment, clients: range, made: dict[str, Any]) -> RunResult:
    credits = {str(number): [row.get(client) for client in clients] for number, row in of.credits.items()}
    return RunResult(
        settings=dict(of.settings),
        scores=[of.scores.get(client, 0.0) for client in clients],
        seen=[of.seen.get(client, 0) for client in clients],
        credits=credits,
        seconds=comparison.seconds[key],
        evaluations=comparison.evaluations.get(key),
        made=made,
    )


@functools.lru_cache(maxsize=1)
def _data(name: str) -> Dataset:
    """A dataset stays loaded between the jobs of a process."""
    return load(name)
