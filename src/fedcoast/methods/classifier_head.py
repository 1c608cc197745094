"""The classifier head, and a client's update of it as a matrix with a row for each class."""

from collections.abc import Mapping

import numpy as np

from fedcoast.errors import BadSetting
from fedcoast.kernels.directions import LARGEST, Doubles
from fedcoast.methods.layer_selection import Layers, choose, describe
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.schema import LayerSpec, ModelSchema


def classifier_head(method: str, layers: Layers, schema: ModelSchema) -> tuple[LayerSpec, ...]:
    """The head's weight, and its bias if it has one; `method` is the name that an error gives."""
    try:
        weight, *others = choose(layers, schema)
    except BadSetting as error:
        raise BadSetting(f"{method} needs a classifier with a head of two or more dimensions: {error}") from error
    classes = weight.shape[0] if len(weight.shape) >= 2 else 0
    if classes < 2 or any(other.shape != (classes,) for other in others):
        shapes = ", ".join(f"{entry.name} {entry.shape}" for entry in (weight, *others))
        raise BadSetting(
            f"{method} needs a classifier: a head of a weight with a row for each of two or more classes and a bias of"
            f" as many entries; layers={describe(layers)!r} chose {shapes}. Name the head (layers='fc.*')"
        )
    return (weight, *others)


def head_update(model: Mapping[str, Array], start: Mapping[str, Array], head: tuple[LayerSpec, ...]) -> Doubles:
    """The head's update with a row for each class, the bias in the last column."""
    parts = []
    for layer in head:
        with np.errstate(over="ignore"):
            update = model[layer.name].astype(np.float64) - start[layer.name].astype(np.float64)
        parts.append(np.clip(update, -LARGEST, LARGEST).reshape(layer.shape[0], -1))
    return np.concatenate(parts, axis=1)
