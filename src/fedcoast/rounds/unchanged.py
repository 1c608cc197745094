"""Whether a client returned the model that it was sent: the upload equals it in every layer that votes."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from fedcoast.errors import Client
from fedcoast.rounds.arrays import Array, read
from fedcoast.rounds.schema import ModelSchema

_SAMPLE = 4096  # entries of a layer that are compared first: an honest upload differs there, and costs no more


def is_unchanged(start: Callable[[str], Array], upload: Mapping[str, Array], schema: ModelSchema) -> bool:
    """`start` reads one layer of the model that was sent; only as many as needed are read.

    >>> from fedcoast.rounds.schema import schema_of
    >>> model = {"fc": np.ones(3)}
    >>> is_unchanged(model.__getitem__, {"fc": np.ones(3)}, schema_of(model, ()))
    True
    """
    for entry in schema.trainable:
        before, after = start(entry.name).reshape(-1), np.asarray(upload[entry.name]).reshape(-1)
        if not np.array_equal(before[:_SAMPLE], after[:_SAMPLE]) or not np.array_equal(before, after):
            return False
    return True


def noting_unchanged(
    model: Mapping[str, Any],
    schema: ModelSchema,
    uploads: Iterator[tuple[Client, dict[str, Array]]],
    unchanged: list[Client],
) -> Iterator[tuple[Client, dict[str, Array]]]:
    """The same uploads; clients that returned `model`, the one they were sent, are added to `unchanged`."""
    layers: dict[str, Array] = {}

    def start(name: str) -> Array:
        if name not in layers:
            layers[name] = read(model[name])[0]
        return layers[name]

    for client, upload in uploads:
        if is_unchanged(start, upload, schema):
            unchanged.append(client)
        yield client, upload
        del upload  # before the next one is loaded
