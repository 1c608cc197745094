"""Shapley values by retraining: a small federation is trained once for each coalition of its clients.

    v(S) = U(model after all rounds of S alone), same first model, same seeds;    φ = the Shapley value of v

2^N trainings. The field evaluates its estimates against this (GTG, DIG-FL). It is not an assessor, because a server
cannot observe it.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fedcoast.errors import BadFile, BadSetting, Client
from fedcoast.methods.coalition.games import Values, members, shapley
from fedcoast.simulation.datasets import Dataset, load
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.training import new_model
from fedcoast.simulation.utility import Measure, utility_for
from fedcoast.storage.files import read_json, write_json

FORMAT = "fedcoast-retraining"
VERSION = 2
MOST_CLIENTS = 10

Empty = Literal["init", "zero"]


def retraining_shapley(
    experiment: Experiment, file: str | Path | None = None, empty: Empty = "init", **options: Any
) -> dict[Client, float]:
    """The Shapley value of each client; the options are those of `retrained_utilities`.

    `empty` is the utility of the empty coalition: that of the first model ("init"), or "zero" as in the VLDB'24
    benchmark, which adds the same to every client.
    """
    if empty not in ("init", "zero"):
        raise BadSetting(f"empty must be 'init', the utility of the first model, or 'zero'; got {empty!r}")
    worths = retrained_utilities(experiment, file, **options)
    if empty == "zero":
        worths = np.append(0.0, worths[1:])
    return dict(enumerate(shapley(worths).tolist()))


def retrained_utilities(
    experiment: Experiment,
    file: str | Path | None = None,
    measure: Measure = "loss",
    limit: int | None = None,
    dataset: Dataset | None = None,
    workers: int = 1,
    force: bool = False,
    progress: Callable[[int, int], object] = lambda done, wanted: None,
) -> Values:
    """The utilities of all 2^N coalitions, as a table of the game.

    file      JSON file that keeps every utility as soon as it is known; the same call resumes from it
    measure, limit  of the utility, see `utility_for`
    dataset   replaces the data that the experiment names
    workers   processes that train clients
    force     also for more than ten clients
    progress  called after each coalition with the numbers done and wanted
    """
    count = experiment.clients
    if count > MOST_CLIENTS and not force:
        raise BadSetting(
            f"{count} clients need 2^{count} = {2**count:,} trainings; above {MOST_CLIENTS} clients this needs"
            " force=True"
        )
    dataset = dataset or load(experiment.dataset)
    utility = utility_for({"experiment": experiment.to_json()}, measure, limit, dataset=dataset)
    facts = {"experiment": experiment.to_json(), "dataset": dataset.title, "utility": utility.name}
    train = partial(Federation, experiment, workers, dataset=dataset)
    utilities = {} if file is None else _known(Path(file), facts)
    for coalition in range(2**count):
        if coalition not in utilities:
            utilities[coalition] = utility(_trained(train, frozenset(members(coalition))))
            if file is not None:
                _keep(Path(file), facts, utilities)
        progress(coalition + 1, 2**count)
    return np.array([utilities[coalition] for coalition in range(2**count)])


def _trained(train: Callable[..., Federation], clients: frozenset[int]) -> Mapping[str, object]:
    """The last model of a federation of these clients; the initial model for the empty coalition."""
    if not clients:
        idle = train()
        return new_model(idle.experiment, idle.data).state_dict()
    *_, last = train(only=clients)
    return last.end


def _keep(file: Path, facts: dict[str, Any], utilities: dict[int, float]) -> None:
    worths = [{"clients": list(members(coalition)), "worth": worth} for coalition, worth in utilities.items()]
    write_json(file, {"format": FORMAT, "version": VERSION, **facts, "worths": worths})


def _known(file: Path, facts: dict[str, Any]) -> dict[int, float]:
    if not file.exists():
        return {}
    data = read_json(file)
    if not isinstance(data, dict) or (data.get("format"), data.get("version")) != (FORMAT, VERSION):
        raise BadFile(f"{file} is not a retraining file that this version of fedcoast can read; name another file")
    for name, value in facts.items():
        if data.get(name) != value:
            raise BadFile(f"{file} belongs to another {name}: {data.get(name)}; name another file")
    try:
        return {sum(1 << client for client in entry["clients"]): float(entry["worth"]) for entry in data["worths"]}
    except (KeyError, TypeError, ValueError) as error:
        raise BadFile(f"{file} is not a valid retraining file ({error!r}); it has been altered") from error
