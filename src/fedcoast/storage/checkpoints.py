"""Checkpoint folders of other tools: one folder per round, the global model before and after it, one file per client.

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

import logging
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fedcoast.errors import BadFile, BadRound, SpoiltRound, printable, shortened
from fedcoast.rounds.clients import tidy_name
from fedcoast.rounds.round import LazyModels, Round
from fedcoast.rounds.round_view import RoundView
from fedcoast.rounds.schema import Model
from fedcoast.storage.files import read_json
from fedcoast.storage.model_files import load_model

OnLeftOut = Callable[[SpoiltRound], None]

_log = logging.getLogger(__name__)


def warn_left_out(error: SpoiltRound) -> None:
    _log.warning("left out: %s", error)


def is_checkpoints(folder: Path) -> bool:
    return folder.is_dir() and bool(_round_dirs(folder))


def checkpoints(folder: Path, after: int | None = None, on_left_out: OnLeftOut = warn_left_out) -> Iterator[Round]:
    """The rounds of a folder laid out as above, in the order of their numbers.

    A round whose global model holds NaN or infinity is left out, and `on_left_out` is told who may have spoilt it. If
    nothing else is there, the first of them is an error.
    """
    round_dirs = _round_dirs(folder)
    numbers = sorted(round_dirs)
    first: SpoiltRound | None = None
    any_whole = after is not None
    for place, number in enumerate(numbers):
        if after is not None and number <= after:
            continue
        here = round_dirs[number]
        before = round_dirs[numbers[place - 1]] if place > 0 else None
        following = round_dirs[numbers[place + 1]] if place + 1 < len(numbers) else None
        fl_round = _round(number, here, before, following)
        if spoilt := _spoilt(fl_round):
            first = first or spoilt
            on_left_out(spoilt)
        else:
            any_whole = True
            yield fl_round
    if first is not None and not any_whole:
        raise first


def _spoilt(fl_round: Round) -> SpoiltRound | None:
    try:
        view = RoundView(fl_round, fl_round.schema(), "quarantine")
        _ = view.start, view.end
    except SpoiltRound as error:
        return error
    except BadRound:  # whatever else is wrong is for the observer to say
        return None
    return None


def checkpoint_numbers(folder: Path) -> list[int]:
    return sorted(_round_dirs(folder))


def _round(number: int, here: Path, before: Path | None, following: Path | None) -> Round:
    start = _model_file(here, "start") or (before and _model_file(before, "end"))
    end = _model_file(here, "end") or (following and _model_file(following, "start"))
    if start is None:
        raise BadFile(f"{here} has no start model, and no round before it has an end; name it start.pt (.npz, …)")
    if end is None:
        raise BadFile(f"{here} has no end model, and no round after it has a start; name it end.pt (.npz, …)")
    return Round(
        number=number,
        start=load_model(start),
        local=LazyModels({name: _loader(file) for name, file in _client_files(here).items()}),
        end=load_model(end),
        weights=_weights(here),
    )


def _weights(here: Path) -> Any:
    """The weights of a round; none if a client claims NaN, infinity or less than zero, which no score needs to know."""
    weights = read_json(here / "weights.json") if (here / "weights.json").exists() else None
    if not isinstance(weights, dict):
        return weights
    for client, weight in weights.items():
        if isinstance(weight, int | float) and not 0 <= weight < math.inf:
            of, got = shortened(repr(client), 100), shortened(repr(weight), 40)
            _log.warning("%s: the weight of client %s must be a number ≥ 0; got %s", printable(here.name), of, got)
            return None
    return {tidy_name(client): weight for client, weight in weights.items()}


def _round_dirs(folder: Path) -> dict[int, Path]:
    round_dirs: dict[int, Path] = {}
    for path in sorted(folder.iterdir()):
        match = re.search(r"([0-9]{1,18})$", path.name)
        if match and path.is_dir() and (path / "clients").is_dir():
            number = int(match[1])
            if number in round_dirs:
                first = round_dirs[number].name
                raise BadFile(f"{first} and {path.name} in {folder} are both round {number}; keep one")
            round_dirs[number] = path
    return round_dirs


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
        name = tidy_name(path.stem)
        if name in files:
            raise BadFile(f"{place} has {files[name].name} and {path.name} for one client; keep one")
        files[name] = path
    return files


def _loader(file: Path) -> Callable[[], Model]:
    return lambda: load_model(file)
