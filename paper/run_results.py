"""Results on disk: one folder per run and one file per method, written atomically and never computed twice."""

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
RUN_KEY = "run"

# Field names that differ from the keys of the files, whose format is older than the names.
_KEYS = {"ground_truth": "planted", "rounds_scored": "seen", "provenance": "made"}
_NAMES = {key: name for name, key in _KEYS.items()}


def _renamed(data: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in data.items()}


Unmoved = list[dict[str, float] | None]
"""The share of each layer that no client moved, round by round; None where a round does not record it."""


@dataclass(frozen=True)
class Facts:
    """What is known of a run, kept even when the run folder is gone.

    `unmoved` is None where it is unknown: in results from before it was recorded, and in old recordings of ballots.
    """

    dataset: str
    accuracy: list[float]
    ground_truth: list[float] | None
    unmoved: Unmoved | None = None

    def to_json(self) -> dict[str, Any]:
        return _renamed(vars(self), _KEYS)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Facts":
        return cls(**_renamed(data, _NAMES))


@dataclass(frozen=True)
class RunResult:
    """The result of one method on one run: scores and credits by client (0, 1, …; None where absent), and its cost.

    `credits` is None where the result comes from a table that does not record them.
    """

    settings: dict[str, Any]
    scores: list[float]
    rounds_scored: list[int]
    credits: dict[str, list[float | None]] | None
    seconds: float
    evaluations: int | None
    provenance: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return _renamed(vars(self), _KEYS)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "RunResult":
        return cls(**_renamed(data, _NAMES))

    @property
    def by_round(self) -> dict[str, list[float | None]]:
        """The credits by round; raises where they are unknown."""
        if self.credits is None:
            raise FedcoastError(
                "this result has no credits by round: it comes from a table; assess the run again to get them"
            )
        return self.credits


# By the name of a run, then by the key of a method spec or RUN_KEY.
Known = Mapping[str, Mapping[str, dict[str, Any]]]


class RunResults:
    """The results in one folder, then those `known` from elsewhere; the folder takes precedence.

    The same seed on another processor is another training, and results of two trainings never mix: where test
    accuracies differ, only those of the last training seen here count.
    """

    def __init__(self, folder: Path, known: Known | None = None) -> None:
        self._folder = folder
        self._known = known or {}
        self._read: dict[Path, dict[str, Any]] = {}

    def facts(self, experiment: Experiment) -> Facts | None:
        data = self._get(experiment, RUN_KEY)
        return None if data is None else Facts.from_json(data)

    def get(self, experiment: Experiment, spec: MethodSpec) -> RunResult | None:
        data = self._get(experiment, spec.key(experiment))
        return None if data is None else RunResult.from_json(data)

    def keep(self, experiment: Experiment, name: str, result: dict[str, Any]) -> None:
        """`name` is a method spec's key, or RUN_KEY; facts of another training delete the results of the former one."""
        file = self._file(experiment, name)
        if name == RUN_KEY and _other_training(self._get(experiment, RUN_KEY), result):
            shutil.rmtree(file.parent, ignore_errors=True)
            self._read.clear()
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, {"format": FORMAT, "version": VERSION, "experiment": experiment.to_json(), "answer": result})

    def _get(self, experiment: Experiment, name: str) -> dict[str, Any] | None:
        here, known = self._here(experiment, name), self._known.get(experiment.name, {})
        if here is None and not _other_training(self._here(experiment, RUN_KEY), known.get(RUN_KEY)):
            return known.get(name)
        return here

    def _here(self, experiment: Experiment, name: str) -> dict[str, Any] | None:
        file = self._file(experiment, name)
        if file not in self._read and file.is_file():
            data = read_json(file)
            if not isinstance(data, dict) or (data.get("format"), data.get("version")) != (FORMAT, VERSION):
                raise BadFile(
                    f"{file} is not a result that this version of fedcoast can read; delete it to compute it again"
                )
            self._read[file] = data["answer"]
        return self._read.get(file)

    def _file(self, experiment: Experiment, name: str) -> Path:
        return self._folder / experiment.name / f"{name}.json"


def _other_training(one: dict[str, Any] | None, other: dict[str, Any] | None) -> bool:
    """Whether both facts are known and belong to different trainings."""
    return one is not None and other is not None and one["accuracy"] != other["accuracy"]
