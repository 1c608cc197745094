"""What watching a Flower federation costs: seconds a round and memory, with the observer and without.

Ten clients send a model of ten million float32 parameters. The strategy is Flower's FedAvg, the replies are made by
hand, so that nothing but the server is measured. Needs `fedcoast[flower]`.

    python -m benchmarks.flower [--smoke]
"""

import gc
import logging
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.record import keep

LAYERS = {"conv.weight": (512, 512, 3, 3), "fc1.weight": (4096, 1024), "fc2.weight": (1024, 3344), "fc2.bias": (1024,)}
TRAINING = 10.0  # seconds that a round is said to train
GOAL = 0.05


def run(smoke: bool) -> None:
    clients, rounds = (3, 1) if smoke else (10, 5)
    measured = table(clients, rounds)
    if not smoke:
        keep("flower-overhead", "python -m benchmarks.flower", {"clients": clients, "rounds": rounds, **measured})


def table(clients: int, rounds: int) -> dict[str, Any]:
    """Measure and print every case; the first is what the others are compared with."""
    size = sum(int(np.prod(shape)) for shape in LAYERS.values())
    print(f"{clients} clients, {size / 1e6:.1f} million parameters, median of {rounds} rounds\n")
    print(f"{'case':<33}{'s a round':>10}{'added s':>9}{'of 10 s':>9}{'peak MB':>9}{'added MB':>10}{'copies':>8}")
    figures: dict[str, dict[str, float]] = {}
    for case in CASES:
        seconds, peak = _in_a_process_of_its_own(case, clients, rounds)
        plain = figures.get("FedAvg alone", {"seconds a round": seconds, "peak MB": peak})
        added, more = seconds - plain["seconds a round"], peak - plain["peak MB"]
        copies = more / (clients * size * 4 / 1e6)
        figures[case] = {"seconds a round": seconds, "peak MB": peak, "share": added / TRAINING, "copies": copies}
        print(
            f"{case:<33}{seconds:>10.3f}{added:>9.3f}{added / TRAINING:>9.1%}{peak:>9.0f}{more:>10.0f}{copies:>7.2f}×"
        )
    print(
        f"\ngoal: added seconds under {GOAL:.0%} of a round that trains {TRAINING:.0f} s, that is {GOAL * TRAINING} s;"
    )
    print("`copies` is the added memory in copies of all clients' models: 1.00× would be a second copy")
    return {"parameters": size, "measured": figures}


def _in_a_process_of_its_own(case: str, clients: int, rounds: int) -> tuple[float, float]:
    """Peak memory belongs to a process, so each case has one."""
    code = f"from benchmarks.flower import measure; print(*measure({case!r}, {clients}, {rounds}))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    seconds, peak = done.stdout.split()
    return float(seconds), float(peak)


def measure(case: str, clients: int, rounds: int) -> tuple[float, float]:
    """Median seconds of `configure_train` and `aggregate_train`, and the peak memory of the process in MB."""
    from flwr.app import ConfigRecord
    from flwr.serverapp.strategy import FedAvg

    logging.getLogger("flwr").setLevel(logging.ERROR)
    _as_a_task()
    strategy = CASES[case](FedAvg())
    grid, arrays, seconds_taken = _Grid(clients), _record(0), []
    for number in range(1, rounds + 2):  # the first warms up
        gc.collect()  # Flower's records hold each other in circles; without this, last round's uploads still count
        replies = [_reply(node, number) for node in range(1, clients + 1)]
        begun = time.perf_counter()
        list(strategy.configure_train(number, arrays, ConfigRecord(), grid))
        arrays, _ = strategy.aggregate_train(number, replies)
        seconds_taken.append(time.perf_counter() - begun)
        del replies
        if number == 1 and case.startswith("observed by CoAst"):
            _let_it_compile()
    return statistics.median(seconds_taken[1:]), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def _let_it_compile() -> None:
    """In a federation the clients train meanwhile; the first round did without."""
    from fedcoast.kernels.compiling import kernels

    kernels("float32", wait=True)


def _glanced_at(strategy: Any) -> Any:
    from fedcoast.integrations.flower import Observed

    return Observed(strategy, _Glance())


def _assessed(strategy: Any, **settings: Any) -> Any:
    from fedcoast import CoAst
    from fedcoast.integrations.flower import Observed

    return Observed(strategy, CoAst(**settings))


class _Glance:
    """An observer that reads every upload and does nothing: what the wrapper itself costs."""

    def observe(self, fl_round: Any, /) -> None:
        from fedcoast.rounds.round_view import RoundView

        for _ in RoundView(fl_round, fl_round.schema(), "raise").uploads():
            pass


CASES: dict[str, Callable[[Any], Any]] = {
    "FedAvg alone": lambda strategy: strategy,
    "observed, uploads read": _glanced_at,
    "observed by CoAst": _assessed,
    "observed by CoAst in all layers": partial(_assessed, layers="all"),
}


def _as_a_task() -> None:
    """Private to Flower: who this process is, without which no message can be made."""
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 7


def _record(seed: int) -> Any:
    from flwr.app import Array, ArrayRecord

    rng = np.random.default_rng(seed)
    return ArrayRecord({name: Array(rng.standard_normal(shape, dtype=np.float32)) for name, shape in LAYERS.items()})


def _reply(node: int, number: int) -> Any:
    from flwr.app import ConfigRecord, Message, MetricRecord, RecordDict

    question = Message(RecordDict({"config": ConfigRecord()}), node, "train")
    content = {"arrays": _record(1000 * number + node), "metrics": MetricRecord({"num-examples": node})}
    return Message(RecordDict(content), reply_to=question)


class _Grid:
    """As much of a grid as FedAvg asks for."""

    def __init__(self, nodes: int) -> None:
        self._nodes = range(1, nodes + 1)

    def get_node_ids(self) -> list[int]:
        return list(self._nodes)

    def get_nodes(self) -> list[Any]:
        from flwr.proto.node_pb2 import NodeInfo

        return [NodeInfo(node_id=node) for node in self._nodes]


if __name__ == "__main__":
    run("--smoke" in sys.argv)
