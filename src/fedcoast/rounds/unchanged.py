"""Whether a client returned the model that it was sent: the upload equals it in every layer that votes."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedcoast.rounds.arrays import Array, read
from fedcoast.rounds.schema import ModelSchema

_SAMPLE = 4096  # entries of a layer that are compared first: an honest upload differs there, and nothing else is read


class StartComparison:
    """Compares uploads with the model that was sent; reads only as many of its layers as needed, and each once.

    >>> from fedcoast.rounds.schema import schema_of
    >>> model = {"fc": np.ones(3)}
    >>> StartComparison(model, schema_of(model, ())).equals({"fc": np.ones(3)})
    True
    """

    def __init__(self, start: Mapping[str, Any], schema: ModelSchema) -> None:
        self._start, self._schema = start, schema
        self._layers: dict[str, Array] = {}

    def equals(self, upload: Mapping[str, Array]) -> bool:
        for entry in self._schema.trainable:
            before, after = self._layer(entry.name).reshape(-1), np.asarray(upload[entry.name]).reshape(-1)
            if not np.array_equal(before[:_SAMPLE], after[:_SAMPLE]) or not np.array_equal(before, after):
                return False
        return True

    def _layer(self, name: str) -> Array:
        if name not in self._layers:
            self._layers[name] = read(self._start[name])[0]
        return self._layers[name]
