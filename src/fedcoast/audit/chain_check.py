"""Checks the chain of a run folder from its first link to its last; lists every difference by round and file."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from fedcoast.audit.findings import Finding
from fedcoast.errors import BadFile, FedcoastError
from fedcoast.rounds.clients import client_from_json
from fedcoast.storage.chain import LINK, Content, Link, content, fact_hashes, read_link
from fedcoast.storage.files import is_folder, is_plain, read_json
from fedcoast.storage.run_folder import DEPTH, ROUND_META, ROUNDS, RUN_META, round_dirs

MADE_BY_KILLS = "an incomplete round left by a killed process; it is removed when recording continues"


@dataclass
class ChainReport:
    """The result: heads by round, rounds without a link, and the files and bytes that are as recorded.

    `beginning` is the hash that the first link follows: the head of the run when it had no rounds.
    """

    findings: list[Finding] = field(default_factory=list)
    heads: dict[int, str] = field(default_factory=dict)
    head: str | None = None
    beginning: str | None = None
    last_round: int | None = None
    unlinked: list[int] = field(default_factory=list)
    outside: dict[str, str] = field(default_factory=dict)
    missed: dict[int, str] = field(default_factory=dict)
    rounds: int = 0
    files: int = 0
    bytes: int = 0

    def find(self, path: Path, what: str, number: int | None = None) -> None:
        self.findings.append(Finding(path.as_posix(), what, number))


def check_chain(folder: Path) -> ChainReport:
    """Recompute every hash of a run folder, and compare it with the links."""
    chain = ChainReport()
    rounds = {int(place.name): place for place in _rounds(folder, chain)}
    links = {number: link for number, place in rounds.items() if (link := _link(place, chain)) is not None}
    _name_missing_links(folder, rounds, links, chain)
    before: list[int] = []
    for number, link in links.items():
        chain.heads[number] = link.hash
        _check_step(folder, link, before, rounds, links, chain)
        _check_files(folder, rounds[number], link, chain)
        chain.missed.update(_missed(rounds[number]))
        before.append(number)
    chain.rounds, chain.last_round = len(rounds), max(rounds, default=None)
    chain.beginning = _beginning(folder, rounds, links)
    chain.head = chain.heads.get(chain.last_round) if chain.last_round is not None else chain.beginning
    return chain


def _beginning(folder: Path, rounds: Mapping[int, Path], links: Mapping[int, Link]) -> str | None:
    """The hash of run.json, which the first link follows: the head of a run without rounds."""
    if not rounds:
        return content(folder / RUN_META).sha256 if _began_with_chain(folder) else None
    first = next(iter(links.values()), None)
    return first.previous if first is not None and first.after is None else None


def _path(number: int, file: str = "") -> Path:
    return Path(ROUNDS) / f"{number:010d}" / file


def _rounds(folder: Path, chain: ChainReport) -> list[Path]:
    """The folders of the rounds; other files beside them are reported."""
    found = [place for place in round_dirs(folder) if place.name == f"{int(place.name):010d}" and is_folder(place)]
    for path in sorted(set((folder / ROUNDS).iterdir()) - set(found)):
        if path.name.startswith(".") and path.name[1:].isdecimal() and is_folder(path):
            chain.outside[path.relative_to(folder).as_posix()] = MADE_BY_KILLS
        else:
            what = "is a symbolic link" if path.is_symlink() else "was added"
            chain.find(path.relative_to(folder), f"{what}; no recorder writes this")
    return found


def _link(place: Path, chain: ChainReport) -> Link | None:
    """A round's link, if it is there, whole and its own."""
    number = int(place.name)
    try:
        link = read_link(place)
    except BadFile:
        chain.find(_path(number, LINK), "was changed: its content does not match its hash", number)
        return None
    if link is None or link.number == number:
        return link
    if _stated_number(place) == link.number:
        chain.find(_path(number), f"holds round {link.number}: it was renamed, or put in place of another", number)
    else:
        chain.find(_path(number, LINK), f"is the link of round {link.number}: it was moved here", number)
    return None


def _stated_number(place: Path) -> object:
    try:
        return read_json(place / ROUND_META, DEPTH).get("number")
    except (FedcoastError, AttributeError):
        return None


