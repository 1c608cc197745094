"""Strategies of the old API (`flwr.server.strategy`): the same, one line around the strategy.

    strategy = ObservedLegacy(FedAvg(), coast, names=list(model.state_dict()))

The old API sends layers without names. With `names`, batch-norm statistics are recognised and do not vote.
"""

import hashlib
from typing import Any

from flwr.common import Parameters
from flwr.server.strategy import Strategy

from fedcoast.errors import BadSetting
from fedcoast.integrations.flower.assembly import UploadKind, capture_round, check_upload_kind
from fedcoast.integrations.flower.directory import ClientDirectory
from fedcoast.integrations.flower.identity import Resolver
from fedcoast.integrations.flower.npy_layers import Layers, Unreadable
from fedcoast.integrations.flower.observed import refuse_trees
from fedcoast.integrations.flower.replies import SECURE, nameless_upload
from fedcoast.integrations.observer_hub import Metrics, ObserverHub
from fedcoast.methods.base import Observer


class ObservedLegacy:
    """Any strategy of the old API; scores appear among the metrics of `aggregate_fit`, and so in `History`.

    It behaves like a strategy without being a subclass: everything else is delegated to the wrapped strategy.
    """

    def __init__(
        self,
        strategy: Strategy,
        *observers: Observer,
        identity: Resolver | None = None,
        names: list[str] | None = None,
        uploads: UploadKind = "models",
    ) -> None:
        check_upload_kind(uploads)
        refuse_trees(strategy)
        if not isinstance(strategy, Strategy):
            raise BadSetting(
                f"a flwr.server.strategy.Strategy is wanted; got {strategy!r}; for the new API use Observed"
            )
        self.strategy = strategy
        self._hub, self._names, self._uploads = ObserverHub(observers), names, uploads
        self._directory = ClientDirectory(self._hub, identity)
        self._start: list[bytes] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__.get("strategy"), name)  # initialising, evaluating, …

    def configure_fit(self, server_round: int, parameters: Parameters, client_manager: Any) -> Any:
        self._start = list(parameters.tensors)
        return self.strategy.configure_fit(server_round, parameters, client_manager)

    def aggregate_fit(self, server_round: int, results: Any, failures: Any) -> Any:
        # Before the strategy changes anything.
        uploads = [(_node(proxy), list(fit.parameters.tensors), fit) for proxy, fit in results]
        secure = len(results) > 1 and all(fit.parameters is results[0][1].parameters for _, fit in results)
        parameters, metrics = self.strategy.aggregate_fit(server_round, results, failures)
        number = self._hub.number(server_round)
        try:
            scores = self._publish(number, uploads, SECURE if secure else None, parameters)
        except Exception as error:
            self._hub.mark_unobserved(number, str(error))
            scores = {"fedcoast/observed": 0}
        return parameters, {**metrics, **{key: value for key, value in scores.items() if not isinstance(value, list)}}

    def _publish(self, number: int, uploads: Any, refusal: str | None, end: Parameters | None) -> Metrics:
        if self._start is None or refusal:
            raise Unreadable(refusal or "configure_fit must come before aggregate_fit")
        start, after = self._layers(self._start), None if end is None else self._layers(end.tensors)
        uploads = [
            nameless_upload(node, tensors, {**fit.metrics, "num-examples": fit.num_examples}, start)
            for node, tensors, fit in uploads
        ]
        resolution = self._directory.resolve(number, lambda: uploads)
        return self._hub.publish(number, capture_round(start, resolution, after, uploads=self._uploads))

    def _layers(self, tensors: list[bytes]) -> Layers:
        names = self._names or [str(place) for place in range(len(tensors))]
        if not len(names) == len({*names}) == len(tensors):
            raise Unreadable(f"names holds {len({*names})} layers and the model {len(tensors)}; name each layer once")
        return dict(zip(names, tensors, strict=True))


def _node(proxy: Any) -> int:
    """The node's id; the oldest servers know clients by a text alone, which becomes a number."""
    return getattr(proxy, "node_id", 0) or int(hashlib.sha256(proxy.cid.encode()).hexdigest()[:15], 16)
