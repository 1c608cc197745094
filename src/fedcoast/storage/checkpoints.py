"""Other people's folders: one folder a round, the global model before and after it, one file a client.

    checkpoints/
      round-1/                  any name that ends in the round's number
        start.pt                the global model before the round, or left out: the end of the round before
        end.pt                  the global model after it, or left out: the start of the next round
        clients/
          berlin.pt             one file a client, named after it
          oslo.pt
        weights.json            optional: {"berlin": 1200, "oslo": 800}
      round-2/ …

Models are `.safetensors`, `.npz` or `.pt`/`.pth`. Nothing is ever unpickled: `.npz` is read without pickles and
`.pt` with PyTorch's `weights_only=True`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedcoast.errors import BadFile, require
from fedcoast.rounds.round import LazyModels, Round
from fedcoast.rounds.schema import Model, Unordered
from fedcoast.storage.files import read_json
from fedcoast.storage.tensors import read_tensors

_WRAPPERS = ("state_dict", "model_state_dict", "model")


def is_checkpoints(folder: Path) -> bool:
    return folder.is_dir() and bool(_places(folder))


def checkpoints(folder: Path, after: int | None = None) -> Iterator[Round]:
    """The rounds of a folder laid out as above, in the order of their numbers."""
    places = _places(folder)
    numbers = sorted(places)
    for place, number in enumerate(numbers):
        if after is not None and number <= after:
            continue
        here = places[number]
        before = places[numbers[place - 1]] if place > 0 else None
        following = places[numbers[place + 1]] if place + 1 < len(numbers) else None
        yield _round(number, here, before, following)


def checkpoint_numbers(folder: Path) -> list[int]:
    return sorted(_places(folder))


def _round(number: int, here: Path, before: Path | None, following: Path | None) -> Round:
    start = _model_file(here, "start") or (before and _model_file(before, "end"))
    end = _model_file(here, "end") or (following and _model_file(following, "start"))
    if start is None:
        raise BadFile(f"{here} has no start model, and no round before it has an end; name it start.pt (.npz, …)")
    if end is None:
        raise BadFile(f"{here} has no end model, and no round after it has a start; name it end.pt (.npz, …)")
    weights = read_json(here / "weights.json") if (here / "weights.json").exists() else None
    return Round(
        number=number,
        start=load_model(start),
        local=LazyModels({name: _loader(file) for name, file in _client_files(here).items()}),
        end=load_model(end),
        weights=weights,
    )


def load_model(file: Path) -> Model:
    """One model from a file, by its ending; whatever would need unpickling is refused."""
    try:
        reader = _READERS[file.suffix.lower()]
    except KeyError:
        raise BadFile(
            f"{file} is not .safetensors, .npz, .pt or .pth; other files would have to be unpickled, which runs"
            " whatever code they hold, so they are not read"
        ) from None
    if not file.is_file():
        raise BadFile(f"{file} is not a file")
    return reader(file)


def _read_npz(file: Path) -> Model:
    try:
        with file.open("rb") as handle:  # NumPy leaves a torn file open that it opened itself
            archive = np.load(handle, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise BadFile(f"{file} holds one array, not named ones; save a model with numpy.savez")
            return {name: archive[name] for name in archive.files}
    except BadFile:
        raise
    except Exception as error:  # zipfile, zlib and NumPy's header parser each fail in their own way
        if "allow_pickle" in str(error):
            raise BadFile(f"{file} holds pickled objects, which are not read; save plain arrays") from error
        raise BadFile(f"{file} is not a whole .npz file ({error})") from error


def _read_torch(file: Path) -> Model:
    torch = require("torch", extra="lab")
    try:
        content = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise BadFile(
            f"{file} is not whole, or cannot be read without unpickling objects ({reason});"
            " save model.state_dict() alone"
        ) from error
    return _state_dict(file, content)


def _state_dict(file: Path, content: Any) -> Model:
    for _ in _WRAPPERS:  # one may lie in another; not for ever
        within = [content[name] for name in _WRAPPERS if isinstance(content, Mapping) and name in content]
        content = next((inner for inner in within if isinstance(inner, Mapping)), content)
    if not isinstance(content, Mapping):
        raise BadFile(f"{file} holds a {type(content).__name__}, not a state_dict; save model.state_dict()")
    return content


_READERS: dict[str, Callable[[Path], Model]] = {
    ".safetensors": lambda file: Unordered(read_tensors(file)[0]),
    ".npz": _read_npz,
    ".pt": _read_torch,
    ".pth": _read_torch,
}


def _places(folder: Path) -> dict[int, Path]:
    places: dict[int, Path] = {}
    for path in sorted(folder.iterdir()):
        match = re.search(r"(\d+)$", path.name)
        if match and path.is_dir() and (path / "clients").is_dir():
            number = int(match[1])
            if number in places:
                raise BadFile(f"{places[number].name} and {path.name} in {folder} are both round {number}; keep one")
            places[number] = path
    return places


def _model_file(place: Path, name: str) -> Path | None:
    found = sorted(path for path in place.iterdir() if path.stem == name and path.is_file())
    if len(found) > 1:
        raise BadFile(f"{place} has {found[0].name} and {found[1].name}; keep one")
    return found[0] if found else None


def _client_files(place: Path) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for path in sorted((place / "clients").iterdir()):
        if path.name.startswith("."):
            continue
        if path.stem in files:
            raise BadFile(f"{place} has {files[path.stem].name} and {path.name} for one client; keep one")
        files[path.stem] = path
    return files


def _loader(file: Path) -> Callable[[], Model]:
    return lambda: load_model(file)
