"""The server: plain FedAvg, and one line more to know who contributes."""

import torch
from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from fedcoast import CoAst, Recorder
from fedcoast.integrations.flower import Identity, Observed, resumed
from quickstart.task import SITES, Net, accuracy

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    torch.manual_seed(0)
    folder = str(context.run_config["record"])
    arrays, done = ArrayRecord(Net().state_dict()), 0
    if folder:
        arrays, done = resumed(folder, arrays)  # goes on where a killed run ended

    # Sites are known by their partition here; a registered SuperNode would bring its name along.
    names = Identity(aliases={f"partition-{place}": site.name for place, site in enumerate(SITES)})
    coast = CoAst()
    observers = [coast, Recorder(folder)] if folder else [coast]
    strategy = Observed(FedAvg(fraction_evaluate=0.0, min_available_nodes=2), *observers, identity=names)

    strategy.start(
        grid,
        initial_arrays=arrays,
        num_rounds=int(context.run_config["num-server-rounds"]) - done,
        evaluate_fn=evaluate,
    )
    print(coast.assessment())


def evaluate(number: int, arrays: ArrayRecord) -> MetricRecord:
    net = Net()
    net.load_state_dict(arrays.to_torch_state_dict())
    return MetricRecord({"accuracy": accuracy(net)})
