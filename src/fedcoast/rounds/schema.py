"""The layout of a model: which entries it has, in which order, of which shape and dtype, and which are trained."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import prod
from typing import Any

import numpy as np

from fedcoast.errors import FedcoastError
from fedcoast.rounds.arrays import FLOAT_DTYPES, OTHER_DTYPES, Array, UnusableArray, as_float, read, surely_finite

Model = Mapping[str, object]

NORMALISATION_STATISTICS = ("*running_mean", "*running_var", "*num_batches_tracked")
"""The buffers of PyTorch's normalisation layers: they follow the data, nobody trains them."""


class MismatchedModel(FedcoastError):
    """A model does not have the expected layout; the text names the layer and the difference."""


class NotFinite(MismatchedModel):
    """A model holds NaN or infinity; the text names the layer and the place."""


@dataclass(frozen=True)
class LayerSpec:
    """One named array of a model. `trainable` is false for buffers, integers and booleans."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    trainable: bool

    @property
    def size(self) -> int:
        return prod(self.shape)


class Unordered(Mapping[str, Any]):
    """A model from a file that does not keep the order of its layers."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __getitem__(self, name: str) -> Any:
        return self._model[name]

    def __contains__(self, name: object) -> bool:
        return name in self._model  # Mapping's own would read the array

    def __iter__(self) -> Iterator[str]:
        return iter(self._model)

    def __len__(self) -> int:
        return len(self._model)


@dataclass(frozen=True)
class ModelSchema:
    """All entries, in the order of the model they were read from; `ordered` says whether that order means anything."""

    entries: tuple[LayerSpec, ...]
    ordered: bool = True

    @property
    def trainable(self) -> tuple[LayerSpec, ...]:
        return tuple(entry for entry in self.entries if entry.trainable)

    def read(self, model: object, before: Model | None = None) -> dict[str, Array]:
        """The arrays of a model that must have this layout, trainable entries finite.

        Floats come in the precision of the layout; those that have it already are not copied.

        Of a model that a client made of `before`, buffers must be finite too, wherever they were: a mask of infinities
        is as it should be, and statistics that came broken are not this client's doing.
        """
        layers = _mapping(model)
        _same_names({entry.name for entry in self.entries}, layers)
        return {entry.name: _read_entry(entry, layers[entry.name], before) for entry in self.entries}

    def pick(self, model: object, names: Iterable[str]) -> Model:
        """These entries of a model, which must have exactly the entries of the layout."""
        layers = _mapping(model)
        _same_names({entry.name for entry in self.entries}, layers)
        return {name: layers[name] for name in names}

    def to_json(self) -> Any:
        entries = [_to_json(entry) for entry in self.entries]
        return entries if self.ordered else {"unordered": entries}

    @classmethod
    def from_json(cls, data: Any) -> "ModelSchema":
        ordered = not isinstance(data, Mapping)
        if isinstance(data, Mapping):
            data = data["unordered"]
        entries = tuple(LayerSpec(e["name"], tuple(e["shape"]), e["kind"], e["votes"]) for e in data)
        for entry in entries:
            named = isinstance(entry.name, str) and entry.dtype in FLOAT_DTYPES + OTHER_DTYPES
            if not named or not isinstance(entry.trainable, bool) or not all(type(n) is int for n in entry.shape):
                raise TypeError(f"{entry!r} is not a layer")
        return cls(entries, ordered)

    def differs(self, other: "ModelSchema") -> str | None:
        """How another layout differs from this one, or None; the precision of floats may differ."""
        mine, theirs = ({entry.name: entry for entry in schema.entries} for schema in (self, other))
        for name in (*mine, *theirs):
            if not _alike(mine.get(name), theirs.get(name)):
                return f"layer {name!r} was {_describe(mine.get(name))} and is now {_describe(theirs.get(name))}"
        return None


