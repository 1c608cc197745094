"""A federation without processes: a grid of plain functions, and messages made by hand.

Flower refuses to make a `Message` outside a running task; `as_a_task` is the only place that knows how to pretend.
"""

from dataclasses import dataclass, field

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid


def as_a_task():
    """Private to Flower (its recipe for tests): who this process is, without which no message can be made."""
    try:
        from flwr.supercore.task_identity import TaskIdentity
    except ModuleNotFoundError:  # before 1.41 a message needs no task
        return
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 7


NODES_HAVE_NAMES = hasattr(Grid, "get_nodes") and "name" in NodeInfo.DESCRIPTOR.fields_by_name


def record(model):
    return ArrayRecord({name: Array(np.asarray(array)) for name, array in model.items()})


def model_in(arrays):
    return {name: array.numpy() for name, array in arrays.items()}


def ask(node, arrays, kind="train", config=None):
    return Message(RecordDict({"arrays": arrays, "config": ConfigRecord(config or {})}), node, kind)


def answer(message, model, metadata=None, config=None, **metrics):
    content = {"arrays": record(model), "metrics": MetricRecord({"num-examples": 10, **metrics, **(metadata or {})})}
    if config:
        content["config"] = ConfigRecord(config)
    return Message(RecordDict(content), reply_to=message)


def failure(message, reason="out of memory"):
    return Message(Error(code=0, reason=reason), reply_to=message)


@dataclass
class Node:
    """A client: `train(model, number of the round)` gives its model, None for silence, or raises for an error reply."""

    train: object
    examples: int = 10
    name: str = ""
    public_key: bytes = b""
    metadata: dict = field(default_factory=dict)
    config: dict = field(default_factory=dict)
    mods: tuple = ()
    context: object = None


class HandmadeGrid(Grid):
    """Passes messages to functions, one node after the other; what is sent and answered stays in `log`."""

    def __init__(self, nodes):
        self.nodes = dict(nodes)
        self.log = []
        self._replies = {}
        self.run_info = None

    def set_run(self, run):
        self.run_info = run

    @property
    def run(self):
        return self.run_info

    def create_message(self, content, message_type, dst_node_id, group_id, ttl=None):
        return Message(content, dst_node_id, message_type, group_id=group_id)

    def get_node_ids(self):
        return list(self.nodes)

    def get_nodes(self):
        if not NODES_HAVE_NAMES:
            return [NodeInfo(node_id=i) for i in self.nodes]
        return [NodeInfo(node_id=i, name=n.name, public_key=n.public_key) for i, n in self.nodes.items()]

    def push_messages(self, messages):
        ids = []
        for message in messages:
            ids.append(f"message-{len(self.log)}")
            message.metadata.__dict__["_message_id"] = ids[-1]
            self.log.append(message)
            reply = self._reply(message)
            if reply is not None:
                self._replies[ids[-1]] = reply
        return ids

    def pull_messages(self, message_ids):
        return [self._replies.pop(one) for one in list(message_ids) if one in self._replies]

    def send_and_receive(self, messages, *, timeout=None):
        return self.pull_messages(self.push_messages(sorted(messages, key=lambda m: m.metadata.dst_node_id)))

    def _reply(self, message):
        node = self.nodes[message.metadata.dst_node_id]
        if not message.metadata.message_type.startswith("train"):
            return Message(RecordDict({"metrics": MetricRecord({"num-examples": 1, "loss": 0.5})}), reply_to=message)

        def client_app(message, context):
            number = message.content["config"].get("server-round", 0)
            model = node.train(model_in(message.content["arrays"]), number)
            if model is None:
                return None
            return answer(message, model, metadata={"num-examples": node.examples, **node.metadata}, config=node.config)

        app = client_app
        for mod in reversed(node.mods):
            app = _around(mod, app)
        try:
            return app(message, node.context)
        except RuntimeError as error:
            return failure(message, str(error))


def _around(mod, app):
    return lambda message, context: mod(message, context, app)


def drifting(seed, direction=1.0, size=0.1):
    """A client that goes the same way in every round, with noise of its own.

    As with PyTorch, its layers are float32 and its counters int64, whatever the server sends.
    """

    def moved(name, array, way, rng):
        if name.endswith("num_batches_tracked"):
            return (array + 1).astype(np.int64)
        step = direction * way.standard_normal(array.shape) + rng.standard_normal(array.shape)
        return array.astype(np.float32) + (size * step).astype(np.float32)

    def train(model, number):
        way, rng = np.random.default_rng(0), np.random.default_rng([seed, number])
        return {name: moved(name, array, way, rng) for name, array in model.items()}

    return train


def small_model(dtype=np.float32):
    rng = np.random.default_rng(5)
    return {"conv.weight": rng.standard_normal((8, 5)).astype(dtype), "fc.bias": rng.standard_normal(7).astype(dtype)}


def federation():
    """Four clients, the last of which goes the other way; node ids of 64 bits, as Flower draws them."""
    nodes = {
        7423646701073919812: Node(drifting(1), examples=30, metadata={"partition-id": 0}),
        9892395317463862946: Node(drifting(2), examples=20, metadata={"partition-id": 1}),
        1383212345678901234: Node(drifting(3), examples=10, metadata={"partition-id": 2}),
        4611686018427387905: Node(drifting(4, -1.0), examples=10, metadata={"partition-id": 3}),
    }
    return HandmadeGrid(nodes)
