"""The federations of `benchmarks.attacks`: which are planned, and what is measured of each."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmarks.flags import RULES, code_of
from fedcoast.analysis.flags import flags
from fedcoast.analysis.health import Health
from fedcoast.methods import METHODS, Assessor
from fedcoast.methods.coalition.utility import Evaluator
from fedcoast.methods.coast import pair_credits
from fedcoast.rounds.unmoved import unmoved_in
from fedcoast.simulation.attacks import ATTACKS
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.presets import preset
from fedcoast.simulation.simulation import about
from fedcoast.simulation.utility import utility_for
from fedcoast.stats import client_line

CLIENTS, SEEDS = (6, 10), (0, 1, 2)
MOST_FOR_SHAPLEY = 6
LEFT_OUT = ("chance", "constant", "size", "fed-pca-exact", "cgsv-exact")
HONEST = "honest"
DATASETS: dict[str, dict[str, Any]] = {
    "digits": {
        "model": "deep-mlp", "images": 100, "sizes": {"rounds": 30, "batch": 48, "learning_rate": 0.004}
    },
    "cifar10": {
        "model": "tiny-resnet",
        "images": 50,
        "sizes": {
            "rounds": 20, "epochs": 0.05, "batch": 20, "learning_rate": 0.0003, "tests": 1000, "precision": "float32"
        },
    },
}  # fmt: skip


def methods(clients: int) -> list[str]:
    """Every method without validation data that is not a baseline or a variant, and Shapley where it is affordable."""
    free = [
        name
        for name, method in METHODS.items()
        if not {"utility", "gradient"} & set(method.needs)
        and name not in LEFT_OUT
        and not name.endswith("-research-code")  # other benchmarks register these
    ]
    return free + (["shapley"] if clients <= MOST_FOR_SHAPLEY else [])


def measure(experiment: Experiment) -> dict[str, Any]:
    """Scores by method, flagged clients and final accuracy of one federation."""
    federation = Federation(experiment)
    images = DATASETS[experiment.dataset]["images"]
    utility = Evaluator(utility_for(about(federation), limit=images, workers=1))
    names = methods(experiment.clients)
    assessors: dict[str, Assessor] = {
        name: METHODS[name].make(utility=utility) if name == "shapley" else METHODS[name].make() for name in names
    }
    rounds = list(federation)
    for fl_round in rounds:
        for assessor in assessors.values():
            assessor.observe(fl_round)
    flagged: dict[str, list[str]] = {}
    for flag in flags(rounds):
        flagged.setdefault(str(flag.client), []).append(flag.kind)
    health = Health({rounds[-1].number: unmoved_in(rounds[-1])})
    return {
        "made": made(),
        "accuracy": rounds[-1].metrics["test accuracy"],
        "health": health.warning() or None,
        "scores": {
            name: {str(client): score for client, score in assessor.assessment().scores.items()}
            for name, assessor in assessors.items()
        },
        "flags": flagged,
    }


def shares(scores: Mapping[str, float]) -> dict[str, float]:
    """The positive part of each score, as a share of all; nobody has any where no score is positive."""
    positive = {client: max(0.0, score) for client, score in scores.items()}
    total = sum(positive.values())
    return {client: value / total if total else 0.0 for client, value in positive.items()}


def rank(scores: Mapping[str, float], client: str) -> int:
    return 1 + sum(score > scores[client] for score in scores.values())


def made() -> str:
    """Changes with the default of CoAst and with the flag rules: what was measured with others is measured again."""
    text = json.dumps(METHODS["coast"].make().assessment().settings, sort_keys=True)
    return hashlib.sha256("".join([text, *map(code_of, (*RULES, pair_credits, client_line))]).encode()).hexdigest()[:12]


def experiments(dataset: str, smoke: bool = False) -> dict[str, Experiment]:
    """By key: dataset, attack, clients and seed; seed by seed, and the honest federation first."""
    kind, found = DATASETS[dataset], {}
    sizes = {**kind["sizes"], **({"rounds": 6} if smoke else {})}
    for clients in CLIENTS[:1] if smoke else CLIENTS:
        for seed in SEEDS[:1] if smoke else SEEDS:
            for name in (HONEST, *(("echo", "zero") if smoke else ATTACKS)):
                honest = preset("quick", dataset, kind["model"], setting="noise", clients=clients, seed=seed, **sizes)
                attacked = replace(honest, attack=name, attacker=clients // 2) if name != HONEST else honest
                found[f"{dataset}/{name}/{clients}/{seed}"] = attacked
    return found
