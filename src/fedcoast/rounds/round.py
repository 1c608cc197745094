"""A round of federated learning, as a server saw it."""

import operator
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from fedcoast.errors import BadRound, BadSetting, Client, FedcoastError, SpoiltRound, shortened
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.clients import as_client, in_order
from fedcoast.rounds.schema import NORMALISATION_STATISTICS, Model, ModelSchema, NotFinite, schema_of

Policy = Literal["raise", "quarantine"]


@dataclass(frozen=True, eq=False)
class Round:
    """A frozen record of what a server saw; models are used as given and never changed.

    `start` is the global model before the round (Θ^{t−1}), `end` the one after it (Θ^t), `local` one model
    for each client that answered (θ_i^t). `local` may be any mapping, also one that loads a model only when it
    is read (`LazyModels`). `weights` are the aggregation weights, if known. `buffers` are shell
    patterns of entries that are not trained: they are kept, and never vote or score. `quarantined` names clients
    whose upload was left out before the round was shown, with the reason. `metrics` are numbers the server has for
    the round (its test accuracy, say): carried and recorded, never used for a score. `ballot_keep` is the share of each
    layer that was kept, when the uploads are known by their ballots only: a local model is then start + step · ballot.
    `unmoved` is the share of each layer that no upload moved, if it is known (`rounds.unmoved`).

    >>> Round(1, start={"w": np.zeros(2)}, local={"a": {"w": np.ones(2)}}, end={"w": np.ones(2)}).clients
    ('a',)
    """

    number: int
    start: Model
    local: Mapping[Any, Model]  # of clients; Any, because a mapping's keys have one type for a checker
    end: Model
    weights: Mapping[Any, float] | None = None
    buffers: Collection[str] = NORMALISATION_STATISTICS
    quarantined: Mapping[Client, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    ballot_keep: float | None = None
    unmoved: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", _number(self.number))
        if not isinstance(self.local, Mapping):
            raise BadRound(
                f"round {self.number}: local must map each client to its model; got {type(self.local).__name__}"
            )
        object.__setattr__(self, "quarantined", _reasons(self))
        object.__setattr__(self, "metrics", _metrics(self))
        _check_patterns(self)
        if not self.clients and not self.quarantined:
            raise BadRound(f"round {self.number}: at least one client must have answered; got none")
        if self.weights is not None:
            _check_weights(self)
        if self.ballot_keep is not None and not (_is_number(self.ballot_keep) and 0 < self.ballot_keep <= 1):
            raise BadRound(f"round {self.number}: ballot_keep must lie in (0, 1]; got {self.ballot_keep!r}")
        if self.unmoved is not None:
            object.__setattr__(self, "unmoved", _shares(self))

    @property
    def clients(self) -> tuple[Client, ...]:
        """The clients that answered, in an order that does not depend on their arrival: integers first, then names."""
        return in_order(as_client(client) for client in self.local)

    def schema(self) -> ModelSchema:
        """The layout of the global model before the round."""
        with self._as_bad_round("before"):
            return schema_of(self.start, self.buffers)

    def read_start(self, schema: ModelSchema) -> dict[str, Array]:
        with self._as_bad_round("before"):
            return schema.read(self.start)

    def read_end(self, schema: ModelSchema) -> dict[str, Array]:
        with self._as_bad_round("after"):
            return schema.read(self.end)

    def part(self, schema: ModelSchema, names: Collection[str]) -> "Round":
        """The same round with only these layers, without weights; a model that lacks another layer is refused."""
        with self._as_bad_round("before"):
            start = schema.pick(self.start, names)
        with self._as_bad_round("after"):
            end = schema.pick(self.end, names)

        def load(key: Client) -> Callable[[], Model]:
            return lambda: schema.pick(self.local[key], names)

        local = LazyModels({key: load(key) for key in self.local})
        return replace(self, start=start, local=local, end=end, weights=None, unmoved=None)

    @contextmanager
    def _as_bad_round(self, which: str) -> Iterator[None]:
        try:
            yield
        except NotFinite as error:
            raise SpoiltRound(f"round {self.number}, global model {which}: {error}") from error
        except FedcoastError as error:
            raise BadRound(f"round {self.number}, global model {which}: {error}") from error
        except Exception as error:  # a model may load lazily too, and fail in any way
            raise BadRound(
                f"round {self.number}, global model {which} cannot be read ({type(error).__name__}: {error})"
            ) from error


class LazyModels(Mapping[Client, Model]):
    """Models that are loaded on each access and not cached: `LazyModels({"a": lambda: load("a.npz"), …})`."""

    def __init__(self, loaders: Mapping[Client, Callable[[], Model]]) -> None:
        self._loaders = dict(loaders)

    def __getitem__(self, client: Client) -> Model:
        return self._loaders[client]()

    def __iter__(self) -> Iterator[Client]:
        return iter(self._loaders)

    def __len__(self) -> int:
        return len(self._loaders)


def check_policy(policy: str) -> None:
    if not isinstance(policy, str) or policy not in ("raise", "quarantine"):
        raise BadSetting(f"bad_uploads must be 'raise' or 'quarantine'; got {policy!r}")


def _number(value: object) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if isinstance(value, bool) or not 0 <= number < 10**18:
        raise BadRound(f"a round number is an integer from 0 to below 10**18; got {value!r}")
    return number


def _check_weights(record: Round) -> None:
    weights = record.weights
    if not isinstance(weights, Mapping):
        raise BadRound(f"round {record.number}: weights must map each client to a number; got {weights!r}")
    weight_of = {as_client(client): weight for client, weight in weights.items()}
    clients = record.clients
    for client in clients:
        if client not in weight_of:
            raise BadRound(f"round {record.number}: client {client!r} has no weight")
    expected_clients = {*clients, *record.quarantined}
    for client, weight in weight_of.items():
        if client not in expected_clients:
            raise BadRound(f"round {record.number}: there is a weight for {client!r}, who did not answer")
        if not _is_number(weight) or not 0 <= float(weight) < float("inf"):
            raise BadRound(
                f"round {record.number}: the weight of client {client!r} must be a number ≥ 0; got {weight!r}"
            )


def _reasons(record: Round) -> dict[Client, str]:
    quarantined = record.quarantined
    if not isinstance(quarantined, Mapping) or not all(isinstance(reason, str) for reason in quarantined.values()):
        raise BadRound(f"round {record.number}: quarantined must map clients to reasons; got {quarantined!r}")
    return {as_client(client): shortened(reason) for client, reason in quarantined.items()}


def _metrics(record: Round) -> dict[str, float]:
    metrics = record.metrics
    if not isinstance(metrics, Mapping) or not all(
        isinstance(name, str) and _is_number(value) for name, value in metrics.items()
    ):
        raise BadRound(f"round {record.number}: metrics must map names to numbers; got {metrics!r}")
    return {name: float(value) for name, value in metrics.items()}


def _shares(record: Round) -> dict[str, float]:
    shares = record.unmoved
    if not isinstance(shares, Mapping) or not all(
        isinstance(layer, str) and _is_number(share) and 0 <= share <= 1 for layer, share in shares.items()
    ):
        raise BadRound(f"round {record.number}: unmoved must map layers to shares from 0 to 1; got {shares!r}")
    return {layer: float(share) for layer, share in shares.items()}


def _check_patterns(record: Round) -> None:
    patterns = record.buffers
    several = isinstance(patterns, Collection) and not isinstance(patterns, str)
    if not several or not all(isinstance(pattern, str) for pattern in patterns):
        raise BadRound(f"round {record.number}: buffers must be a collection of patterns; got {patterns!r}")


def _is_number(value: object) -> bool:
    """Whether it is a real number within the range of float; Python's integers are unbounded."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return not isinstance(value, int) or abs(value) <= sys.float_info.max
