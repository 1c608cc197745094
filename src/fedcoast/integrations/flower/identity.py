"""Who is who. An unauthenticated SuperNode gets a new node id when it restarts, so an id alone is not a client.

From the most to the least trustworthy: the name the operator registered the node under, its public key, a name the
client sends, the partition it says it trains on, and the node id. Each kind has its own form (`berlin`, `key-3f…`,
`client-3`, `partition-3`, `node-742…`), so that two kinds never meet by accident. What a client *says* is a claim: it
cannot take a registered name, nor a form that is derived here.

Flower gives every node a public key: an unauthenticated SuperNode draws a new one at each start, a simulated one has
random bytes for it. Nothing in a node's record tells such a key from a lasting one, so the operator has to.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from flwr.app import ConfigRecord, Context, Message
from flwr.serverapp import Grid

from fedcoast.errors import BadSetting, Client, FedcoastError
from fedcoast.integrations.flower.replies import Upload

CLAIM = "client-id"
PARTITION = "partition-id"
INTRODUCTION = "fedcoast.introduction"

_DERIVED = re.compile(r"(node|key|client|partition)-")


class BadClaim(FedcoastError):
    """A client says it is somebody it cannot be."""


@dataclass(frozen=True)
class Peer:
    """What the server knows of the sender of one reply. `registered` are all names that nodes are registered under."""

    node_id: int
    name: str = ""
    public_key: bytes = b""
    said: Mapping[str, int | float | str] = field(default_factory=dict)
    registered: frozenset[str] = frozenset()


Resolver = Callable[[Peer], str]


@dataclass(frozen=True)
class Identity:
    """From a peer to the client's name: registered name > public key > claim > partition > node id.

    `claim` and `partition` are the keys under which clients may send a name or a number, in a MetricRecord or a
    ConfigRecord of their reply. `joined` maps a former identity (or a node id) to the one it is to count as: the only
    way in which two identities become one. `authenticated` says that the SuperLink runs with
    `--enable-supernode-auth`, so that public keys last; without it they are passed over.

    >>> Identity()(Peer(7423646701073919812))
    'node-7423646701073919812'
    >>> Identity(joined={7423646701073919812: "berlin"})(Peer(7423646701073919812))
    'berlin'
    >>> Identity()(Peer(1, name="berlin", said={"partition-id": 3})), Identity()(Peer(1, said={"partition-id": 3}))
    ('berlin', 'partition-3')
    """

    claim: str = CLAIM
    partition: str = PARTITION
    joined: Mapping[str | int, str] = field(default_factory=dict)
    authenticated: bool = False

    def __post_init__(self) -> None:
        joins = {_node(former) if isinstance(former, int) else former: now for former, now in self.joined.items()}
        for former, now in joins.items():
            if not isinstance(now, str) or not now:
                raise BadSetting(f"joined maps a former identity to a client's name; got {now!r} for {former!r}")
            if now in joins:
                raise BadSetting(f"joined leads from {former!r} to {now!r} and on to {joins[now]!r}; name the last one")
        object.__setattr__(self, "joined", joins)

    def __call__(self, peer: Peer) -> str:
        known = self._known(peer)
        return self.joined.get(known, known)

    def _known(self, peer: Peer) -> str:
        if peer.name:
            return peer.name
        if peer.public_key and self.authenticated:
            return f"key-{hashlib.sha256(peer.public_key).hexdigest()[:16]}"
        claimed = peer.said.get(self.claim)
        if isinstance(claimed, str) and claimed:
            return _checked(claimed, peer)
        if (number := _integer(claimed)) is not None:
            return f"client-{number}"
        if (number := _integer(peer.said.get(self.partition))) is not None:
            return f"partition-{number}"
        return _node(peer.node_id)


class NodeRegistry:
    """What is known of the nodes: registered names and keys, remembered also while a node is away."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[str, bytes]] = {}
        self._names: frozenset[str] = frozenset()

    def meet(self, node_ids: Iterable[int], grid: Grid) -> None:
        """Ask the grid about nodes that were never met; a node id keeps its name and key."""
        if set(node_ids) - self._known.keys():
            for node in grid.get_nodes():
                self._known[node.node_id] = (getattr(node, "name", ""), bytes(getattr(node, "public_key", b"")))
            self._names = frozenset(name for name, _ in self._known.values() if name)

    def peer(self, upload: Upload) -> Peer:
        name, key = self._known.get(upload.node_id, ("", b""))
        return Peer(upload.node_id, name, key, upload.said, self._names)


@dataclass(frozen=True)
class ResolvedReplies:
    """The clients of a round, those who were refused, with the reason, and how many replies there were."""

    clients: Mapping[str, Upload]
    refused: dict[Client, str]
    answered: int


def resolve_clients(uploads: Sequence[Upload], registry: NodeRegistry, identity: Resolver) -> ResolvedReplies:
    """Name everyone who answered. Two that claim one identity are both refused: nobody can say which is which."""
    claimants: dict[str, list[Upload]] = {}
    refused: dict[Client, str] = {}
    for upload in uploads:
        try:
            client = identity(registry.peer(upload))
            if not isinstance(client, str) or not client:
                raise BadClaim(f"an identity is a name that is not empty; the resolver gave {client!r}")
        except Exception as error:  # a resolver may be the user's own; it costs this client, not the round
            refused[_node(upload.node_id)] = f"cannot be identified: {error}"
        else:
            claimants.setdefault(client, []).append(upload)
    for client, rivals in claimants.items():
        if len(rivals) > 1:
            nodes = " and ".join(_node(rival.node_id) for rival in rivals)
            refused[client] = (
                f"claimed by {nodes} in one round, so neither upload is used; give each client its own name"
                " (a registered one is safest), or take the wrong entry out of joined"
            )
    return ResolvedReplies(
        {client: one[0] for client, one in claimants.items() if len(one) == 1}, refused, len(uploads)
    )


def introduce(message: Message, context: Context, call_next: Callable[[Message, Context], Message]) -> Message:
    """A client mod: say who this is, as the node was configured (`--node-config 'client-id="berlin" partition-id=0'`).

    It goes into a ConfigRecord of the reply, which strategies leave alone; a metric would be averaged.
    """
    reply = call_next(message, context)
    known = {key: context.node_config[key] for key in (CLAIM, PARTITION) if key in context.node_config}
    if known and not reply.has_error():
        reply.content[INTRODUCTION] = ConfigRecord(dict(known))
    return reply


def _node(node_id: int) -> str:
    return f"node-{node_id}"


def _integer(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _checked(claimed: str, peer: Peer) -> str:
    if claimed in peer.registered:
        raise BadClaim(f"{_node(peer.node_id)} says it is {claimed!r}, which is the registered name of another node")
    if _DERIVED.match(claimed):
        raise BadClaim(
            f"{_node(peer.node_id)} says it is {claimed!r}; names that start with node-, key-, client- or partition-"
            " are given by fedcoast and cannot be claimed"
        )
    return claimed
