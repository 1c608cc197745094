"""`watch(grid, *observers)`: observes without touching the strategy; for custom loops and strategies.

It sees what passes through the grid: train messages carry the model before the round, replies the uploads, and the
next model that is sent out (to be evaluated, or to be trained) is the model after the round. Only the last round has no
next message unless there is an evaluation: `finish(result.arrays)` closes it.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from flwr.app import ArrayRecord, ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from fedcoast.integrations.flower.assembly import UploadKind, capture_round, check_upload_kind
from fedcoast.integrations.flower.ballot_upload import requested_keeps
from fedcoast.integrations.flower.directory import ClientDirectory
from fedcoast.integrations.flower.identity import Resolver
from fedcoast.integrations.flower.npy_layers import Layers, Unreadable, layers_of
from fedcoast.integrations.flower.replies import SECURE, Upload, uploads_in
from fedcoast.integrations.observer_hub import Metrics, ObserverHub
from fedcoast.methods.base import Observer
from fedcoast.rounds.schema import NORMALISATION_STATISTICS

if TYPE_CHECKING:
    from flwr.proto.node_pb2 import NodeInfo
    from flwr.supercore.run import Run

WEIGHTS = ("num-examples", "num_examples")  # of the message API, and of clients of the old one


def watch(
    grid: Grid,
    *observers: Observer,
    identity: Resolver | None = None,
    weighted_by: str | None = None,
    buffers: Collection[str] = NORMALISATION_STATISTICS,
    uploads: UploadKind = "models",
) -> "ObservedGrid":
    """A grid that assesses the clients: `strategy.start(grid=watch(grid, coast), …)`, or any loop that uses the grid.

    `weighted_by` is the key under which clients send their weight; without it, "num-examples". `uploads` says what
    clients send: "models" or "differences".
    """
    check_upload_kind(uploads)
    weight_keys = (weighted_by,) if weighted_by else WEIGHTS
    return ObservedGrid(grid, ObserverHub(observers, buffers), identity, weight_keys, uploads)


class ObservedGrid(Grid):
    """A grid that passes everything on, and shows rounds to observers. Made by `watch`."""

    def __init__(
        self,
        grid: Grid,
        hub: ObserverHub,
        identity: Resolver | None,
        weighted_by: Sequence[str],
        upload_kind: UploadKind,
    ) -> None:
        self.grid = grid
        self._hub, self._directory = hub, ClientDirectory(hub, identity)
        self._weighted_by, self._upload_kind = tuple(weighted_by), upload_kind
        self._rounds = 0
        self._number = 0
        self._start: Layers | None = None
        self._uploads: list[Upload] = []
        self._recipients: set[int] = set()
        self._server_round: object = None
        self._ballot_keeps: frozenset[float] = frozenset()
        self._waiting: set[str] = set()

    @property
    def unobserved(self) -> dict[int, dict[str, str]]:
        """Rounds that some observer missed: number → observer (or "everyone") → reason."""
        return self._hub.unobserved

    def finish(self, arrays: ArrayRecord | None = None) -> Metrics:
        """Close the last round with the final model (`result.arrays`); without one, the model stayed as it was."""
        return self._close(None if arrays is None else layers_of(arrays))

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        messages = list(messages)
        training = self._sent(messages)
        replies = list(self.grid.send_and_receive(messages, timeout=timeout))
        if training:
            self._collect(replies)
        return replies

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        messages = list(messages)
        training = self._sent(messages)
        ids = list(self.grid.push_messages(messages))
        if training:
            self._waiting.update(ids)
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        replies = list(self.grid.pull_messages(message_ids))
        ours = [reply for reply in replies if reply.metadata.reply_to_message_id in self._waiting]
        self._waiting -= {reply.metadata.reply_to_message_id for reply in ours}
        if ours:
            self._collect(ours)
        return replies

    def _sent(self, messages: list[Message]) -> bool:
        """Inspect outgoing messages; return whether their replies are uploads of a round."""
        return bool(self._guarded(lambda: self._look(messages)))

    def _look(self, messages: list[Message]) -> bool:
        _refuse_secure_aggregation(messages)
        training = [message for message in messages if message.metadata.message_type.partition(".")[0] == "train"]
        layers_sent = next((layers for message in messages if (layers := _model_in(message))), None)
        if layers_sent is None:
            return False
        if self._ends(layers_sent, training):
            self._close(layers_sent)
        if not training:
            return False
        if layers_sent != self._start:
            self._rounds += 1
            self._number = self._hub.number(self._rounds)
            self._start, self._uploads, self._recipients, self._ballot_keeps = layers_sent, [], set(), frozenset()
            self._server_round, self._waiting = None, set()  # late replies belong to no round
        if any(_model_in(message) != layers_sent for message in training):
            self._start = None
            raise Unreadable("the clients were sent different models, so their updates cannot be compared")
        self._server_round = _server_round(training, self._server_round)
        self._recipients |= _nodes(training)
        self._ballot_keeps |= requested_keeps(training)
        self._directory.register_nodes(_nodes(training), self.grid)
        return True

    def _ends(self, layers_sent: Layers, training: list[Message]) -> bool:
        """Whether this model is the one after the round: to be evaluated, or to be trained in a round after it.

        The same model for nodes that have not answered, be it one after the other or once more, is the same round.
        """
        if self._start is None or not self._uploads or layers_sent.keys() != self._start.keys():
            return False
        answered = {upload.node_id for upload in self._uploads}
        return (
            not training
            or layers_sent != self._start
            or self._server_round not in (None, _server_round(training, self._server_round))
            or not answered.isdisjoint(_nodes(training))
        )

    def _collect(self, replies: list[Message]) -> None:
        # By the bytes and at once: the strategy may empty or replace what it is given.
        self._guarded(lambda: self._uploads.extend(uploads_in(replies)))

    def _close(self, end: Layers | None) -> Metrics:
        if self._start is None:
            return {}
        start, uploads, self._start, self._uploads = self._start, self._uploads, None, []
        resolution = self._directory.resolve(self._number, lambda: uploads)
        try:
            capture = capture_round(
                start,
                resolution,
                end,
                self._weighted_by,
                ballot_keeps=self._ballot_keeps,
                uploads=self._upload_kind,
            )
            metrics = self._hub.publish(self._number, capture)
        except Exception as error:
            self._hub.mark_unobserved(self._number, str(error))
            metrics = {"fedcoast/observed": 0}
        return metrics | {"fedcoast/absent": len(self._recipients - {upload.node_id for upload in uploads})}

    def _guarded(self, action: Callable[[], object]) -> object:
        try:
            return action()
        except Exception as error:
            self._hub.mark_unobserved(self._number or self._hub.last_round + 1, str(error))
            return None

    def set_run(self, run: "Run") -> None:
        self.grid.set_run(run)

    @property
    def run(self) -> "Run":
        return self.grid.run

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        return self.grid.create_message(content, message_type, dst_node_id, group_id, ttl)

    def get_node_ids(self) -> Iterable[int]:
        return self.grid.get_node_ids()

    def get_nodes(self) -> "Iterable[NodeInfo]":
        return self.grid.get_nodes()

    def __getattr__(self, name: str) -> Any:
        if name == "grid":
            raise AttributeError(name)
        return getattr(self.grid, name)


def _nodes(messages: Iterable[Message]) -> set[int]:
    return {message.metadata.dst_node_id for message in messages}


def _server_round(messages: Iterable[Message], default: object) -> object:
    """The round as the server counts it, if it says so, as Flower's strategies do."""
    records = [record for message in messages if message.has_content() for record in message.content.values()]
    numbers = (record.get("server-round") for record in records if isinstance(record, ConfigRecord))
    return next((number for number in numbers if number is not None), default)


def _model_in(message: Message) -> Layers | None:
    """The model that a message carries; where there are more records (control variates, …), the one named "arrays"."""
    if not message.has_content():
        return None
    records = {key: record for key, record in message.content.items() if isinstance(record, ArrayRecord)}
    chosen = records.get("arrays") or next(iter(records.values()), None)
    return None if chosen is None or not len(chosen) else layers_of(chosen)


def _refuse_secure_aggregation(messages: Iterable[Message]) -> None:
    for message in messages:
        if message.has_content() and any("secagg" in key for key in message.content):
            raise Unreadable(SECURE)
