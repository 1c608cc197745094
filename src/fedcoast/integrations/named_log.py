"""Log lines that start with the package's name, for frameworks whose logs show no logger names."""

import logging
from collections.abc import MutableMapping
from typing import Any


class NamedLog(logging.LoggerAdapter[logging.Logger]):
    """A logger whose lines begin with `fedcoast:`."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.getLogger(name), {})

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        return f"fedcoast: {msg}", kwargs
