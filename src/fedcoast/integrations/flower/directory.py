"""Maps replies to clients in every round of a federation; failures never reach training."""

from collections.abc import Callable, Iterable, Sequence

from flwr.serverapp import Grid

from fedcoast.integrations.flower.identity import Identity, NodeRegistry, ResolvedReplies, Resolver, resolve_clients
from fedcoast.integrations.flower.replies import Upload
from fedcoast.integrations.observer_hub import ObserverHub


class ClientDirectory:
    """The nodes of a grid and the resolver that names them."""

    def __init__(self, hub: ObserverHub, identity: Resolver | None) -> None:
        self._hub, self._registry = hub, NodeRegistry()
        self._identity: Resolver = Identity() if identity is None else identity

    def register_nodes(self, node_ids: Iterable[int], grid: Grid) -> None:
        self._hub.safely("the grid did not describe its nodes", lambda: self._registry.update(node_ids, grid))

    def resolve(self, number: int, uploads: Callable[[], Sequence[Upload]]) -> ResolvedReplies:
        try:
            return resolve_clients(uploads(), self._registry, self._identity)
        except Exception as error:
            self._hub.mark_unobserved(number, f"the replies cannot be read ({error})")
            return ResolvedReplies({}, {}, 0)
