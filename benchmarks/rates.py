"""How the quick preset's rates, batches and rounds were chosen: health first, test accuracy second.

    python -m benchmarks.rates [--smoke]

All clients are alike, so there is no true order, and no score of any method is computed. For each trial: test accuracy
after each round, and the largest share of a layer's entries that no client moved in that round. The runs are kept in
`runs`; a trial whose run is there to its last round is not trained again.
"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.record import keep
from fedcoast.errors import BadFile
from fedcoast.rounds.unmoved import unmoved_in
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.presets import preset
from fedcoast.simulation.simulation import simulate
from fedcoast.storage import replay

SEED = 50
CONFIGURATIONS = {
    "1": ("cifar10", "tiny-resnet"),
    "2": ("cifar100", "tiny-resnet"),
    "3": ("stl10", "resnet4"),
    "4": ("cifar100", "convnet"),
    "Fashion-MNIST": ("fashion-mnist", "tiny-resnet"),
    "digits": ("digits", "mlp"),
}
# What else was tried; a few rounds were enough to see it die or fall behind.
REJECTED: dict[str, list[dict[str, Any]]] = {
    "1": [{"learning_rate": 0.002, "rounds": 10}],
    "2": [{"learning_rate": 0.002, "batch": 40, "rounds": 10}],
    "3": [{"learning_rate": 0.0003, "rounds": 10}],
    "4": [{"learning_rate": 0.002, "rounds": 5}, {"learning_rate": 0.0005, "rounds": 5}],
}


def trials() -> dict[str, Experiment]:
    """The presets as they are, then what was rejected, then the presets under pruned aggregation."""
    chosen = {name: preset("quick", *pair, setting="even", seed=SEED) for name, pair in CONFIGURATIONS.items()}
    found = {f"{name}, FedAvg": experiment for name, experiment in chosen.items()}
    for name, others in REJECTED.items():
        for changes in others:
            words = ", ".join(f"{field.replace('_', ' ')} {value}" for field, value in changes.items())
            found[f"{name}, FedAvg, {words} (rejected)"] = replace(chosen[name], **changes)
    found |= {f"{name}, pruned": replace(experiment, aggregation="pruned") for name, experiment in chosen.items()}
    return found


def run(smoke: bool) -> None:
    measured: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as thrown_away:
        runs = Path(thrown_away if smoke else "runs")
        smallest = {"smoke": preset("quick", "digits", "mlp", setting="even", rounds=2)}
        for name, experiment in (smallest if smoke else trials()).items():
            try:
                federation = Federation(experiment)
            except BadFile as error:
                print(f"{name}: left out ({error})")
                continue
            simulate(federation, runs / experiment.name)
            measured[name] = _measured(experiment, runs / experiment.name)
            print(f"{name}: accuracy {measured[name]['test accuracy'][-1]}, {measured[name]['worst']}", flush=True)
            if not smoke:  # after each, since all of them take hours
                keep("rates", "python -m benchmarks.rates", {"measured": measured})


def _measured(experiment: Experiment, folder: Path) -> dict[str, Any]:
    curve, shares = [], []
    for fl_round in replay(folder):
        curve.append(float(f"{fl_round.metrics['test accuracy']:.4f}"))
        shares.append(dict(unmoved_in(fl_round) or {}))
    layer, share = max(shares[-1].items(), key=lambda item: item[1])
    return {
        "experiment": experiment.to_json(),
        "test accuracy": curve,
        "unmoved, worst layer of each round": [round_share(by_layer) for by_layer in shares],
        "worst": f"{share:.1%} of {layer} unmoved in the last round",
    }


def round_share(by_layer: dict[str, float]) -> float:
    return float(f"{max(by_layer.values()):.4f}")


if __name__ == "__main__":
    run("--smoke" in sys.argv)
