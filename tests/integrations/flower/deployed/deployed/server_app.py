"""FedAvg, observed or not; everything a test wants to compare is written to `out`."""

import json
import time
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from fedcoast import CoAst, Recorder
from fedcoast.integrations.flower import Observed

app = ServerApp()


class InOrder(FedAvg):
    """Sums in the order of partitions: replies come in the order of arrival, and float sums depend on it."""

    def aggregate_train(self, server_round, replies):
        def place(reply):
            return -1 if reply.has_error() else next(iter(reply.content.metric_records.values()))["partition-id"]

        return super().aggregate_train(server_round, sorted(replies, key=place))


@app.main()
def main(grid: Grid, context: Context) -> None:
    settings = context.run_config
    out = Path(settings["out"])
    out.mkdir(parents=True, exist_ok=True)
    wait_for(grid, settings["nodes"])

    def after(number: int, arrays: ArrayRecord) -> None:
        np.savez(out / f"model-{number}.npz", **{name: array.numpy() for name, array in arrays.items()})
        (out / f"reached-{number}").touch()
        if settings["restarts"] and number == 3:
            wait_for(grid, settings["nodes"] - 1)  # the test kills a node
        if settings["restarts"] and number == 4:
            wait_for(grid, settings["nodes"])  # and starts it again

    rng = np.random.default_rng(3)
    arrays = ArrayRecord([rng.standard_normal((20, 10)).astype(np.float32), rng.standard_normal(10).astype(np.float32)])
    strategy = InOrder(fraction_train=settings["fraction"], fraction_evaluate=0.0)
    coast = CoAst(horizon=2)
    if settings["observed"]:
        strategy = Observed(strategy, coast, Recorder(out / "run"))
    result = strategy.start(grid, arrays, num_rounds=settings["rounds"], timeout=300, evaluate_fn=after)
    (out / "assessment.json").write_text(coast.assessment().to_json())
    (out / "metrics.json").write_text(json.dumps({n: dict(m) for n, m in result.train_metrics_clientapp.items()}))
    (out / "done").touch()


def wait_for(grid: Grid, nodes: int) -> None:
    deadline = time.monotonic() + 120
    while len(list(grid.get_node_ids())) != nodes:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{nodes} nodes were wanted; there are {len(list(grid.get_node_ids()))}")
        time.sleep(0.2)
