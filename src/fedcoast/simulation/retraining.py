"""Retraining: the ground truth for small federations, trained once for each coalition of their clients.

    v(S) = U(model after all rounds of S alone), same first model, same seeds;    φ = the Shapley value of v

2^N trainings. This is what the field measures estimates by (GTG, DIG-FL); it is no assessor, since nothing that
watches a server can know it.
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
    """What each client is worth to the training; the options are those of `retrained_worths`.

    `empty` is what no client at all is worth: the first model ("init"), or "zero", as the VLDB'24 benchmark has it.
    That adds the same to every client.
    """
    if empty not in ("init", "zero"):
        raise BadSetting(f"empty must be 'init', the worth of the first model, or 'zero'; got {empty!r}")
    worths = retrained_worths(experiment, file, **options)
    if empty == "zero":
        worths = np.append(0.0, worths[1:])
    return dict(enumerate(shapley(worths).tolist()))


def retrained_worths(
    experiment: Experiment,
    file: str | Path | None = None,
    measure: Measure = "loss",
    limit: int | None = None,
    dataset: Dataset | None = None,
    workers: int = 1,
    force: bool = False,
    progress: Callable[[int, int], object] = lambda done, wanted: None,
) -> Values:
    """The worths of all 2^N coalitions, as a table of the game.

    file      JSON that keeps every worth as soon as it is known; the same call goes on from it
    measure, limit  of the utility, see `utility_for`
    dataset   data of your own, in place of those the experiment names
    workers   processes that train clients
    force     also for more than ten clients
    progress  called with the coalitions done and those wanted, after each
    """
    count = experiment.clients
    if count > MOST_CLIENTS and not force:
        raise BadSetting(
            f"{count} clients need 2^{count} = {2**count:,} trainings; above {MOST_CLIENTS} they are made only with"
            " force=True"
        )
    dataset = dataset or load(experiment.dataset)
    utility = utility_for({"experiment": experiment.to_json()}, measure, limit, dataset=dataset)
    facts = {"experiment": experiment.to_json(), "dataset": dataset.title, "utility": utility.name}
    train = partial(Federation, experiment, workers, dataset=dataset)
    known = {} if file is None else _known(Path(file), facts)
    for coalition in range(2**count):
        if coalition not in known:
            known[coalition] = utility(_trained(train, frozenset(members(coalition))))
            if file is not None:
                _keep(Path(file), facts, known)
        progress(coalition + 1, 2**count)
    return np.array([known[coalition] for coalition in range(2**count)])


def _trained(train: Callable[..., Federation], clients: frozenset[int]) -> Mapping[str, object]:
    """The last model of a federation of these clients; the first of all where there are none."""
    if not clients:
        idle = train()
        return new_model(idle.experiment, idle.data).state_dict()
    *_, last = train(only=clients)
    return last.end


def _keep(file: Path, facts: dict[str, Any], known: dict[int, float]) -> None:
    worths = [{"clients": list(members(coalition)), "worth": worth} for coalition, worth in known.items()]
    write_json(file, {"format": FORMAT, "version": VERSION, **facts, "worths": worths})


def _known(file: Path, facts: dict[str, Any]) -> dict[int, float]:
    if not file.exists():
        return {}
    data = read_json(file)
    if not isinstance(data, dict) or (data.get("format"), data.get("version")) != (FORMAT, VERSION):
        raise BadFile(f"{file} holds no retraining that this version of fedcoast can read; name another file")
    for name, wanted in facts.items():
        if data.get(name) != wanted:
            raise BadFile(f"{file} is of another {name}: {data.get(name)}; name another file")
    try:
        return {sum(1 << client for client in entry["clients"]): float(entry["worth"]) for entry in data["worths"]}
    except (KeyError, TypeError, ValueError) as error:
        raise BadFile(f"{file} is not as a retraining is kept ({error!r}); it was altered") from error
