"""What a tracker that writes to a folder must know when it is started again: one small file beside the logs."""

from pathlib import Path
from typing import Any

from fedcoast.errors import BadFile
from fedcoast.storage.files import read_json, write_json

FORMAT = "fedcoast-tracker"
VERSION = 1


def recall(folder: Path, tracker: str) -> dict[str, Any] | None:
    """What was remembered, or None where no tracker of this kind wrote; each kind has a file of its own."""
    path = _file(folder, tracker)
    if not path.exists():
        return None
    held = read_json(path)
    wanted = {"format": FORMAT, "version": VERSION}
    if not isinstance(held, dict) or any(held.get(key) != value for key, value in wanted.items()):
        raise BadFile(f"{path} is not as a tracker writes it; use another folder")
    if not isinstance(held.get("last"), int | None) or not isinstance(held.get("identity"), dict):
        raise BadFile(f"{path} is not as a tracker writes it; use another folder")
    return held


def remember(folder: Path, tracker: str, identity: dict[str, Any], last: int | None, **more: str) -> None:
    held = {"format": FORMAT, "version": VERSION, "identity": identity, "last": last, **more}
    write_json(_file(folder, tracker), held)


def _file(folder: Path, tracker: str) -> Path:
    return folder / f"fedcoast-{tracker}.json"
