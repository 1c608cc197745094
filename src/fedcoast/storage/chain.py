"""The chain over a recording: the link of a round holds the hash of each of its files, and of the link before it.

With a copy of the hash of the last link, the head, anyone can check that no byte of any round changed since.
docs/audit.md says what that proves, and what it does not.
"""

import hashlib
import json
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fedcoast.errors import BadFile
from fedcoast.storage.files import open_plain, read_plain
from fedcoast.storage.run_folder import DEPTH, RUN_META, round_dirs

LINK = "link.json"


@dataclass(frozen=True)
class Content:
    """What a file holds, by its length and its SHA-256."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Link:
    """One round's place in the chain.

    `after` is the number of the round whose link has the hash `previous`; the first link follows run.json and
    has none. `facts` are hashes of the single entries of round.json: they tell which of them was changed.
    """

    number: int
    after: int | None
    previous: str
    files: Mapping[str, Content]
    facts: Mapping[str, str]

    @property
    def hash(self) -> str:
        """SHA-256 of this link as JSON: keys sorted, no spaces, ASCII."""
        return _hash_of(asdict(self))

    def to_bytes(self) -> bytes:
        return json.dumps({**asdict(self), "hash": self.hash}, indent=1, sort_keys=True).encode("ascii")


def read_link(place: Path) -> Link | None:
    """The link in a round's folder, or None; it must be unchanged, byte for byte."""
    path = place / LINK
    try:
        data = read_plain(path, depth=DEPTH)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadFile(f"{path} cannot be read ({error.strerror})") from error
    try:
        link_data = json.loads(data)
        files = {name: Content(**content) for name, content in link_data["files"].items()}
        link = Link(link_data["number"], link_data["after"], link_data["previous"], files, dict(link_data["facts"]))
        if type(link.number) is not int or not isinstance(link.after, int | None):
            raise BadFile(f"{path} does not say which round it is of, or which it goes on from; it was altered")
        if link.to_bytes() != data:
            raise BadFile(f"{path} does not have the hash it says it has; it was altered")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, BadFile):
            raise
        raise BadFile(f"{path} is not as a recorder writes it ({error!r}); it was altered") from error
    return link


def content(path: Path, depth: int = 1) -> Content:
    with open_plain(path, depth) as file:
        digest = hashlib.file_digest(file, "sha256")  # a buffer at a time, and without holding up other threads
        return Content(file.tell(), digest.hexdigest())


def fact_hashes(facts: Mapping[str, Any]) -> dict[str, str]:
    """The hash of each entry of a round.json."""
    return {name: _hash_of(value) for name, value in facts.items()}


def head(folder: Path, number: int | None = None) -> tuple[int | None, str] | None:
    """The number of a run's last round and its link's hash; those of the round `number`, if given.

    A run without rounds has no number, and the hash of run.json, from which its first link will go on. None where that
    round has no link: it was recorded before there were chains.
    """
    found = [place for place in round_dirs(folder) if number is None or int(place.name) == number]
    if not found:
        return None if number is not None else (None, content(folder / RUN_META).sha256)
    link = read_link(found[-1])
    return None if link is None else (link.number, link.hash)


class Hasher:
    """Hashes the files of one round in a thread of its own, while the next of them is being written."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._thread = ThreadPoolExecutor(1, "fedcoast-hash")
        self._contents: dict[str, Future[Content]] = {}

    def add(self, file: str) -> None:
        """Begin with a file that is whole."""
        self._contents[file] = self._thread.submit(content, self._place / file)

    def link(self, number: int, after: int | None, previous: str, facts: Mapping[str, Any]) -> Link:
        contents = {file: found.result() for file, found in self._contents.items()}
        return Link(number, after, previous, contents, fact_hashes(facts))

    def __enter__(self) -> "Hasher":
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(cancel_futures=True)


def _hash_of(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()
