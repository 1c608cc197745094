"""What the clients sent: replies with content; error replies and time-outs are clients who were absent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict

from fedcoast.integrations.flower.layers import Layers, Unreadable, check_names, layers_of

BALLOTS = "fedcoast.ballots"
"""The ConfigRecord that marks a reply whose arrays are packed votes."""

SECURE = (
    "this is secure aggregation: the server sees the sum of the updates and never one of them, so nobody can tell who"
    " contributed what. Train without it to assess, or assess inside trusted hardware"
)


@dataclass(frozen=True)
class Ballots:
    """What a client that uploads votes says of them: the share that votes, and how far the votes of each layer go.

    A layer without a step was sent as it is.
    """

    keep: float
    steps: Mapping[str, float]


@dataclass(frozen=True)
class Upload:
    """One reply, held by its bytes. `said` are the numbers and words of its metric and config records."""

    node_id: int
    records: tuple[Layers, ...] = ()
    said: Mapping[str, int | float | str] = field(default_factory=dict)
    ballots: Ballots | None = None
    trouble: str | None = None

    def layers(self, wanted: Mapping[str, object]) -> Layers:
        """The one record that is a model of these layers; SCAFFOLD-like clients send more than one record."""
        if self.trouble is not None:
            raise Unreadable(self.trouble)
        if not self.records:
            raise Unreadable(
                "the reply holds no ArrayRecord: under secure aggregation or encryption the server cannot see an"
                " update, and nobody can be assessed; send the model as a plain ArrayRecord"
            )
        same = [layers for layers in self.records if layers.keys() == wanted.keys()]
        if len(same) > 1:
            raise Unreadable(
                f"the reply holds {len(same)} ArrayRecords with the layers of the global model; one is wanted, so that"
                " it is clear which is the client's model"
            )
        if not same:
            check_names(self.records[0], wanted)
        return same[0]


def gather(replies: Iterable[Message]) -> list[Upload]:
    """Everyone who answered; error replies are left out: absent is not zero."""
    return [upload_in(reply.metadata.src_node_id, reply.content) for reply in replies if reply.has_content()]


def upload_in(node_id: int, content: RecordDict) -> Upload:
    records, said, ballots, trouble = list[Layers](), dict[str, int | float | str](), None, None
    for key, record in content.items():
        if isinstance(record, ArrayRecord):
            try:
                records.append(layers_of(record))
            except Unreadable as error:
                trouble = str(error)
        elif key == BALLOTS and isinstance(record, ConfigRecord):
            ballots = _ballots(record)
        elif isinstance(record, MetricRecord):
            said |= _words(record)
        else:
            said = _words(record) | said  # a weight is a metric: no word of the same name takes its place
    return Upload(node_id, tuple(records), said, ballots, trouble)


def nameless_upload(
    node_id: int, tensors: Sequence[bytes], said: Mapping[str, int | float | str], model: Layers
) -> Upload:
    """A reply of the old API, which sends layers without names: they are those of the model, in its order."""
    if len(tensors) == len(model):
        return Upload(node_id, (dict(zip(model, tensors, strict=True)),), said)
    trouble = f"the reply holds {len(tensors)} layers; {len(model)} are wanted, those of the global model in its order"
    return Upload(node_id, said=said, trouble=trouble)


def _words(record: MetricRecord | ConfigRecord) -> dict[str, int | float | str]:
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