def _missed(place: Path) -> dict[int, str]:
    """The rounds that the recorder was shown and could not write, as it noted with the next one."""
    try:
        return {
            int(one["number"]): str(one["reason"]) for one in read_json(place / ROUND_META, DEPTH).get("missed", ())
        }
    except (FedcoastError, AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return {}


def _name_missing_links(
    folder: Path, rounds: Mapping[int, Path], links: Mapping[int, Link], chain: ChainReport
) -> None:
    """A round without a link never had one where the folder began without a chain, and its chain begins later."""
    unlinked = [number for number in rounds if not os.path.lexists(rounds[number] / LINK)]
    first = min(rounds.keys() - set(unlinked), default=None)
    begins = first is None or (first in links and links[first].after is None)
    older = begins and not _began_with_chain(folder)
    for number in unlinked:
        if older and (first is None or number < first):
            chain.unlinked.append(number)
        else:
            chain.find(_path(number, LINK), "is missing", number)


def _began_with_chain(folder: Path) -> bool:
    try:
        return "chain" in read_json(folder / RUN_META)
    except (FedcoastError, TypeError):
        return False


def _check_step(
    folder: Path,
    link: Link,
    before: Sequence[int],
    rounds: Mapping[int, Path],
    links: Mapping[int, Link],
    chain: ChainReport,
) -> None:
    """A link must follow the last one before it, and the first one run.json."""
    number, after = link.number, link.after
    for added in takewhile(lambda one: after is None or one > after, reversed(before)):
        chain.find(_path(added), f"was added: round {number} does not follow it", added)
    if after is None:
        _check_beginning(folder, link, chain)
    elif after not in rounds:
        earlier = max((one for one in rounds if one < after), default=None)
        since = "" if earlier is None else f", and any round between it and round {earlier}"
        chain.find(_path(after), f"is missing{since}: round {number} follows it", after)
    elif after in links and links[after].hash != link.previous:
        chain.find(_path(after, LINK), f"was replaced: round {number} follows another link", after)


def _check_beginning(folder: Path, link: Link, chain: ChainReport) -> None:
    about = Path(RUN_META)
    try:
        now = content(folder / RUN_META)
    except (OSError, BadFile) as error:
        chain.find(about, f"is missing or cannot be read ({error})")
        return
    if now.sha256 == link.previous:
        chain.files, chain.bytes = chain.files + 1, chain.bytes + now.bytes
    else:
        chain.find(about, f"was changed since round {link.number} was recorded")


def _check_files(folder: Path, place: Path, link: Link, chain: ChainReport) -> None:
    within, uploads = place.relative_to(folder), _uploads(place, link)
    there = {path.name: path for path in sorted(place.iterdir()) if path.name != LINK}
    added = {name: path for name, path in there.items() if name not in link.files}
    moved = {_content(path): name for name, path in added.items()}
    for name, recorded in link.files.items():
        whose = f" ({uploads[name]})" if name in uploads else ""
        if name not in there:
            now = moved.get(recorded)
            added.pop(now or "", None)
            chain.find(within / name, f"is missing{whose}" + (f"; it was renamed to {now}" if now else ""), link.number)
            continue
        found = _content(there[name])
        if found is None:
            chain.find(within / name, f"is not a plain file that can be read{whose}", link.number)
        elif found != recorded:
            chain.find(within / name, f"was changed{whose}: {_change(there[name], recorded, found, link)}", link.number)
        else:
            chain.files, chain.bytes = chain.files + 1, chain.bytes + found.bytes
    for name in added:
        chain.find(within / name, "was added; it is not in the link of its round", link.number)
    chain.files += 1  # the link


def _content(path: Path) -> Content | None:
    try:
        return content(path, DEPTH) if is_plain(path) else None
    except (OSError, BadFile):
        return None


def _change(path: Path, recorded: Content, found: Content, link: Link) -> str:
    if path.name == ROUND_META and (changed := list(_changed_facts(path, link))):
        return f"what it says about {', '.join(changed)}"
    if recorded.bytes != found.bytes:
        return f"{found.bytes:,} bytes, {recorded.bytes:,} were recorded"
    return f"SHA-256 {found.sha256[:12]}…, {recorded.sha256[:12]}… was recorded"


def _changed_facts(path: Path, link: Link) -> Iterator[str]:
    try:
        facts: dict[str, Any] = read_json(path, DEPTH)
        now = fact_hashes(facts)
    except (FedcoastError, AttributeError, RecursionError):
        return
    for name in (*link.facts, *(name for name in now if name not in link.facts)):
        if link.facts.get(name) != now.get(name):
            yield {"clients": "clients, their files or weights"}.get(name, name)


def _uploads(place: Path, link: Link) -> dict[str, str]:
    """Whose upload each file is, if the list of clients is still the recorded one."""
    try:
        facts = read_json(place / ROUND_META, DEPTH)
        if fact_hashes(facts)["clients"] == link.facts["clients"]:
            clients = {entry["file"]: client_from_json(entry["client"]) for entry in facts["clients"]}
            return {file: f"the upload of client {client!r}" for file, client in clients.items()}
    except (FedcoastError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return {}
