"""Train a federation into a run folder, and resume it after an interruption."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedcoast.errors import BadFile, BadSetting
from fedcoast.rounds import Round
from fedcoast.rounds.arrays import read
from fedcoast.rounds.clients import client_to_json
from fedcoast.simulation.attacks import HISTORY
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federation import Federation
from fedcoast.storage import Recorder, replay
from fedcoast.storage.tensors import read_tensors, write_tensors

SERVER = "server"


def simulate(
    federation: Federation,
    folder: str | Path,
    ballot_keep: float | None = None,
    on_round: Callable[[Round], None] = lambda fl_round: None,
) -> int:
    """Train the missing rounds of a federation and record them; returns the round it resumed after (0: a new run).

    After an interruption the folder holds every finished round. The same call resumes after the last of them and
    produces the same rounds as an uninterrupted run.
    """
    folder = Path(folder)
    if ballot_keep is not None and federation.attackers is not None:
        raise BadSetting("an attacked federation is recorded with whole uploads, which attackers remember; got ballots")
    with Recorder(folder, about=about(federation), ballot_keep=ballot_keep) as recorder:
        resumed_from = recorder.last_round or 0
        if resumed_from:
            _resume(federation, folder, resumed_from)
        for fl_round in federation:
            _save_server(federation, folder, fl_round.number)
            recorder.observe(fl_round)
            on_round(fl_round)
    return resumed_from


def about(federation: Federation) -> dict[str, Any]:
    """The metadata of the run folder; the ground truth is recorded under the key "planted"."""
    scores = federation.ground_truth
    ground_truth = None if scores is None else [{"client": client_to_json(c), "value": v} for c, v in scores.items()]
    metadata = {
        "experiment": federation.experiment.to_json(),
        "dataset": federation.data.title,
        "planted": ground_truth,
    }
    if federation.attackers is not None:
        metadata["attack"] = {
            "name": federation.experiment.attack,
            "clients": [client_to_json(client) for client in federation.attackers.identities],
        }
    return metadata


def experiment_of(facts: dict[str, Any]) -> Experiment:
    """The experiment that the metadata of a run folder names."""
    try:
        return Experiment.from_json(facts["experiment"])
    except (KeyError, TypeError) as error:
        raise BadFile("this run does not name its experiment; it was not recorded by the lab") from error


def _resume(federation: Federation, folder: Path, number: int) -> None:
    (last,) = replay(folder, after=number - 1)
    if federation.attackers is not None:
        for fl_round in replay(folder, after=max(0, number - HISTORY)):
            federation.attackers.remember(fl_round)
    if (file := _server_file(folder, number)).exists():
        tensors, _ = read_tensors(file)
        federation.server.restore({name: read(array)[0] for name, array in tensors.items()})
    elif federation.experiment.aggregation in ("fedavgm", "fedadam"):
        raise BadFile(
            f"{file} is missing: {federation.experiment.aggregation} resumes from the server's state after round"
            f" {number}, and would train another model without it; use a new folder"
        )
    federation.resume(number, {name: read(array)[0].copy() for name, array in last.end.items()})


def _save_server(federation: Federation, folder: Path, number: int) -> None:
    """Saved before the round, so that the state after the folder's last round is always there."""
    if moments := federation.server.state():
        (folder / SERVER).mkdir(exist_ok=True)
        write_tensors(_server_file(folder, number), {name: (a, a.dtype.name) for name, a in moments.items()})
        _server_file(folder, number - 2).unlink(missing_ok=True)


def _server_file(folder: Path, number: int) -> Path:
    return folder / SERVER / f"{number:010d}.safetensors"
