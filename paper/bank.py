"""The training bank: how the clients' ballots of recorded runs agree with each other, round against round.

A run folder of a laboratory federation has tens to hundreds of megabytes. The agreement of its ballots has a few
kilobytes and is enough to compute every score that compares ballots with ballots. `results/bank/` keeps it for every
run, so that the default can be chosen again without training again.

    agreement[g, t, m, i, j] = ⟨ballot of client i in round t, ballot of client j in round t + m⟩ in layer group g

with groups "first", "middle" and "head" (layer_selection.py says which layers those are) and lags m = 0 … LAGS.
Missing rounds and absent clients agree with nobody: zero.

    python -m paper.bank RUNS        extract every finished run of the folder RUNS into results/bank
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedcoast.errors import BadFile, FedcoastError
from fedcoast.kernels.ballots import ballot
from fedcoast.methods.layer_selection import choose
from fedcoast.rounds import Round
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.provenance import provenance
from fedcoast.simulation.settings import setting_named
from fedcoast.simulation.simulation import experiment_of
from fedcoast.storage import read_about, replay
from fedcoast.storage.files import write_whole
from paper.jobs import recorded

LAGS = 8
GROUPS = ("first", "middle", "head")
KEEP = 0.10

Agreement = NDArray[np.int32]
_Ballots = list[list[NDArray[np.float32]]]  # by group and client; empty where a client was absent


@dataclass(frozen=True)
class BankRun:
    """The agreement of one run's ballots, with the ground truth and how the training went."""

    experiment: Experiment
    agreement: Agreement
    accuracy: tuple[float, ...]
    made: dict[str, Any]

    @property
    def truth(self) -> list[float] | None:
        """The true value of each client, the best first; None where none is known."""
        truth = setting_named(self.experiment.setting).ground_truth(self.experiment.clients)
        return None if truth is None else list(truth)


def extract(folder: Path) -> BankRun:
    """Read a recorded run once and keep the agreement of its ballots."""
    experiment = experiment_of(read_about(folder))
    clients = range(experiment.clients)
    agreement = np.zeros((len(GROUPS), experiment.rounds, LAGS + 1, len(clients), len(clients)), np.int32)
    accuracy: list[float] = []
    recent: dict[int, _Ballots] = {}
    for fl_round in replay(folder):
        at = fl_round.number - 1
        recent[at] = _ballots(fl_round, clients)
        recent.pop(at - LAGS - 1, None)
        for earlier, ballots in recent.items():
            agreement[:, earlier, at - earlier] = [
                _products(first, second) for first, second in zip(ballots, recent[at], strict=True)
            ]
        accuracy.append(fl_round.metrics["test accuracy"])
    return BankRun(experiment, agreement, tuple(accuracy), provenance())


def _ballots(fl_round: Round, clients: range) -> _Ballots:
    schema = fl_round.schema()
    ends = {entry.name for entry in choose("head", schema)}
    first = {entry.name for entry in choose("first+head", schema)} - ends
    groups: list[list[str]] = [[], [], []]
    for entry in schema.trainable:
        groups[2 if entry.name in ends else 0 if entry.name in first else 1].append(entry.name)
    start = schema.read(fl_round.start)
    found: _Ballots = [[np.zeros(0, np.float32) for _ in clients] for _ in groups]
    for client in fl_round.local:
        upload = schema.read(fl_round.local[client])
        for votes, names in zip(found, groups, strict=True):
            layers = [ballot(upload[name] - start[name], KEEP) for name in names]
            votes[client] = np.concatenate(layers or [np.zeros(0, np.int8)]).astype(np.float32)
    return found


def _products(first: list[NDArray[np.float32]], second: list[NDArray[np.float32]]) -> NDArray[np.int64]:
    """Every ballot of one round times every ballot of another; votes are few enough for exact sums in float32."""
    return np.array([[round(float(np.dot(a, b))) if a.size and b.size else 0 for b in second] for a in first])


def write(run: BankRun, folder: Path) -> Path:
    """Write one run to the bank, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {"experiment": run.experiment.to_json(), "accuracy": run.accuracy, "made": run.made}
    file = folder / f"{run.experiment.name}.npz"

    def save(part: Path) -> None:
        with part.open("wb") as stream:
            np.savez_compressed(stream, agreement=run.agreement, about=np.array(json.dumps(about)))

    write_whole(file, save)
    return file


def read(file: Path) -> BankRun:
    """Read one run of the bank; nothing is unpickled."""
    try:
        with np.load(file, allow_pickle=False) as content:
            about, agreement = json.loads(str(content["about"])), content["agreement"]
        experiment = Experiment.from_json(about["experiment"])
        wanted = (len(GROUPS), experiment.rounds, LAGS + 1, experiment.clients, experiment.clients)
        if agreement.shape != wanted or agreement.dtype != np.int32:
            raise BadFile(f"{file} holds {agreement.dtype} {agreement.shape}, wanted int32 {wanted}; extract it again")
        return BankRun(experiment, agreement, tuple(about["accuracy"]), about["made"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, FedcoastError):
            raise
        raise BadFile(f"{file} is not a run of the bank ({error!r}); delete it and extract the run again") from error


def read_all(folder: Path) -> list[BankRun]:
    return [read(file) for file in sorted(folder.glob("*.npz"))]


def fill(runs: Path, bank: Path) -> Iterator[Path]:
    """Extract every finished run of a folder that is not in the bank yet."""
    for folder in sorted(path for path in runs.iterdir() if path.is_dir()):
        try:
            experiment = experiment_of(read_about(folder))
        except FedcoastError:  # another kind of folder, or one without an experiment
            continue
        if recorded(experiment, runs) and not (bank / f"{experiment.name}.npz").exists():
            yield write(extract(folder), bank)


if __name__ == "__main__":
    for file in fill(Path(sys.argv[1]), Path("results/bank")):
        print(file)
