"""One job for one process: train a run if it is missing, show it to all methods at once, return their results."""

import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
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
from paper.run_results import RUN_KEY, Facts, RunResult, Unmoved

RUN = "run"  # key of an error that concerns the run, not one method


@dataclass(frozen=True)
class Job:
    """A run and the methods to assess it with. `trains` says whether the run is expected to need training."""

    experiment: Experiment
    runs: Path
    specs: tuple[MethodSpec, ...]
    facts: bool = False
    trains: bool = False

    @property
    def folder(self) -> Path:
        return self.runs / self.experiment.name

    @property
    def kind(self) -> str:
        """What takes the time, to estimate the time left."""
        if self.trains:
            return f"train {self.experiment.dataset} {self.experiment.model}"
        task = "assess with utility" if any(spec.needs_utility for spec in self.specs) else "assess"
        return f"{task} {self.experiment.dataset} {self.experiment.model}"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a job: results to keep, by name, and errors."""

    job: Job
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def is_usable(self) -> bool:
        """Whether the run can be assessed at all."""
        return RUN not in self.errors


def recorded(experiment: Experiment, runs: Path) -> bool:
    """Whether the run is recorded to its last round."""
    folder = runs / experiment.name
    return is_run(folder) and len(list((folder / ROUNDS).glob("[0-9]*"))) >= experiment.rounds


def accuracy(experiment: Experiment, runs: Path) -> list[float]:
    """The test accuracy after each round; it tells trainings with the same seed apart."""
    return [fl_round.metrics["test accuracy"] for fl_round in replay(runs / experiment.name)]


def do(job: Job) -> Outcome:
    """Do the job. Errors are returned, not raised, so that one run does not stop the others."""
    started = time.perf_counter()
    results: dict[str, dict[str, Any]] = {}
    errors: dict[str, str] = {}
    try:
        with one_thread():
            if not recorded(job.experiment, job.runs):
                simulate(Federation(job.experiment, dataset=_data(job.experiment.dataset)), job.folder)
            _check(job)
            if job.facts:
                results[RUN_KEY] = _facts(job).to_json()
            for group in _group_by_pass(job.specs):
                _assess_group(job, group, results, errors)
    except FedcoastError as error:
        errors[RUN] = str(error)
    return Outcome(job, results, errors, time.perf_counter() - started)


def _check(job: Job) -> None:
    found = experiment_of(read_about(job.folder))
    if found != job.experiment:
        raise BadFile(f"{job.folder} holds another experiment than its name says; it has been altered")


def _facts(job: Job) -> Facts:
    ground_truth = setting_named(job.experiment.setting).ground_truth(job.experiment.clients)
    return Facts(
        dataset=read_about(job.folder)["dataset"],
        accuracy=accuracy(job.experiment, job.runs),
        ground_truth=None if ground_truth is None else list(ground_truth),
        unmoved=_unmoved(job.folder),
    )


def _unmoved(folder: Path) -> Unmoved | None:
    """Shares recorded with the rounds; in older recordings they are computed from the uploads."""
    by_round = [_rounded(unmoved_in(fl_round)) for fl_round in replay(folder)]
    return by_round if any(shares is not None for shares in by_round) else None


def _rounded(shares: Shares | None) -> dict[str, float] | None:
    return None if shares is None else {layer: round(share, 4) for layer, share in shares.items()}


def _group_by_pass(specs: Sequence[MethodSpec]) -> list[list[MethodSpec]]:
    """Methods that see the same rounds share one pass."""
    passes: dict[float | None, list[MethodSpec]] = {}
    for spec in specs:
        passes.setdefault(spec.sparse, []).append(spec)
    return list(passes.values())


def _assess_group(
    job: Job, group: list[MethodSpec], results: dict[str, dict[str, Any]], errors: dict[str, str]
) -> None:
    utility = None
    if any(spec.needs_utility for spec in group):
        limit = validation_images(job.experiment)
        data = _data(job.experiment.dataset)
        utility = Evaluator(utility_for(read_about(job.folder), limit=limit, workers=1, dataset=data))
    keys = {spec.key(job.experiment): spec for spec in group}
    comparison = compare(
        group[0].shown(replay(job.folder)), {key: spec.assessor(utility) for key, spec in keys.items()}
    )
    made_with = provenance()
    clients = range(job.experiment.clients)
    for key, assessment in comparison.assessments.items():
        results[key] = _run_result(comparison, key, assessment, clients, made_with).to_json()
    errors.update(comparison.errors)


def _run_result(
    comparison: Comparison, key: str, assessment: Assessment, clients: range, made_with: dict[str, Any]
) -> RunResult:
    credits = {str(number): [row.get(client) for client in clients] for number, row in assessment.credits.items()}
    return RunResult(
        settings=dict(assessment.settings),
        scores=[assessment.scores.get(client, 0.0) for client in clients],
        rounds_scored=[assessment.rounds_scored.get(client, 0) for client in clients],
        credits=credits,
        seconds=comparison.seconds[key],
        evaluations=comparison.evaluations.get(key),
        provenance=made_with,
    )


@functools.lru_cache(maxsize=1)
def _data(name: str) -> Dataset:
    """Cached, so that a dataset stays loaded between the jobs of a process."""
    return load(name)
