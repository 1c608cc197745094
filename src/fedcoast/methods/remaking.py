"""Make an assessor again from the settings in an answer or a saved state."""

import json
from collections.abc import Mapping
from typing import Any

from fedcoast.errors import BadSetting
from fedcoast.methods import METHODS
from fedcoast.methods.base import Assessor
from fedcoast.storage.old_settings import translated

NEEDS_DATA = "it needs validation data: give your own (--utility module:function, which values a model)"


def remade(method: str, settings: Mapping[str, Any]) -> Assessor:
    """A fresh assessor of this method with exactly these settings; not every one can be made from a file alone.

    >>> remade("coast", {**METHODS["coast"].make(horizon=5).assessment().settings}).settings["horizon"]
    5
    """
    if not isinstance(method, str) or method not in METHODS:
        raise BadSetting(f"{method!r} is not a method of this fedcoast")
    if {"utility", "gradient"} & set(METHODS[method].needs):
        raise BadSetting(f"{method} needs validation data, which a recording does not contain")
    options = translated(method, settings)
    if str(options.get("layers")).startswith("function "):
        raise BadSetting(f"layers were chosen by a {options['layers']}, which no file can hold")
    try:
        make, config = METHODS[method].make, METHODS[method].config
        assessor = make(**options) if config is None else make(config.from_json(options))
        same = json.loads(json.dumps(assessor.assessment().settings)) == options
    except (TypeError, ValueError, AttributeError) as error:  # a FedcoastError is a ValueError
        raise BadSetting(f"{method} does not take these settings ({error})") from error
    if not same:
        raise BadSetting(f"{method} of this fedcoast has other settings than {dict(settings)!r}")
    return assessor
