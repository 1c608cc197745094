"""How far a tracker that writes to a folder has logged: one small file beside the logs, read at the next start."""

from pathlib import Path
from typing import Any

from fedcoast.errors import BadFile
from fedcoast.storage.files import read_json, write_json

FORMAT = "fedcoast-tracker"
VERSION = 1


def load_progress(folder: Path, tracker: str) -> dict[str, Any] | None:
    """The saved progress, or None if no tracker of this kind wrote here; each kind has its own file."""
    path = _file(folder, tracker)
    if not path.exists():
        return None
    data = read_json(path)
    expected = {"format": FORMAT, "version": VERSION}
    if not isinstance(data, dict) or any(data.get(key) != value for key, value in expected.items()):
        raise BadFile(f"{path} is not as a tracker writes it; use another folder")
    if not isinstance(data.get("last"), int | None) or not isinstance(data.get("identity"), dict):
        raise BadFile(f"{path} is not as a tracker writes it; use another folder")
    return data


def save_progress(folder: Path, tracker: str, identity: dict[str, Any], last: int | None, **more: str) -> None:
    data = {"format": FORMAT, "version": VERSION, "identity": identity, "last": last, **more}
    write_json(_file(folder, tracker), data)


def _file(folder: Path, tracker: str) -> Path:
    return folder / f"fedcoast-{tracker}.json"
