"""Tables and their cells: where a cell stands, and which experiments and method fill it."""

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
SMOKE_SETTINGS = ("quantity", "noise")
SMOKE_ROUNDS = 12  # the largest horizon, 10, leaves two rounds to score


@dataclass(frozen=True)
class Cell:
    """One cell of a table: its position, what fills it, and the published number.

    The value is Spearman's ρ between the method's scores and the true order, or the scores of the `reference` method
    where the setting has no true order. With `at` and no method it is the test accuracy after that round. With a
    `parity` only even or only odd seeds count. `adjusted` compares clients that missed rounds by adjusted means.
    """

    section: str
    row: str
    column: str
    experiment: Experiment
    spec: MethodSpec | None = None
    reference: MethodSpec | None = None
    at: int | None = None
    published: float | None = None
    parity: Parity | None = None
    adjusted: bool = False

    @property
    def specs(self) -> tuple[MethodSpec, ...]:
        return tuple(spec for spec in (self.spec, self.reference) if spec is not None)


@dataclass(frozen=True)
class Table:
    """A table to reproduce: its cells, each run once per seed."""

    name: str
    title: str
    cells: tuple[Cell, ...]
    seeds: tuple[int, ...]
    notes: tuple[str, ...] = ()

    def runs(self, cell: Cell) -> Iterator[Experiment]:
        """The experiments that fill a cell, one per seed."""
        for seed in self.seeds:
            if cell.parity is None or cell.parity == ("odd" if seed % 2 else "even"):
                yield replace(cell.experiment, seed=seed)


def configurations(size: Size) -> dict[str, tuple[str, str]]:
    """The paper's four configurations, or a small one that takes seconds."""
    return SMOKE if size == "smoke" else CONFIGURATIONS


def first(size: Size) -> str:
    """The configuration used where a table covers only one."""
    return next(iter(configurations(size)))


def settings(size: Size) -> tuple[str, ...]:
    return SMOKE_SETTINGS if size == "smoke" else SETTINGS


def experiment(size: Size, configuration: str, **changes: Any) -> Experiment:
    """The experiment of a configuration at a size."""
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
    return next(name for names in (CONFIGURATIONS, SMOKE) for name, known in names.items() if known == pair)
