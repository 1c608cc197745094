"""Client identities. An unauthenticated SuperNode gets a new node id when it restarts, so an id is not a client.

Sources, from the most to the least trustworthy: the name under which the operator registered the node, its public key,
a name that the client sends, the partition that the client says it trains on, and the node id. Each source has its own
form (`berlin`, `key-3f…`, `client-3`, `partition-3`, `node-742…`), so names from two sources never collide. A name
that a client sends is a claim: registered names and the forms above are refused.

Flower gives every node a public key. An unauthenticated SuperNode draws a new key at each start, and a simulated node
has random bytes. A node's record does not show whether its key lasts, so the operator must say so (`authenticated`).
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from flwr.app import ConfigRecord, Context, Message
from flwr.serverapp import Grid

from fedcoast.errors import BadSetting, Client, FedcoastError
from fedcoast.integrations.flower.replies import Upload
from fedcoast.rounds.clients import LONGEST_NAME, as_client, look_alikes, tidy_name

CLAIM = "client-id"
PARTITION = "partition-id"
IDENTITY_RECORD = "fedcoast.identity"

_DERIVED = re.compile(r"(node|key|client|partition)-")


class BadClaim(FedcoastError):
    """A client claims an identity that it cannot have."""


@dataclass(frozen=True)
class Peer:
    """What the server knows of the sender of one reply. `registered` are all names that nodes are registered under."""

    node_id: int
    name: str = ""
    public_key: bytes = b""
    metadata: Mapping[str, int | float | str] = field(default_factory=dict)
    registered: frozenset[str] = frozenset()


Resolver = Callable[[Peer], str]


@dataclass(frozen=True)
class Identity:
    """From a peer to the client's name: registered name > public key > claim > partition > node id.

    `claim` and `partition` are the keys under which clients may send a name or a number, in a MetricRecord or a
    ConfigRecord of their reply. `aliases` maps a former identity (or a node id) to the client it belongs to: the
    only way to merge two identities. `authenticated` says that the SuperLink runs with `--enable-supernode-auth`, so
    that public keys last; without it they are ignored.

    >>> Identity()(Peer(7423646701073919812))
    'node-7423646701073919812'
    >>> Identity(aliases={7423646701073919812: "berlin"})(Peer(7423646701073919812))
    'berlin'
    >>> Identity()(Peer(1, metadata={"partition-id": 3}))
    'partition-3'
    >>> Identity()(Peer(1, name="berlin", metadata={"partition-id": 3}))
    'berlin'
    """

    claim: str = CLAIM
    partition: str = PARTITION
    aliases: Mapping[str | int, str] = field(default_factory=dict)
    authenticated: bool = False

    def __post_init__(self) -> None:
        aliases = {_node(former) if isinstance(former, int) else former: now for former, now in self.aliases.items()}
        for former, now in aliases.items():
            if not isinstance(now, str) or not now:
                raise BadSetting(f"aliases maps a former identity to a client's name; got {now!r} for {former!r}")
            if now in aliases:
                raise BadSetting(
                    f"aliases leads from {former!r} to {now!r} and on to {aliases[now]!r}; map to the last one"
                )
        object.__setattr__(self, "aliases", aliases)

    def __call__(self, peer: Peer) -> str:
        name = self._known(peer)
        return self.aliases.get(name, name)

    def _known(self, peer: Peer) -> str:
        if peer.name:
            return peer.name
        if peer.public_key and self.authenticated:
            return f"key-{hashlib.sha256(peer.public_key).hexdigest()[:16]}"
        claimed = peer.metadata.get(self.claim)
        if isinstance(claimed, str):
            if len(claimed) > 10 * LONGEST_NAME:  # to tidy up many megabytes takes a while
                raise _too_long(claimed, peer)
            if tidy := tidy_name(claimed):
                return _checked(tidy, peer)
        if (number := _integer(claimed)) is not None:
            return f"client-{number}"
        if (number := _integer(peer.metadata.get(self.partition))) is not None:
            return f"partition-{number}"
        return _node(peer.node_id)


class NodeRegistry:
    """Registered names and public keys of the nodes, kept also while a node is offline."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[str, bytes]] = {}
        self._names: frozenset[str] = frozenset()

    def update(self, node_ids: Iterable[int], grid: Grid) -> None:
        """Ask the grid for new nodes; a node id keeps its name and key. Grids of old Flower versions know only ids."""
        if hasattr(grid, "get_nodes") and set(node_ids) - self._known.keys():
            for node in grid.get_nodes():
                self._known[node.node_id] = (getattr(node, "name", ""), bytes(getattr(node, "public_key", b"")))
            self._names = frozenset(name for name, _ in self._known.values() if name)

    def peer(self, upload: Upload) -> Peer:
        name, key = self._known.get(upload.node_id, ("", b""))
        return Peer(upload.node_id, name, key, upload.metadata, self._names)


