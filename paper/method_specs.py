"""A method with its options, as run on a recorded federation, and the key that its results are kept under."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from fedcoast.kernels.aggregation import sparse_upload
from fedcoast.methods import METHODS, Assessor, CoAst, Utility
from fedcoast.methods.coalition.utility import Evaluator
from fedcoast.methods.coast.config import CoAstConfig
from fedcoast.rounds import LazyModels, Round
from fedcoast.rounds.schema import Model
from fedcoast.simulation.experiment import Experiment
from fedcoast.storage.old_settings import as_first_written
from paper import research_code

# Test images that score a coalition: few enough for the 32 coalitions of every round to take minutes on one core.
VALIDATION_IMAGES = {"tiny-resnet": 500, "convnet": 200, "resnet4": 200}
MOST_VALIDATION_IMAGES = 500

# Our CoAst and three readings of the paper (docs/paper-notes.md, D).
READINGS: dict[str, Callable[..., CoAst]] = {
    "ours": CoAst,
    "votes": CoAst.votes,
    "text": CoAst.paper,
    "code": research_code.coast,
}
READING_TITLES = {
    "ours": "CoAst, our default",
    "votes": "CoAst, votes against movement",
    "text": "CoAst, the paper's equation",
    "code": "CoAst, the public code",
}

# Options that had other names when the first results were recorded; keys still use those, so that results are found.
KEY_NAMES = {
    "cgsv": {"clip_norm": "length", "momentum": "memory"},
    "cgsv-exact": {"clip_norm": "length", "momentum": "memory"},
    "shapfed": {"momentum": "memory"},
    "gtg-shapley": {"round_tol": "between", "within_tol": "within", "convergence_tol": "change"},
}


@dataclass(frozen=True)
class MethodSpec:
    """A method of `METHODS` and its options.

    preset   makes CoAst in one of its readings; other methods have none
    sparse   reduce each upload to this share of its updates, as sparse aggregation does
    """

    name: str
    method: str
    options: dict[str, Any] = field(default_factory=dict)
    preset: Callable[..., CoAst] | None = None
    sparse: float | None = None

    @property
    def needs_utility(self) -> bool:
        """Whether the method needs a utility, which makes it expensive."""
        return bool({"utility", "gradient"} & set(METHODS[self.method].needs))

    def assessor(self, utility: Utility | Evaluator | None = None) -> Assessor:
        if self.preset is not None:
            return self.preset(**self.options)
        extra = {"utility": utility} if self.needs_utility else {}
        return METHODS[self.method].make(**extra, **self.options)

    def key(self, experiment: Experiment) -> str:
        """Identifies the method, all of its settings (defaults included) and its utility."""
        names = KEY_NAMES.get(self.method, {})
        written = as_first_written(self.method, self.assessor(_Named(experiment)).settings)
        settings = {names.get(k, k): value for k, value in written.items()}
        words = json.dumps([self.method, settings, self.sparse], sort_keys=True)
        return f"{self.name}-{hashlib.sha256(words.encode()).hexdigest()[:10]}"

    def shown(self, rounds: Iterable[Round]) -> Iterator[Round]:
        """The rounds as this method is shown them."""
        return iter(rounds) if self.sparse is None else sparsified(rounds, self.sparse)


class _Named:
    """A utility of which only the name is used, before any data are loaded."""

    def __init__(self, experiment: Experiment) -> None:
        self.name = f"loss on the first {validation_images(experiment)} test images"

    def __call__(self, model: object, /) -> float:
        raise AssertionError("this utility has a name only")


def validation_images(experiment: Experiment) -> int:
    """How many test images a coalition's model is evaluated on (fewer where the dataset has fewer).

    >>> validation_images(Experiment(dataset="cifar100", model="convnet"))
    200
    """
    return VALIDATION_IMAGES.get(experiment.model, MOST_VALIDATION_IMAGES)


def coast(reading: str, experiment: Experiment, horizon: int | None = None, **changes: Any) -> MethodSpec:
    """CoAst in one of its readings, with the share and the step that the experiment trains with.

    Without a horizon it is the default's for our CoAst, and 2, the public code's, for the others. The paper's equation
    has the movement of the global model, which is made of votes where those are aggregated.
    """
    horizon = horizon or (CoAstConfig().horizon if reading == "ours" else 2)
    options = {"reference": "movement"} if reading == "text" and experiment.aggregation != "pruned" else {}
    numbers = {"keep": experiment.keep, "step": experiment.step, "horizon": horizon}
    return MethodSpec(f"coast-{reading}-k{horizon}", "coast", {**options, **numbers, **changes}, READINGS[reading])


def plain(method: str, **options: Any) -> MethodSpec:
    return MethodSpec(method, method, options)


def sparsified(rounds: Iterable[Round], keep: float) -> Iterator[Round]:
    """The rounds with each upload reduced to its largest updates, and the start model elsewhere."""
    for view in rounds:
        yield replace(view, local=LazyModels({client: _sparse(view, client, keep) for client in view.local}))


def _sparse(view: Round, client: Any, keep: float) -> Any:
    def load() -> Model:
        schema = view.schema()
        start, upload = schema.read(view.start), schema.read(view.local[client])
        voting = {entry.name for entry in schema.trainable}
        return {
            name: sparse_upload(start[name], array, keep) if name in voting else array for name, array in upload.items()
        }

    return load
