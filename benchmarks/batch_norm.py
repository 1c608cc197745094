"""What pruned aggregation does to batch norm, and what fresh statistics mend.

    python -m benchmarks.batch_norm [--smoke]

ResNet-18 on scikit-learn's digits, two clients, pruned aggregation. After every round the same pruned weights are
judged three times on the test images: with the mean of the uploads' batch-norm statistics, with statistics that the
clients measured anew under the pruned weights (what the lab deploys), and with the statistics of the test batch itself.
"""

import sys

import numpy as np
import torch

from benchmarks.record import keep
from fedcoast.kernels.aggregation import mean
from fedcoast.rounds import Round
from fedcoast.simulation.degradations import normalise
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federated_data import as_floats
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.training import evaluate, new_model


def accuracies(federation: Federation, fl_round: Round) -> dict[str, float]:
    """Test accuracy of one round's pruned weights under each kind of statistics."""
    model, data = new_model(federation.experiment, federation.data), federation.data
    count = len(data.test_labels)

    def judged(state: dict[str, np.ndarray]) -> float:
        model.load_state_dict({name: torch.from_numpy(np.asarray(array)) for name, array in state.items()})
        return evaluate(model, data, 0, count)[0] / count

    averaged = dict(fl_round.end)
    for name in federation.buffers:
        tensors = [upload[name] for upload in fl_round.local.values()]
        averaged[name] = mean(tensors) if np.issubdtype(tensors[0].dtype, np.floating) else fl_round.end[name]
    found = {"averaged": judged(averaged), "measured anew": judged(dict(fl_round.end))}
    model.train()
    with torch.no_grad():
        answers = model(normalise(as_floats(data.test_images), data.mean, data.std))
    found["of the test batch"] = float((answers.argmax(1) == data.test_labels).double().mean())
    return found


def run(smoke: bool) -> None:
    torch.set_num_threads(1)
    rounds, seeds = (1, [0]) if smoke else (10, [0, 1, 2])
    measured: dict[str, list[dict[str, float]]] = {}
    for seed in seeds:
        sizes = {"rounds": rounds, "clients": 2, "steps": 2 if smoke else 20, "batch": 32, "augment": False}
        experiment = Experiment(model="resnet18", setting="even", aggregation="pruned", step=0.01, seed=seed, **sizes)
        federation = Federation(experiment)
        measured[str(seed)] = [accuracies(federation, fl_round) for fl_round in federation]
        last = measured[str(seed)][-1]
        print(f"seed {seed}, round {rounds}: " + ", ".join(f"{kind} {value:.3f}" for kind, value in last.items()))
    if not smoke:
        keep("batch-norm", "python -m benchmarks.batch_norm", {"test accuracy by seed and round": measured})


if __name__ == "__main__":
    run("--smoke" in sys.argv)
