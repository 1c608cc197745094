"""A table that takes seconds: four little federations of digits, a few questions."""

from concurrent.futures import Future

from rich.console import Console

from fedcoast.simulation.experiment import Experiment
from paper.cells import Cell, Table
from paper.jobs import do
from paper.method_specs import coast, plain
from paper.reproduction import missing, work

SMALL = {"rounds": 5, "steps": 3, "batch": 8, "augment": False}


def little_table(seeds=(0, 1), **changes):
    cells = []
    for setting in ("quantity", "noise"):
        for aggregation in ("fedavg", "pruned"):
            experiment = Experiment(setting=setting, aggregation=aggregation, **{**SMALL, **changes})
            last = experiment.rounds
            cells.append(Cell(setting, aggregation, "1", experiment, coast("votes", experiment), published=1.0))
            cells.append(Cell(setting, f"{aggregation}, accuracy", "1", experiment, at=last, published=0.5))
        plainly = Experiment(setting=setting, **{**SMALL, **changes})
        cells.append(Cell(setting, "SV", "1", plainly, plain("shapley"), published=0.6))
    return Table("little", "A little table", tuple(cells), seeds)


def at_once(job):
    """A pool of nobody: the job is done before it is handed out."""
    future = Future()
    future.set_result(do(job))
    return future


def reproduce(tables, places, submit=at_once, only_recorded=False):
    chains = missing(tables, places, only_recorded)
    return work(chains, submit, 1, places.run_results, Console(quiet=True), lambda line: None)
