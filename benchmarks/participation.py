"""Clients that miss rounds: ranked by sums, by plain means, and by means adjusted.

    python -m benchmarks.participation [--smoke]

Digits, FedAvg, the paper's four settings, five and ten clients of which half are drawn for each round, five seeds that
nothing was chosen by. Given is Spearman's ρ with the true order; a client that was never drawn leaves it undefined.
"""

import math
import sys
from collections.abc import Callable
from functools import partial
from statistics import fmean, stdev

import torch

from benchmarks.record import keep
from fedcoast import Assessment, CoAst
from fedcoast.methods import METHODS, Assessor
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.presets import preset
from fedcoast.stats.ranking import spearman
from paper import research_code

SETTINGS = ("quantity", "noise", "resolution", "mask")
CLIENTS = (5, 10)
SEEDS = range(10, 15)
METHODS_COMPARED: dict[str, Callable[[], Assessor]] = {
    "CoAst, our default": CoAst,
    "CoAst, our default, k = 5": partial(CoAst, horizon=5),
    "CoAst, votes against movement": CoAst.votes,
    "CoAst, the paper's equation": partial(CoAst.paper, reference="movement"),  # FedAvg aggregates no votes
    "CoAst, the public code": research_code.coast,
    "cosine": METHODS["cosine"].make,
}
WAYS: dict[str, Callable[[Assessment], dict[str | int, float]]] = {
    "sum": lambda answer: dict(answer.scores),
    "mean": lambda answer: answer.mean,
    "evened": lambda answer: answer.adjusted_mean,
}


def agreement(setting: str, clients: int, seed: int, rounds: int | None) -> dict[str, dict[str, float]]:
    """ρ by method and by way of ranking."""
    sizes = {} if rounds is None else {"rounds": rounds}
    experiment = preset(
        "quick", "digits", "mlp", setting=setting, clients=clients, participation=0.5, seed=seed, **sizes
    )
    federation = Federation(experiment)
    assessors = {method: make() for method, make in METHODS_COMPARED.items()}
    for fl_round in federation:
        for assessor in assessors.values():
            assessor.observe(fl_round)
    answers = {method: assessor.assessment() for method, assessor in assessors.items()}
    truth = federation.ground_truth or {}
    return {
        method: {way: spearman(list(truth.values()), [rank(answer)[c] for c in truth]) for way, rank in WAYS.items()}
        for method, answer in answers.items()
    }


def run(smoke: bool) -> None:
    torch.set_num_threads(1)
    settings, seeds, rounds = (SETTINGS[:1], SEEDS[:1], 12) if smoke else (SETTINGS, SEEDS, None)
    runs = [
        {"clients": clients, "setting": setting, "seed": seed, **agreement(setting, clients, seed, rounds)}
        for clients in CLIENTS
        for setting in settings
        for seed in seeds
    ]
    for clients in CLIENTS:
        for method in METHODS_COMPARED:
            columns = []
            for way in WAYS:
                found = [run[method][way] for run in runs if run["clients"] == clients]
                of = [rho for rho in found if not math.isnan(rho)]
                columns.append(f"{way} {fmean(of) if of else math.nan:.2f} ± {stdev(of) if len(of) > 1 else 0:.2f}")
            print(f"{clients:>2} clients, {method:<32} {', '.join(columns)}", flush=True)
    if not smoke:
        keep("participation", "python -m benchmarks.participation", {"rho with the planted order": runs})


if __name__ == "__main__":
    run("--smoke" in sys.argv)
