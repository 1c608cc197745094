"""A recorded run, read back: the same rounds, one client's upload in memory at a time."""

import glob
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fedcoast.errors import BadFile, Client
from fedcoast.rounds.clients import client_from_json
from fedcoast.rounds.round import LazyModels, Round
from fedcoast.rounds.schema import Model, ModelSchema, Unordered
from fedcoast.storage.ballot_files import BallotModel
from fedcoast.storage.files import is_folder, read_json
from fedcoast.storage.tensors import open_tensors

FORMAT = "fedcoast-run"
VERSION = 1
RUN_META = "run.json"
ROUNDS = "rounds"
ROUND_META = "round.json"
DEPTH = 3  # a file of a round lies in RUN/rounds/NUMBER, and none of these may be a link
_NUMBER = r"[0-9]{10,18}"


def is_run(folder: Path) -> bool:
    """Whether the folder looks like a run; `read_about` checks that it can be read."""
    return os.path.lexists(folder / RUN_META)


def read_about(folder: str | Path) -> dict[str, Any]:
    """The metadata of a recorded run."""
    path = Path(folder) / RUN_META
    data = read_json(path)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise BadFile(f"{path} does not say that this is a {FORMAT}")
    if data.get("version") != VERSION:
        raise BadFile(f"{path} is of version {data.get('version')!r}; this fedcoast reads version {VERSION}")
    about = data.get("about")
    if not isinstance(about, dict):
        raise BadFile(f"{path} has no metadata of the run; it was altered")
    return about


def ground_truth(about: Mapping[str, Any]) -> dict[Client, float] | None:
    """The true value of each client, as a run of the lab records it; None in other runs."""
    if about.get("planted") is None:
        return None
    try:
        return {client_from_json(entry["client"]): float(entry["value"]) for entry in about["planted"]}
    except (KeyError, TypeError, ValueError) as error:
        raise BadFile(f"{RUN_META}: the true order is not as the lab writes it ({error!r})") from error


def recorded(folder: Path, after: int | None = None, last: bool = False) -> Iterator[Round]:
    """The whole rounds of a recording, in order, also those added meanwhile; with `last`, the last one alone."""
    read_about(folder)
    newest = -1 if after is None else after
    while new := [place for place in round_dirs(folder) if int(place.name) > newest]:
        for place in new[-1:] if last else new:
            yield _round(place)
            newest = int(place.name)


def recorded_numbers(folder: Path) -> list[int]:
    read_about(folder)
    return [int(place.name) for place in round_dirs(folder)]


def round_dirs(folder: Path) -> list[Path]:
    """The folders of the whole rounds, in order."""
    try:
        names = [path for path in (folder / ROUNDS).iterdir() if re.fullmatch(_NUMBER, path.name)]
    except OSError as error:
        raise BadFile(f"{folder / ROUNDS} cannot be read ({error.strerror})") from error
    if not is_folder(folder / ROUNDS):
        raise BadFile(f"{folder / ROUNDS} is a symbolic link, which is not followed; copy the folder it leads to")
    return sorted(names, key=lambda path: int(path.name))


def _round(place: Path) -> Round:
    facts = read_json(place / ROUND_META, DEPTH)
    try:
        schema = ModelSchema.from_json(facts["layers"])
        clients = {client_from_json(entry["client"]): entry for entry in facts["clients"]}
        files = {client: _inside(place, entry["file"]) for client, entry in clients.items()}
        weights = {client: entry["weight"] for client, entry in clients.items()}
        all_weighted = all(weight is not None for weight in weights.values())
        start = _model(_start(place, facts["start"]), schema)
        if facts["number"] != int(place.name):
            raise BadFile(f"{place / ROUND_META} says that this is round {facts['number']!r}; it was altered")
        ballot_keep = facts["pruned"]

        def load(file: Path) -> Callable[[], Model]:
            return lambda: (
                _model(file, schema)
                if ballot_keep is None
                else BallotModel(schema, start, open_tensors(file, depth=DEPTH), file)
            )

        return Round(
            number=facts["number"],
            start=start,
            local=LazyModels({client: load(file) for client, file in files.items()}),
            end=_model(_inside(place, facts["end"]), schema),
            weights=weights if weights and all_weighted else None,
            buffers=[glob.escape(entry.name) for entry in schema.entries if not entry.trainable],
            quarantined={client_from_json(entry["client"]): entry["reason"] for entry in facts["quarantined"]},
            metrics=facts["metrics"],
            ballot_keep=ballot_keep,
            unmoved=facts.get("unmoved"),  # older recordings lack it
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise BadFile(f"{place / ROUND_META} is not as a recorder writes it ({error!r})") from error


def _start(place: Path, start_file: str) -> Path:
    carried_on = re.fullmatch(r"end of round ([0-9]{1,18})", start_file)
    if not carried_on:
        return _inside(place, start_file)
    before = place.with_name(f"{int(carried_on[1]):010d}")
    if not is_folder(before):
        raise BadFile(f"{place} goes on from the {start_file}, which is gone")
    return before / "end.safetensors"


def _inside(place: Path, file: str) -> Path:
    if not re.fullmatch(r"[a-z0-9-]+\.safetensors", file):
        raise BadFile(f"{place / ROUND_META} names the file {file!r}; files of a round lie in its own folder")
    return place / file


def _model(file: Path, schema: ModelSchema) -> Model:
    # In the order of the layout, which a safetensors file does not keep.
    model = open_tensors(file, (entry.name for entry in schema.entries), DEPTH)
    return model if schema.ordered else Unordered(model)
