"""Settings as earlier versions of fedcoast wrote them into run folders, answers, reports and states."""

from collections.abc import Mapping
from typing import Any

# method → old name → new name. A name is never used again for something else.
RENAMED: dict[str, dict[str, str]] = {
    "coast": {
        "past": "past_weight",
        "target": "signal",
        "drift": "reference",
        "rounds": "score_rounds",
        "tail": "incomplete_rounds",
        "ulps": "ulp_tolerance",
        "small": "tiny_layers",
    },
    "cgsv": {"length": "clip_norm", "memory": "momentum"},
    "shapfed": {"memory": "momentum"},
    "gtg-shapley": {"between": "round_tol", "within": "within_tol", "change": "convergence_tol"},
}
# method → options that answers of earlier versions do not name, with the value that they had without a choice.
ADDED: dict[str, dict[str, Any]] = {"coast": {"line_weight": 0}}
RENAMED_VALUES = {("layers", "ends"): "first+head"}


def translated(method: object, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings under their current names; current settings are unchanged.

    >>> translated("coast", {"keep": 0.1, "past": 0.5, "layers": "ends"})
    {'keep': 0.1, 'past_weight': 0.5, 'layers': 'first+head', 'line_weight': 0}
    """
    names = RENAMED.get(method, {}) if isinstance(method, str) else {}
    added = ADDED.get(method, {}) if isinstance(method, str) else {}
    renamed = {names.get(name, name): value for name, value in settings.items()}
    return {name: _value(name, value) for name, value in renamed.items()} | {
        name: value for name, value in added.items() if name not in renamed
    }


def as_first_written(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings without options that came later and have no effect: what earlier versions wrote of the same method.

    >>> as_first_written("coast", {"keep": 0.1, "line_weight": 0})
    {'keep': 0.1}
    """
    added = ADDED.get(method, {})
    return {name: value for name, value in settings.items() if name not in added or value != added[name]}


def _value(name: str, value: Any) -> Any:
    return RENAMED_VALUES.get((name, value), value) if isinstance(value, str) else value
