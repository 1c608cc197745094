"""Clients whose update is a function of the round and their partition.

Partition 1 fails every other round, partition 2 goes the other way.
"""

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fedcoast.integrations.flower import identity_mod

app = ClientApp(mods=[identity_mod])


@app.train()
def train(message: Message, context: Context) -> Message:
    number, partition = message.content["config"]["server-round"], context.node_config["partition-id"]
    if partition == 1 and number % 2 == 0:
        raise RuntimeError("this client fails every other round")
    rng, way = np.random.default_rng([partition, number]), np.random.default_rng(0)
    sign = -1 if partition == 2 else 1
    arrays = {}
    for name, array in message.content["arrays"].items():
        start = array.numpy()
        step = 0.1 * sign * way.standard_normal(start.shape) + 0.05 * rng.standard_normal(start.shape)
        arrays[name] = Array((start + step).astype(start.dtype))
    metrics = MetricRecord({"num-examples": 10 * (partition + 1), "partition-id": partition})
    return Message(RecordDict({"arrays": ArrayRecord(arrays), "metrics": metrics}), reply_to=message)
