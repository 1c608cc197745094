"""How the quick preset's learning rates and steps were chosen: test accuracy where all clients are alike.

    python -m benchmarks.rates [--smoke]

No score of any method is computed here, and the setting plants no order. Runs are kept in `runs` and taken up again.
"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.record import keep
from fedcoast.lab.experiment import Experiment
from fedcoast.lab.federation import Federation
from fedcoast.lab.simulation import simulate
from fedcoast.rounds import replay

ALIKE = Experiment(setting="even", seed=1000)
CONVNET = replace(ALIKE, dataset="cifar100", model="convnet", rounds=8, steps=50, batch=20, tests=1000)
RESNET4 = replace(ALIKE, dataset="stl10", model="resnet4", rounds=8, steps=30, batch=10)
PRUNED = replace(RESNET4, rounds=6, learning_rate=0.0005, aggregation="pruned")
TRIALS = {
    "ConvNet, Adam at 0.001": replace(CONVNET, learning_rate=0.001),
    "ConvNet, Adam at 0.0005": replace(CONVNET, learning_rate=0.0005),
    "ResNet-4, Adam at 0.001": replace(RESNET4, learning_rate=0.001),
    "ResNet-4, Adam at 0.0005": replace(RESNET4, learning_rate=0.0005),
    "ResNet-4, pruned, α = 0.02": replace(PRUNED, step=0.02),
    "ResNet-4, pruned, α = 0.002": replace(PRUNED, step=0.002),
}
SMOKE = {"MLP, Adam at 0.005": replace(ALIKE, rounds=2, learning_rate=0.005, augment=False)}


def run(smoke: bool) -> None:
    measured = {}
    with tempfile.TemporaryDirectory() as thrown_away:
        runs = Path(thrown_away if smoke else "runs")
        for name, experiment in (SMOKE if smoke else TRIALS).items():
            simulate(Federation(experiment), runs / experiment.name)
            curve = [float(f"{round.metrics['test accuracy']:.4f}") for round in replay(runs / experiment.name)]
            measured[name] = {"experiment": experiment.to_json(), "test accuracy": curve}
            print(f"{name}: {' '.join(f'{value:.3f}' for value in curve)}")
    if not smoke:
        keep("rates", "python -m benchmarks.rates", {"measured": measured})


if __name__ == "__main__":
    run("--smoke" in sys.argv)
