"""`Observed(strategy, *observers)` assesses the clients of any strategy with one line. Training is unchanged."""

from collections.abc import Collection, Iterable
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from fedcoast.errors import BadSetting
from fedcoast.integrations.flower.assembly import UploadKind, capture_round, check_upload_kind
from fedcoast.integrations.flower.ballot_upload import requested_keeps
from fedcoast.integrations.flower.directory import ClientDirectory
from fedcoast.integrations.flower.identity import ResolvedReplies, Resolver
from fedcoast.integrations.flower.interventions import Factors, Intervention, apply, warn
from fedcoast.integrations.flower.npy_layers import Layers, layers_of
from fedcoast.integrations.flower.replies import SECURE, uploads_in
from fedcoast.integrations.named_log import NamedLog
from fedcoast.integrations.observer_hub import Metrics, ObserverHub
from fedcoast.integrations.round_capture import RoundCapture
from fedcoast.methods.base import Observer
from fedcoast.rounds.schema import NORMALISATION_STATISTICS

_log = NamedLog(__name__)


class Observed(Strategy):
    """A strategy that also shows every round to observers.

        coast = CoAst()
        strategy = Observed(FedAvg(), coast, Recorder("runs/today"))
        result = strategy.start(grid, initial_arrays=arrays, num_rounds=20)
        print(coast.assessment())

    The strategy inside sees exactly the calls it would see alone, and its arrays are returned as they are. Scores are
    added to the metrics of each round: `fedcoast/coast/score/berlin`. An observer that fails never stops the
    federation: see `unobserved`, the log, and `fedcoast/observed` in the metrics.

    identity         names the clients: an `Identity`, or any function from a `Peer` to a name
    buffers          patterns of untrained layers, which never vote; by default PyTorch's normalisation statistics
    intervene        off by default. A function of the round number and the assessments so far, which returns factors
                     for the weights of clients (0 drops one); see docs/flower.md before using it
    continue_rounds  when a recording is resumed, give the strategy and the clients (`server-round`) the number of the
                     round over all starts, not since this start
    uploads          "models" (clients send the trained model) or "differences" (they send what they changed)
    """

    def __init__(
        self,
        strategy: Strategy,
        *observers: Observer,
        identity: Resolver | None = None,
        buffers: Collection[str] = NORMALISATION_STATISTICS,
        intervene: Intervention | None = None,
        continue_rounds: bool = False,
        uploads: UploadKind = "models",
    ) -> None:
        _check_strategy(strategy)
        check_upload_kind(uploads)
        self.strategy = strategy
        self._hub = ObserverHub(observers, buffers)
        self._directory, self._uploads = ClientDirectory(self._hub, identity), uploads
        self._intervene, self._continue = intervene, continue_rounds
        self._number: int | None = None
        self._shift = 0
        self._start: Layers | None = None
        self._num_sent = 0
        self._ballot_keeps: frozenset[float] = frozenset()
        if intervene is not None:
            warn(intervene)

    @property
    def unobserved(self) -> dict[int, dict[str, str]]:
        """Rounds that some observer missed: number → observer (or "everyone") → reason."""
        return self._hub.unobserved

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        self._number = self._hub.number(server_round)
        self._shift = self._number - server_round if self._continue else 0
        self._start = None
        try:
            self._start = layers_of(arrays)  # before the strategy can remove anything from the record
        except Exception as error:
            _log.warning("the global model cannot be read: %s", error)
        messages = list(self.strategy.configure_train(server_round + self._shift, arrays, config, grid))
        self._num_sent, self._ballot_keeps = len(messages), requested_keeps(messages)
        self._directory.register_nodes([message.metadata.dst_node_id for message in messages], grid)
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        replies = list(replies)
        number = self._hub.number(server_round) if self._number is None else self._number
        # Before the strategy can empty or replace anything.
        resolution = self._directory.resolve(number, lambda: uploads_in(replies))
        factors: Factors = {}
        if self._intervene is not None:
            replies, factors = apply(
                self._intervene, number, self._hub.answers(), resolution, replies, _weight_key(self)
            )
        try:
            arrays, metrics = self.strategy.aggregate_train(server_round + self._shift, replies)
        except Exception as error:
            self._explain_failure(number, resolution, error)
            raise
        scores = self._publish(number, resolution, factors, arrays, metrics)
        self._number = self._start = None  # release the model's bytes
        return arrays, MetricRecord({**(metrics or {}), **scores})

    def _publish(
        self,
        number: int,
        resolution: ResolvedReplies,
        factors: Factors,
        arrays: ArrayRecord | None,
        metrics: MetricRecord | None,
    ) -> Metrics:
        try:
            end = None if arrays is None else layers_of(arrays)
            capture = self._capture(resolution, end, factors, {} if metrics is None else dict(metrics))
            scores = self._hub.publish(number, capture)
        except Exception as error:
            self._hub.mark_unobserved(number, str(error))
            scores = {"fedcoast/observed": 0}
        return scores | {"fedcoast/absent": max(0, self._num_sent - resolution.num_replies)}

    def _capture(
        self, resolution: ResolvedReplies, end: Layers | None, factors: Factors, metrics: dict[str, Any]
    ) -> RoundCapture:
        if self._start is None:
            raise BadSetting("the model that was sent is not known; configure_train must come before aggregate_train")
        weight_key = (_weight_key(self),)
        return capture_round(
            self._start, resolution, end, weight_key, factors, metrics, self._ballot_keeps, self._uploads
        )

    def _explain_failure(self, number: int, resolution: ResolvedReplies, error: Exception) -> None:
        self._hub.safely(
            "the failed aggregation cannot be explained",
            lambda: self._hub.explain_failure(number, self._capture(resolution, None, {}, {}), error),
        )

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        return self.strategy.configure_evaluate(server_round + self._shift, arrays, config, grid)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        return self.strategy.aggregate_evaluate(server_round + self._shift, replies)

    def summary(self) -> None:
        _log.info("observed by %s", ", ".join(self._hub.observers))
        self.strategy.summary()

    def __getattr__(self, name: str) -> Any:
        # Delegates attributes such as weighted_by_key or privacy_spent to the wrapped strategy.
        if name == "strategy":
            raise AttributeError(name)
        return getattr(self.strategy, name)


