"""The worth of models, with as few evaluations as possible: each coalition of a round once, in parallel, counted."""

import math
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, runtime_checkable

from fedcoast.errors import BadSetting
from fedcoast.methods.option_checks import check_count
from fedcoast.rounds.arrays import Array

ModelView = Mapping[str, Array]


class Utility(Protocol):
    """A number for a model, the larger the better: minus the loss, or the accuracy, on validation data.

    A model maps layer names to arrays, in the order of the global model. It is valid only during the call: its arrays
    are overwritten afterwards. A utility that several threads may call at once gives their number in an attribute
    `workers`.
    """

    def __call__(self, model: ModelView, /) -> float: ...


@runtime_checkable
class Differentiable(Protocol):
    """A utility that also knows the gradient of the validation *loss* at a model, by layer name."""

    def __call__(self, model: ModelView, /) -> float: ...

    def gradient(self, model: ModelView, /) -> Mapping[str, Array]: ...


class Evaluator:
    """A utility behind a cache and a counter, called by `workers` threads.

    Assessors with the same evaluator share its evaluations of a round; it keeps the worths of one round at a time.
    `evaluations` is how often the utility was really called.

    workers   threads that evaluate at once; as many as the utility's own `workers` says, else one
    progress  called with `evaluations` after each evaluation, from the thread that made it
    """

    def __init__(
        self,
        utility: Utility,
        workers: int | None = None,
        progress: Callable[[int], object] = lambda evaluations: None,
    ) -> None:
        if not callable(utility):
            raise BadSetting(
                "utility must be a function that values a model (model -> float, larger is better);"
                f" got {type(utility).__name__}. A run of the lab has one: fedcoast.simulation.utility.utility_for"
            )
        self.utility = utility
        self.workers: int = getattr(utility, "workers", 1) if workers is None else workers
        check_count("workers", self.workers, 1, "the threads that evaluate at once")
        self.progress = progress
        self.evaluations = 0
        self._lock = threading.Lock()
        self._scope: Callable[[], object] = lambda: None
        self._worths: dict[Hashable, float] = {}

    @classmethod
    def of(cls, utility: "Utility | Evaluator") -> "Evaluator":
        return utility if isinstance(utility, Evaluator) else cls(utility)

    @property
    def name(self) -> str:
        """What the utility calls itself, for the settings."""
        own_name = getattr(self.utility, "name", None)
        if isinstance(own_name, str):
            return own_name
        qualified: str = getattr(self.utility, "__qualname__", type(self.utility).__name__)
        return qualified

    def worths(
        self,
        scope: object,
        keys: Sequence[Hashable],
        models: Callable[[Sequence[int]], Iterable[ModelView]],
        describe: Callable[[int], str],
    ) -> list[float]:
        """The worths of the models that the keys stand for within a scope (a round).

        `models` makes those at some places of `keys`, one after the other; `describe` names the one at a place.
        Neighbours are made by the same thread.
        """
        if self._scope() is not scope:
            self._scope, self._worths = weakref.ref(scope), {}
        places = {key: place for place, key in enumerate(keys) if key not in self._worths}
        missing = sorted(places.values())
        parts = [part for part in _split(missing, self.workers) if part]
        stop = threading.Event()
        if len(parts) == 1:
            self._evaluate(parts[0], keys, models, describe, stop)
        elif parts:
            with ThreadPoolExecutor(len(parts), "fedcoast-utility") as pool:
                jobs = [pool.submit(self._evaluate, part, keys, models, describe, stop) for part in parts]
                try:
                    for job in jobs:
                        job.result()
                finally:
                    stop.set()  # also when it was Ctrl-C that woke us
        return [self._worths[key] for key in keys]

    def _evaluate(
        self,
        places: Sequence[int],
        keys: Sequence[Hashable],
        models: Callable[[Sequence[int]], Iterable[ModelView]],
        describe: Callable[[int], str],
        stop: threading.Event,
    ) -> None:
        try:
            for place, model in zip(places, models(places), strict=True):
                if stop.is_set():
                    return
                worth = _number(self.utility(model), describe, place)
                with self._lock:
                    self._worths[keys[place]] = worth
                    self.evaluations += 1
                    self.progress(self.evaluations)
        except BaseException:
            stop.set()
            raise


def _number(worth: Any, describe: Callable[[int], str], place: int) -> float:
    try:
        number = float(worth)
    except (TypeError, ValueError):
        raise BadSetting(f"the utility must return a number; for {describe(place)} it returned {worth!r}") from None
    if not math.isfinite(number):
        raise BadSetting(
            f"the utility must be finite; for {describe(place)} it is {number}. If uploads diverged, a bounded utility"
            " such as the accuracy still ranks them"
        )
    return number


def _split(places: list[int], parts: int) -> list[list[int]]:
    """Split the places into runs of about the same length.

    >>> _split([1, 2, 3, 4, 5], 2)
    [[1, 2, 3], [4, 5]]
    """
    size = -(-len(places) // parts) or 1
    return [places[at : at + size] for at in range(0, len(places), size)]
