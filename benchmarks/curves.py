"""Test accuracy over the rounds, plain averaging beside pruned aggregation.

    python -m benchmarks.curves [--smoke]

The quick preset's CIFAR-10 and TinyResNet in the quantity setting, 20 rounds, seed 0, as
`fedcoast simulate --dataset cifar10 --setting quantity --aggregation fedavg|pruned` trains them.
"""

import os
import sys
import time

from benchmarks.record import keep
from fedcoast.assessors import CoAst
from fedcoast.lab.federation import Federation
from fedcoast.lab.presets import preset


def run(smoke: bool) -> None:
    measured = {}
    for aggregation in ("fedavg", "pruned"):
        dataset, model = ("digits", "mlp") if smoke else ("cifar10", "tiny-resnet")
        changes = {"rounds": 4} if smoke else {}
        experiment = preset("quick", dataset, model, setting="quantity", aggregation=aggregation, **changes)
        federation = Federation(experiment, workers=1 if smoke else os.cpu_count() or 1)
        assessor, curve, began = CoAst(), [], time.perf_counter()
        for round in federation:
            assessor.observe(round)
            curve.append(float(f"{round.metrics['test accuracy']:.4f}"))
        assert federation.truth is not None
        measured[aggregation] = {
            "experiment": experiment.to_json(),
            "dataset": federation.ground.title,
            "test accuracy": curve,
            "seconds": float(f"{time.perf_counter() - began:.1f}"),
            "scores": [assessor.assessment().scores[client] for client in range(experiment.clients)],
            "Spearman with the planted order": assessor.assessment().spearman(federation.truth),
        }
        print(f"{aggregation}: {' '.join(f'{value:.3f}' for value in curve)}")
    if not smoke:
        keep("curves", "python -m benchmarks.curves", {"measured": measured})


if __name__ == "__main__":
    run("--smoke" in sys.argv)
