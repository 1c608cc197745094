"""A federation trained into a run folder, and taken up where it was left."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedcoast.errors import BadFile
from fedcoast.rounds import Round
from fedcoast.rounds.arrays import read
from fedcoast.rounds.clients import client_to_json
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federation import Federation
from fedcoast.storage import Recorder, replay
from fedcoast.storage.tensors import read_tensors, write_tensors

SERVER = "server"


def simulate(
    federation: Federation,
    folder: str | Path,
    pruned: float | None = None,
    on_round: Callable[[Round], None] = lambda round: None,
) -> int:
    """Train what is missing of a federation and record it; returns the number of the round it went on from (0: new).

    Stopped at any moment, the folder holds every finished round; the same call goes on after the last of them, and
    the rounds that follow are those that would have followed.
    """
    folder = Path(folder)
    with Recorder(folder, about=about(federation), ballot_keep=pruned) as recorder:
        begun = recorder.last_round or 0
        if begun:
            _take_up(federation, folder, begun)
        for round in federation:
            _keep_server(federation, folder, round.number)
            recorder.observe(round)
            on_round(round)
    return begun


def about(federation: Federation) -> dict[str, Any]:
    """What the run folder says about the run."""
    truth = federation.truth
    planted = None if truth is None else [{"client": client_to_json(c), "value": v} for c, v in truth.items()]
    return {
        "experiment": federation.experiment.to_json(),
        "dataset": federation.data.title,
        "planted": planted,
    }


def experiment_of(facts: dict[str, Any]) -> Experiment:
    """The experiment that a run folder says it holds."""
    try:
        return Experiment.from_json(facts["experiment"])
    except (KeyError, TypeError) as error:
        raise BadFile("this run does not say which experiment it is; the lab did not record it") from error


def _take_up(federation: Federation, folder: Path, number: int) -> None:
    (last,) = replay(folder, after=number - 1)
    if (file := _server_file(folder, number)).exists():
        held, _ = read_tensors(file)
        federation.server.restore({name: read(array)[0] for name, array in held.items()})
    federation.resume(number, {name: read(array)[0].copy() for name, array in last.end.items()})


def _keep_server(federation: Federation, folder: Path, number: int) -> None:
    """Written before the round is: whichever round the folder ends with, the server's state after it is there."""
    if moments := federation.server.state():
        (folder / SERVER).mkdir(exist_ok=True)
        write_tensors(_server_file(folder, number), {name: (a, a.dtype.name) for name, a in moments.items()})
        _server_file(folder, number - 2).unlink(missing_ok=True)


def _server_file(folder: Path, number: int) -> Path:
    return folder / SERVER / f"{number:010d}.safetensors"
