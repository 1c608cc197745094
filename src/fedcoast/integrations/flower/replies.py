"""What the clients sent: replies with content. Error replies and time-outs mean that the client was absent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict

from fedcoast.integrations.flower.npy_layers import Layers, Unreadable, check_names, layers_of

BALLOTS = "fedcoast.ballots"
"""The ConfigRecord that marks a reply whose arrays are packed votes."""

SECURE = (
    "this is secure aggregation: the server sees the sum of the updates and never one of them, so contributions"
    " cannot be told apart. Train without it to assess, or assess inside trusted hardware"
)


@dataclass(frozen=True)
class Ballots:
    """What a client that uploads votes reports: the share that votes, and the step of the votes of each layer.

    A layer without a step was sent as it is.
    """

    keep: float
    steps: Mapping[str, float]


@dataclass(frozen=True)
class Upload:
    """One reply, held by its bytes. `metadata` holds the numbers and texts of its metric and config records."""

    node_id: int
    records: tuple[Layers, ...] = ()
    metadata: Mapping[str, int | float | str] = field(default_factory=dict)
    ballots: Ballots | None = None
    problem: str | None = None

    def layers(self, expected: Mapping[str, object]) -> Layers:
        """The one record that is a model of these layers; clients of SCAFFOLD and others send several records."""
        if self.problem is not None:
            raise Unreadable(self.problem)
        if not self.records:
            raise Unreadable(
                "the reply holds no ArrayRecord: under secure aggregation or encryption the server cannot see an"
                " update, and no client can be assessed; send the model as a plain ArrayRecord"
            )
        same = [layers for layers in self.records if layers.keys() == expected.keys()]
        if len(same) > 1:
            raise Unreadable(
                f"the reply holds {len(same)} ArrayRecords with the layers of the global model; one is wanted, so that"
                " it is clear which is the client's model"
            )
        if not same:
            check_names(self.records[0], expected)
        return same[0]


def uploads_in(replies: Iterable[Message]) -> list[Upload]:
    """The uploads of all replies with content; error replies are skipped: absent is not zero."""
    return [upload_in(reply.metadata.src_node_id, reply.content) for reply in replies if reply.has_content()]


def upload_in(node_id: int, content: RecordDict) -> Upload:
    records, metadata, ballots, problem = list[Layers](), dict[str, int | float | str](), None, None
    for key, record in content.items():
        if isinstance(record, ArrayRecord):
            try:
                records.append(layers_of(record))
            except Unreadable as error:
                problem = str(error)
        elif key == BALLOTS and isinstance(record, ConfigRecord):
            ballots = _ballots(record)
        elif isinstance(record, MetricRecord):
            metadata |= _texts_and_numbers(record)
        else:
            metadata = (
                _texts_and_numbers(record) | metadata
            )  # a weight is a metric: a config entry of the same name never replaces it
    return Upload(node_id, tuple(records), metadata, ballots, problem)


def nameless_upload(
    node_id: int, tensors: Sequence[bytes], metadata: Mapping[str, int | float | str], model: Layers
) -> Upload:
    """A reply of the old API, which sends layers without names: they are those of the model, in its order."""
    if len(tensors) == len(model):
        return Upload(node_id, (dict(zip(model, tensors, strict=True)),), metadata)
    problem = f"the reply holds {len(tensors)} layers; {len(model)} are wanted, those of the global model in its order"
    return Upload(node_id, metadata=metadata, problem=problem)


def _texts_and_numbers(record: MetricRecord | ConfigRecord) -> dict[str, int | float | str]:
    return {
        key: value
        for key, value in record.items()
        if isinstance(value, int | float | str) and not isinstance(value, bool)
    }


def _ballots(record: ConfigRecord) -> Ballots:
    """As `BallotUpload` writes it; what is not as it should be is left out, and refused where it is missed."""
    keep, layers, steps = record.get("keep"), record.get("layers"), record.get("steps")
    pairs = zip(layers, steps, strict=False) if isinstance(layers, list) and isinstance(steps, list) else ()
    return Ballots(
        keep=float(keep) if isinstance(keep, int | float) else float("nan"),
        steps={name: float(step) for name, step in pairs if isinstance(name, str) and isinstance(step, int | float)},
    )
