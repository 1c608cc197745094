"""Answers on disk: a folder for each run, a file for each answer, written whole; what is there is not asked again."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedcoast.errors import BadFile, FedcoastError
from fedcoast.simulation.experiment import Experiment
from fedcoast.storage.files import read_json, write_json
from paper.method_specs import MethodSpec

FORMAT = "fedcoast-answer"
VERSION = 1
FACTS = "run"


Unmoved = list[dict[str, float] | None]
"""For each round the share of each layer that nobody moved; None where a round does not tell."""


@dataclass(frozen=True)
class Facts:
    """What a run says of itself and of its rounds, which is kept when the run folder is gone.

    `unmoved` is None where it is unknown: in answers of before it was kept, and in old recordings of ballots.
    """

    dataset: str
    accuracy: list[float]
    planted: list[float] | None
    unmoved: Unmoved | None = None


@dataclass(frozen=True)
class RunResult:
    """One question answered: scores and credits by client (0, 1, …; None where absent), and what it cost.

    `credits` is None where a table told the answer, which keeps them only if its numbers are made of them.
    """

    settings: dict[str, Any]
    scores: list[float]
    seen: list[int]
    credits: dict[str, list[float | None]] | None
    seconds: float
    evaluations: int | None
    made: dict[str, Any] = field(default_factory=dict)

    @property
    def by_round(self) -> dict[str, list[float | None]]:
        """The credits, refused where they are not known."""
        if self.credits is None:
            raise FedcoastError("this answer has no credits by round: a table told it; ask the run again to have them")
        return self.credits


# By the name of a run, then by the key of a question or FACTS.
Known = Mapping[str, Mapping[str, dict[str, Any]]]


class RunResults:
    """The answers below one folder, and those `known` from elsewhere, which the folder's come before.

    The same seed on another processor is another training, whose answers do not mix: where test accuracies differ,
    those of the last training that was seen here count alone.
    """

    def __init__(self, folder: Path, known: Known | None = None) -> None:
        self._folder = folder
        self._known = known or {}
        self._read: dict[Path, dict[str, Any]] = {}

    def facts(self, experiment: Experiment) -> Facts | None:
        found = self._get(experiment, FACTS)
        return None if found is None else Facts(**found)

    def answer(self, experiment: Experiment, question: MethodSpec) -> RunResult | None:
        found = self._get(experiment, question.key(experiment))
        return None if found is None else RunResult(**found)

    def keep(self, experiment: Experiment, name: str, what: dict[str, Any]) -> None:
        """`name` is a question's key, or FACTS; facts of another training put an end to the answers of the former."""
        file = self._file(experiment, name)
        if name == FACTS and _differ(self._get(experiment, FACTS), what):
            shutil.rmtree(file.parent, ignore_errors=True)
            self._read.clear()
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, {"format": FORMAT, "version": VERSION, "experiment": experiment.to_json(), "answer": what})

    def _get(self, experiment: Experiment, name: str) -> dict[str, Any] | None:
        found, known = self._here(experiment, name), self._known.get(experiment.name, {})
        if found is None and not _differ(self._here(experiment, FACTS), known.get(FACTS)):
            return known.get(name)
        return found

    def _here(self, experiment: Experiment, name: str) -> dict[str, Any] | None:
        file = self._file(experiment, name)
        if file not in self._read and file.is_file():
            data = read_json(file)
            if not isinstance(data, dict) or (data.get("format"), data.get("version")) != (FORMAT, VERSION):
                raise BadFile(f"{file} is no answer that this version of fedcoast can read; delete it to ask again")
            self._read[file] = data["answer"]
        return self._read.get(file)

    def _file(self, experiment: Experiment, name: str) -> Path:
        return self._folder / experiment.name / f"{name}.json"


def _differ(one: dict[str, Any] | None, other: dict[str, Any] | None) -> bool:
    """Whether both facts are known and of different trainings."""
    return one is not None and other is not None and one["accuracy"] != other["accuracy"]
