"""Sizes of experiments: the paper's, one that takes minutes on a laptop, and one that takes an afternoon.

docs/lab.md says how each preset differs from the paper.
"""

from dataclasses import replace
from typing import Any, Literal

from fedcoast.errors import BadSetting
from fedcoast.simulation.experiment import Experiment

Preset = Literal["quick", "long", "paper"]

# Per dataset and model: five to fifty minutes of one core. Chosen where all clients are alike, by health first (no
# layer may lose more than a tenth of its entries) and test accuracy second: `python -m benchmarks.rates`, docs/lab.md.
# Epochs, not steps: clients with more data train more, as in the paper. float32: processors without bfloat16 units take
# two to three times as long in bfloat16 (docs/lab.md).
_IMAGES = {"batch": 100, "learning_rate": 0.0005}
_QUICK: dict[tuple[str, str], dict[str, Any]] = {
    ("digits", "mlp"): {"rounds": 40, "batch": 16, "learning_rate": 0.005, "augment": False},
    ("digits", "deep-mlp"): {"rounds": 40, "batch": 16, "learning_rate": 0.002, "augment": False},
    ("cifar10", "tiny-resnet"): {**_IMAGES, "rounds": 40},
    ("cifar100", "tiny-resnet"): {**_IMAGES, "rounds": 30},
    ("fashion-mnist", "tiny-resnet"): {**_IMAGES, "rounds": 25},
    ("cifar100", "convnet"): {
        **_IMAGES, "rounds": 30, "epochs": 0.25, "batch": 20, "learning_rate": 0.001, "tests": 1000
    },
    ("stl10", "resnet4"): {**_IMAGES, "rounds": 20, "batch": 10, "learning_rate": 0.0001, "step": 0.002},
    ("cifar10", "resnet18"): {"rounds": 5, "epochs": 0.04, "batch": 10, "tests": 500},
}  # fmt: skip
# All other pairs, not timed: 50 to 125 steps of 20 images for the average client; small datasets are used whole.
_EPOCHS = {"cifar10": 0.1, "cifar100": 0.25, "fashion-mnist": 0.1}
_LONG_ROUNDS = 15  # times the rounds of quick

_PAPER: dict[str, dict[str, Any]] = {
    "fedavg": {"rounds": 100},
    "pruned": {"rounds": 200},
    "sparse": {"rounds": 200},
}


def preset(name: Preset, dataset: str, model: str, **changes: Any) -> Experiment:
    """An experiment of a preset's size; `changes` are fields of `Experiment` that differ from it."""
    base = Experiment(dataset=dataset, model=model)
    if name == "paper":
        return _paper(base, changes)
    if name not in ("quick", "long"):
        raise BadSetting(f"preset must be quick, long or paper; got {name!r}")
    sizes = _QUICK.get((dataset, model), {"epochs": _EPOCHS.get(dataset, 1.0), "batch": 20})
    sized = replace(base, **sizes)
    if name == "long":
        sized = replace(sized, rounds=sized.rounds * _LONG_ROUNDS)
    return replace(sized, **changes)


def _paper(base: Experiment, changes: dict[str, Any]) -> Experiment:
    """As in the public research code: Adam at 0.01/N, ten local epochs (five for ten clients), batches of 1024."""
    clients = changes.get("clients", base.clients)
    aggregation = changes.get("aggregation", base.aggregation)
    vote = 0.01 if base.dataset == "stl10" else 0.1
    sized = replace(
        base,
        rounds=_PAPER.get(aggregation, _PAPER["fedavg"])["rounds"],
        learning_rate=0.01 / clients,
        epochs=10 if clients < 10 else 5,
        batch=512 if base.model == "convnet" else 1024,
        step=vote / clients,
    )
    if base.model == "convnet" and aggregation not in ("pruned", "sparse"):
        sized = replace(sized, rounds=50)
    return replace(sized, **changes)
