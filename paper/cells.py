"""What a table is made of: slots, each a place in it and the experiments and the question that fill it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from fedcoast.simulation.experiment import Aggregation, Experiment
from fedcoast.simulation.presets import preset as sized
from paper.method_specs import MethodSpec

Size = Literal["smoke", "quick", "long", "paper"]
Parity = Literal["even", "odd"]

SETTINGS = ("quantity", "noise", "resolution", "mask")
CONFIGURATIONS = {
    "1": ("cifar10", "tiny-resnet"),
    "2": ("cifar100", "tiny-resnet"),
    "3": ("stl10", "resnet4"),
    "4": ("cifar100", "convnet"),
}
MODES: dict[Aggregation, str] = {"pruned": "in-loop", "fedavg": "observer"}
SMOKE = {"digits": ("digits", "mlp")}
FASHION = {"fashion-mnist": ("fashion-mnist", "tiny-resnet")}
SMOKE_SETTINGS = ("quantity", "noise")
SMOKE_ROUNDS = 12  # the largest horizon, 10, leaves two rounds to value


@dataclass(frozen=True)
class Cell:
    """One place of a table: where it stands, what fills it, what the paper has there.

    The value is Spearman's ρ of the question's scores with the planted order, or with the scores of the `reference`
    question where nothing is planted; or, with `at` and no question, the test accuracy after that round. With a
    `parity` only even or only odd seeds count. `evened` says how clients are compared that missed rounds.
    """

    section: str
    row: str
    column: str
    experiment: Experiment
    question: MethodSpec | None = None
    reference: MethodSpec | None = None
    at: int | None = None
    published: float | None = None
    parity: Parity | None = None
    evened: bool = False

    @property
    def questions(self) -> tuple[MethodSpec, ...]:
        return tuple(asked for asked in (self.question, self.reference) if asked is not None)


@dataclass(frozen=True)
class Table:
    """A table to make: its slots, once for each seed."""

    name: str
    title: str
    slots: tuple[Cell, ...]
    seeds: tuple[int, ...]
    notes: tuple[str, ...] = ()

    def runs(self, slot: Cell) -> Iterator[Experiment]:
        """The experiments that fill a slot, one a seed."""
        for seed in self.seeds:
            if slot.parity is None or slot.parity == ("odd" if seed % 2 else "even"):
                yield replace(slot.experiment, seed=seed)


def configurations(size: Size) -> dict[str, tuple[str, str]]:
    """The paper's four, or one little one that takes seconds."""
    return SMOKE if size == "smoke" else CONFIGURATIONS


def first(size: Size) -> str:
    """The configuration that stands for all where one has to do."""
    return next(iter(configurations(size)))


def settings(size: Size) -> tuple[str, ...]:
    return SMOKE_SETTINGS if size == "smoke" else SETTINGS


def experiment(size: Size, configuration: str, **changes: Any) -> Experiment:
    """The experiment of a configuration in a size."""
    dataset, model = configurations(size)[configuration]
    if size == "smoke":
        return sized("quick", dataset, model, **{"rounds": SMOKE_ROUNDS, **changes})
    return sized(size, dataset, model, **changes)


def configuration_of(experiment: Experiment) -> str:
    """The number of the configuration that an experiment belongs to.

    >>> configuration_of(Experiment(dataset="cifar100", model="convnet"))
    '4'
    """
    pair = (experiment.dataset, experiment.model)
    return next(name for names in (CONFIGURATIONS, SMOKE, FASHION) for name, known in names.items() if known == pair)