def _weight_key(strategy: Strategy) -> str:
    """The metadata key of the weights, also of a wrapped strategy."""
    inner: object = strategy
    while inner is not None:
        attributes = getattr(inner, "__dict__", {})
        if isinstance(key := attributes.get("weighted_by_key"), str):
            return key
        inner = attributes.get("strategy")
    return "num-examples"


def refuse_trees(strategy: object) -> None:
    """Tree ensembles grow by whole trees: clients share no parameters that could be compared."""
    name = type(strategy).__name__
    if any(base.__name__.startswith("FedXgb") for base in type(strategy).__mro__):
        raise BadSetting(
            f"{name} trains tree ensembles (XGBoost): clients send trees, not parameters of one shared model, so their"
            " updates cannot be compared; fedcoast assesses models with parameters, such as neural networks"
        )


def _check_strategy(strategy: object) -> None:
    refuse_trees(strategy)
    if isinstance(strategy, Strategy):
        if type(strategy).start is not Strategy.start:
            raise BadSetting(
                f"{type(strategy).__name__} runs its own loop (it overrides start), which a wrapper would replace;"
                " observe the grid instead: coast = CoAst(); grid = watch(grid, coast);"
                " result = strategy.start(grid=grid, …); grid.finish(result.arrays); coast.assessment()"
            )
        return
    kind = type(strategy)
    ancestry = [f"{base.__module__}.{base.__name__}" for base in kind.__mro__]
    if any("secure_aggregation" in name or "SecAgg" in name for name in ancestry):
        raise BadSetting(f"{kind.__name__} cannot be observed: {SECURE}")
    if any(name.startswith("flwr.server.strategy") for name in ancestry):
        raise BadSetting(
            f"{kind.__name__} is a strategy of the old API (flwr.server.strategy); wrap it with"
            " fedcoast.integrations.flower.legacy.ObservedLegacy, or use its namesake in flwr.serverapp.strategy"
        )
    raise BadSetting(f"a flwr.serverapp.strategy.Strategy is wanted; got {strategy!r}")
