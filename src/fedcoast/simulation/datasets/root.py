"""Where datasets live: the folder asked for, else $FEDCOAST_DATA, else the user's cache."""

import os
from pathlib import Path

from fedcoast.errors import require

VARIABLE = "FEDCOAST_DATA"


def root_folder(root: str | os.PathLike[str] | None = None) -> Path:
    """Resolve the folder that holds (or shall hold) the user's copies; it need not exist yet."""
    folder = os.fspath(root) if root is not None else os.environ.get(VARIABLE, "")
    if folder:
        return Path(folder).expanduser().absolute()
    platformdirs = require("platformdirs", extra="lab")
    return Path(platformdirs.user_cache_dir("fedcoast")) / "data"
