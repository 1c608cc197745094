"""What a tracker that writes to a folder must know when it is started again: one small file beside the logs."""

from pathlib import Path
from typing import Any

from fedcoast.errors import BadFile
from fedcoast.rounds.files import read_json, write_json

FORMAT = "fedcoast-tracker"
VERSION = 1
FILE = "fedcoast.json"


def recall(folder: Path) -> dict[str, Any] | None:
    """What was remembered, or None in a folder that no tracker wrote to."""
    path = folder / FILE
    if not path.exists():
        return None
    held = read_json(path)
    wanted = {"format": FORMAT, "version": VERSION}
    if not isinstance(held, dict) or any(held.get(key) != value for key, value in wanted.items()):
        raise BadFile(f"{path} is not as a tracker writes it; use another folder")
    if not isinstance(held.get("last"), int | None) or not isinstance(held.get("identity"), dict):
        raise BadFile(f"{path} is not as a tracker writes it; use another folder")
    return held


def remember(folder: Path, identity: dict[str, Any], last: int | None, **more: str) -> None:
    write_json(folder / FILE, {"format": FORMAT, "version": VERSION, "identity": identity, "last": last, **more})
