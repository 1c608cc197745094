"""How fast `federate` trains, against a Flower simulation (Ray) of the same federation.

    python -m benchmarks.flower_training [--smoke]

Both train the same clients on the same batches for the same steps (CIFAR-10-shaped random images, TinyResNet, five
clients) and aggregate by the mean; neither evaluates. Flower gets one CPU a client and as many at a time as there are
cores, as `federate` does. The fastest round of each counts, the first (start-up) left out. Needs `fedcoast[flower]`.
"""

import os
import subprocess
import sys
import time

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from benchmarks.record import keep
from benchmarks.training import random_dataset
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federated_data import FederatedData, prepare
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.training import new_model, train

SMOKE = bool(os.environ.get("FEDCOAST_BENCHMARK_SMOKE"))  # Ray's workers see the environment, not the command line
IMAGES, BATCH, ROUNDS = (500, 20, 3) if SMOKE else (10_000, 100, 5)
EXPERIMENT = Experiment(dataset="random", model="tiny-resnet", setting="noise", rounds=ROUNDS, batch=BATCH)


@cache
def data() -> FederatedData:
    """Once a process."""
    torch.set_num_threads(1)
    return prepare(EXPERIMENT, random_dataset(IMAGES))


client_app = ClientApp()


@client_app.train()
def train_client(message: Message, context: Context) -> Message:
    model = new_model(EXPERIMENT, data())
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    number = int(message.content["config"]["server-round"])
    train(model, EXPERIMENT, data(), int(context.node_config["partition-id"]), number)
    metrics = MetricRecord({"num-examples": 1})
    return Message(RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics}), reply_to=message)


class Timed(FedAvg):
    """Notes when each round was aggregated."""

    ends: list[float]

    def aggregate_train(self, server_round: int, replies: Any) -> Any:
        replies = list(replies)
        if len(replies) != EXPERIMENT.clients or any(reply.has_error() for reply in replies):
            raise RuntimeError("a client failed; nothing is measured")
        result = super().aggregate_train(server_round, replies)
        self.ends.append(time.perf_counter())
        return result


def flower_rounds() -> list[float]:
    """Seconds of each round after the first, in a Flower simulation."""
    strategy = Timed(fraction_train=1.0, fraction_evaluate=0.0, min_train_nodes=5, min_available_nodes=5)
    strategy.ends = []
    server_app = ServerApp()

    @server_app.main()
    def main(grid: Grid, context: Context) -> None:
        initial = ArrayRecord(new_model(EXPERIMENT, data()).state_dict())
        strategy.start(grid=grid, initial_arrays=initial, num_rounds=ROUNDS)

    resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
    run_simulation(server_app, client_app, num_supernodes=5, backend_config=resources)
    return [after - before for before, after in pairwise(strategy.ends)]


def federate_rounds() -> list[float]:
    """The same from `federate`, with a worker a core and one test image."""
    dataset = random_dataset(IMAGES, tests=1)  # Flower's clients do not evaluate either
    federation = Federation(EXPERIMENT, workers=os.cpu_count() or 1, dataset=dataset)
    ends = [time.perf_counter() for _ in federation]
    return [after - before for before, after in pairwise(ends)]


def run(smoke: bool) -> None:
    if smoke != SMOKE:
        raise ValueError("the size is set when this module is imported; set FEDCOAST_BENCHMARK_SMOKE before")
    flower, ours = min(flower_rounds()), min(federate_rounds())
    speeds = f"Flower simulation {IMAGES / flower:.0f} images/s, federate {IMAGES / ours:.0f}"
    print(f"{speeds}: {flower / ours:.2f} × as fast")
    if not smoke:
        figures = {"flower": round(flower, 3), "federate": round(ours, 3)}
        keep(
            "flower-training-speed",
            "python -m benchmarks.flower_training",
            {"seconds a round": figures, "speed-up": round(flower / ours, 2)},
        )


def start(smoke: bool) -> None:
    """Run in a process of its own, since Ray's workers must find this module by its name and size."""
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    if smoke:
        environment["FEDCOAST_BENCHMARK_SMOKE"] = "1"
    code = f"from benchmarks.flower_training import run; run({smoke})"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


if __name__ == "__main__":
    start("--smoke" in sys.argv)
