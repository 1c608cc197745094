"""Which tensors of a model an assessor looks at."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from fedcoast.errors import BadSetting
from fedcoast.rounds.schema import LayerSpec, ModelSchema

Layers = str | Sequence[str] | Callable[[str], bool]

NAMED = ("all", "first+head", "head")  # the choices that are no pattern


def choose(layers: Layers, schema: ModelSchema) -> tuple[LayerSpec, ...]:
    """The voting entries that `layers` names, in the order of the model.

    "all" is every one; "head" the classifier head: the last tensor with two or more dimensions and all that follow
    it; "first+head" the first such tensor with what belongs to it, and the head (all of a model with fewer than three,
    or whose layers have no order); anything else a shell pattern, several of them, or a function of the name.
    """
    entries = schema.trainable
    matrices = [place for place, entry in enumerate(entries) if len(entry.shape) >= 2]
    if layers == "all" or (layers == "first+head" and (len(matrices) < 3 or not schema.ordered)):
        return entries
    if layers == "head" and not schema.ordered:
        raise BadSetting("the layers of this model have no order, so its head is unknown; name it: layers='fc.*'")
    if layers == "first+head":
        chosen = entries[: matrices[1]] + entries[matrices[-1] :]
    elif layers == "head":
        chosen = entries[matrices[-1] :] if matrices else ()
    elif callable(layers):
        chosen = tuple(entry for entry in entries if layers(entry.name))
    else:
        patterns = [layers] if isinstance(layers, str) else layers
        chosen = tuple(e for e in entries if any(fnmatchcase(e.name, pattern) for pattern in patterns))
    if not chosen:
        names = ", ".join(entry.name for entry in entries[:8]) + (", …" if len(entries) > 8 else "")
        raise BadSetting(f"layers={describe(layers)!r} chooses none of the model's layers ({names})")
    return chosen


def describe(layers: Layers) -> str | list[str]:
    """The choice as JSON can hold it."""
    if isinstance(layers, str):
        return layers
    if callable(layers):
        return f"function {getattr(layers, '__qualname__', type(layers).__name__)}"
    if isinstance(layers, Sequence) and layers and all(isinstance(pattern, str) for pattern in layers):
        return list(layers)
    named = ", ".join(map(repr, NAMED))
    raise BadSetting(f"layers must be {named}, patterns or a function of the name; got {layers!r}")


def layers_from_text(text: str) -> str | list[str]:
    """A choice from a command line; patterns are separated by commas.

    >>> layers_from_text("head"), layers_from_text("fc.*, conv1.*")
    ('head', ['fc.*', 'conv1.*'])
    """
    return text if text in NAMED else [pattern.strip() for pattern in text.split(",")]