@dataclass(frozen=True)
class ResolvedReplies:
    """The uploads of a round by client, the reason for each client that was rejected, and the number of replies."""

    uploads: Mapping[str, Upload]
    rejections: dict[Client, str]
    num_replies: int


def resolve_clients(uploads: Sequence[Upload], registry: NodeRegistry, identity: Resolver) -> ResolvedReplies:
    """Name the sender of every reply. Two replies with one identity are both rejected: either could be the impostor."""
    claimants: dict[str, list[Upload]] = {}
    rejections: dict[Client, str] = {}
    for upload in uploads:
        try:
            client = identity(registry.peer(upload))
            if not isinstance(client, str) or not client:
                raise BadClaim(f"an identity is a name that is not empty; the resolver gave {client!r}")
            as_client(client)  # not too long
        except Exception as error:  # a resolver may be the user's own; it costs this client, not the round
            rejections[_node(upload.node_id)] = f"cannot be identified: {error}"
        else:
            claimants.setdefault(client, []).append(upload)
    for client, rivals in claimants.items():
        if len(rivals) > 1:
            nodes = " and ".join(_node(rival.node_id) for rival in rivals)
            rejections[client] = (
                f"claimed by {nodes} in one round, so neither upload is used; give each client its own name"
                " (a registered one is safest), or remove the wrong entry of aliases"
            )
    return ResolvedReplies(
        {client: rivals[0] for client, rivals in claimants.items() if len(rivals) == 1}, rejections, len(uploads)
    )


def identity_mod(message: Message, context: Context, call_next: Callable[[Message, Context], Message]) -> Message:
    """A client mod that sends the node's identity from its configuration with every reply.

    `--node-config 'client-id="berlin" partition-id=0'` sets it. It travels in a ConfigRecord of the reply, which
    strategies ignore; a metric would be averaged.
    """
    reply = call_next(message, context)
    config = {key: context.node_config[key] for key in (CLAIM, PARTITION) if key in context.node_config}
    if config and not reply.has_error():
        reply.content[IDENTITY_RECORD] = ConfigRecord(dict(config))
    return reply


def _node(node_id: int) -> str:
    return f"node-{node_id}"


def _integer(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _too_long(claimed: str, peer: Peer) -> BadClaim:
    return BadClaim(
        f"{_node(peer.node_id)} claims to be {claimed[:40]!r}…; a name has at most {LONGEST_NAME} characters,"
        f" this one {len(claimed):,}"
    )


def _checked(claimed: str, peer: Peer) -> str:
    if len(claimed) > LONGEST_NAME:
        raise _too_long(claimed, peer)
    if claimed in peer.registered:
        raise BadClaim(f"{_node(peer.node_id)} claims to be {claimed!r}, which is the registered name of another node")
    if any(claimed in group for group in look_alikes({claimed, *peer.registered})):
        raise BadClaim(f"{_node(peer.node_id)} claims to be {claimed!r}, which looks like a registered name")
    if _DERIVED.match(claimed):
        raise BadClaim(
            f"{_node(peer.node_id)} claims to be {claimed!r}; names that start with node-, key-, client- or partition-"
            " are reserved by fedcoast and cannot be claimed"
        )
    return claimed
