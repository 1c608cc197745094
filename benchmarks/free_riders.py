"""Who pays free riders: clients that train nothing, shown beside five that do.

    python -m benchmarks.free_riders [--smoke]

Digits, FedAvg, four settings, five seeds. Three riders, one at a time: "idle" returns the model it was sent, "echo"
adds the last movement of the global model once more, "reverse" takes it off. They are shown to the methods as clients;
the training does not contain them. Counted is how many of the five honest clients each rider outranks.
"""

import sys
from collections.abc import Callable
from functools import partial
from statistics import fmean, stdev
from typing import Any

import numpy as np
import torch

from benchmarks.record import keep
from fedcoast import CoAst, Round
from fedcoast.methods import METHODS, Assessor
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.presets import preset
from paper import research_code

SETTINGS = ("quantity", "noise", "mask", "label-noise")
RIDERS = {"idle": 0.0, "echo": 1.0, "reverse": -1.0}
METHODS_COMPARED: dict[str, Callable[[], Assessor]] = {
    "CoAst, our default": CoAst,
    "CoAst, votes against movement": CoAst.votes,
    "CoAst, the paper's equation": partial(CoAst.paper, reference="movement"),  # FedAvg aggregates no votes
    "CoAst, the public code": research_code.coast,
    **{name: METHODS[name].make for name in ("cgsv", "cosine", "fed-pca", "norm")},
}


def beside(fl_round: Round, before: dict[str, Any], times: float) -> Round:
    """The round with a rider, who goes on from the start by so many times the way from `before` to it."""
    start = {name: np.asarray(array) for name, array in fl_round.start.items()}
    ride = {name: array + array.dtype.type(times) * (array - before[name]) for name, array in start.items()}
    return Round(
        fl_round.number,
        start=start,
        local={**fl_round.local, "rider": ride},
        end=fl_round.end,
        buffers=fl_round.buffers,
    )


def outranked(setting: str, seed: int, rounds: int | None) -> dict[str, dict[str, int]]:
    """How many honest clients each rider is ranked above, by method."""
    sizes = {} if rounds is None else {"rounds": rounds}
    federation = Federation(preset("quick", "digits", "mlp", setting=setting, seed=seed, **sizes))
    assessors = {(method, rider): make() for method, make in METHODS_COMPARED.items() for rider in RIDERS}
    before: dict[str, Any] = {}
    for fl_round in federation:
        for (_, rider), assessor in assessors.items():
            assessor.observe(beside(fl_round, before or dict(fl_round.start), RIDERS[rider]))
        before = {name: np.array(array) for name, array in fl_round.start.items()}
    found: dict[str, dict[str, int]] = {}
    for (method, rider), assessor in assessors.items():
        scores = assessor.assessment().scores
        mine = scores.pop("rider")
        found.setdefault(method, {})[rider] = sum(score < mine for score in scores.values())
    return found


def run(smoke: bool) -> None:
    torch.set_num_threads(1)
    settings, seeds, rounds = (SETTINGS[:1], range(1), 6) if smoke else (SETTINGS, range(5), None)
    runs = [
        {"setting": setting, "seed": seed, **outranked(setting, seed, rounds)} for setting in settings for seed in seeds
    ]
    for method in METHODS_COMPARED:
        counts = {rider: [run[method][rider] for run in runs] for rider in RIDERS}
        spreads = (f"{rider} {fmean(of):.2f} ± {stdev(of) if len(of) > 1 else 0:.2f}" for rider, of in counts.items())
        print(f"{method:<32} honest clients outranked: {', '.join(spreads)}", flush=True)
    if not smoke:
        keep("free-riders", "python -m benchmarks.free_riders", {"honest clients outranked, of five": runs})


if __name__ == "__main__":
    run("--smoke" in sys.argv)