def schema_of(model: object, buffers: Collection[str] = NORMALISATION_STATISTICS) -> ModelSchema:
    """Read the layout off a model; `buffers` are shell patterns of entries that nobody trains.

    >>> schema_of({"w": np.zeros((2, 3), np.float32), "bn.running_mean": np.zeros(2)}).trainable
    (LayerSpec(name='w', shape=(2, 3), dtype='float32', trainable=True),)
    """
    entries = []
    for name, value in _mapping(model).items():
        array, dtype = _read(name, value)
        trainable = dtype in FLOAT_DTYPES and not any(
            name == pattern or fnmatchcase(name, pattern) for pattern in buffers
        )
        if trainable and array.size == 0:
            raise MismatchedModel(
                f"layer {name!r} has no entries (shape {array.shape}); leave it out or name it among the buffers"
            )
        entries.append(LayerSpec(name, array.shape, dtype, trainable))
    if not any(entry.trainable for entry in entries):
        raise MismatchedModel(
            f"a model needs at least one floating-point layer that is not a buffer; got {len(entries)} entries"
            " and none is trainable"
        )
    return ModelSchema(tuple(entries), ordered=not isinstance(model, Unordered))


def _mapping(model: object) -> Model:
    if not isinstance(model, Mapping):
        raise MismatchedModel(
            f"a model is a mapping from layer name to array, such as a state_dict; got {type(model).__name__}"
        )
    for name in model:
        if not isinstance(name, str):
            raise MismatchedModel(f"layer names are strings; got {name!r}")
    return model


def _same_names(expected: Collection[str], layers: Model) -> None:
    missing = sorted(set(expected) - layers.keys())
    if missing:
        raise MismatchedModel(f"layer {missing[0]!r} is missing" + _and_more(missing))
    extra = sorted(layers.keys() - set(expected))
    if extra:
        raise MismatchedModel(f"layer {extra[0]!r} is not in the global model" + _and_more(extra))


def _and_more(names: list[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""


def _read(name: str, value: object) -> tuple[Array, str]:
    try:
        return read(value)
    except UnusableArray as error:
        raise MismatchedModel(f"layer {name!r}: {error}") from error


def _read_entry(entry: LayerSpec, value: object, before: Model | None) -> Array:
    array, dtype = _read(entry.name, value)
    if array.shape != entry.shape:
        raise MismatchedModel(f"layer {entry.name!r} must have shape {entry.shape}; got {array.shape}")
    if dtype != entry.dtype and (dtype in FLOAT_DTYPES) != (entry.dtype in FLOAT_DTYPES):
        raise MismatchedModel(f"layer {entry.name!r} must be {entry.dtype}; got {dtype}")
    if dtype in FLOAT_DTYPES:
        array = as_float(array, dtype, entry.dtype)
    checked = entry.trainable or (before is not None and dtype in FLOAT_DTYPES)
    if checked and not surely_finite(array):
        bad = ~np.isfinite(array)
        if before is not None and not entry.trainable:
            bad = bad & np.isfinite(_read(entry.name, before[entry.name])[0])
        if bad.any():
            where = int(np.argmax(bad.ravel()))
            raise NotFinite(
                f"layer {entry.name!r} must be finite; got {array.ravel()[where]} at flat index {where}"
                f" ({int(bad.sum())} of {array.size} entries)"
            )
    return array


def _alike(entry: LayerSpec | None, other: LayerSpec | None) -> bool:
    if entry is None or other is None:
        return False
    both_float = entry.dtype in FLOAT_DTYPES and other.dtype in FLOAT_DTYPES
    same_layout = (entry.shape, entry.trainable) == (other.shape, other.trainable)
    return same_layout and (both_float or entry.dtype == other.dtype)


def _to_json(entry: LayerSpec) -> dict[str, Any]:
    """The keys are those of recorded run folders."""
    return {"name": entry.name, "shape": entry.shape, "kind": entry.dtype, "votes": entry.trainable}


def _describe(entry: LayerSpec | None) -> str:
    return "absent" if entry is None else f"{entry.dtype} {entry.shape}{'' if entry.trainable else ' (buffer)'}"
