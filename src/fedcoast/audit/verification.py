"""`verify`: is a run folder as it was recorded, and do the answers, reports and ledgers follow from it?"""

import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fedcoast.audit.artifacts import ARTIFACT_ENDINGS, Claim, read_claim, recorded_credits_claim, says_it_is_ours
from fedcoast.audit.chain_check import ChainReport, check_chain
from fedcoast.audit.findings import Finding
from fedcoast.audit.recompute import differences
from fedcoast.audit.report_check import check_report
from fedcoast.errors import BadFile, BadSetting
from fedcoast.storage.files import is_folder, is_plain
from fedcoast.storage.replay import replay
from fedcoast.storage.run_folder import ROUNDS, RUN_META, is_run

_PRIVATE = (RUN_META, ROUNDS, ".lock", f".{RUN_META}.part")
_SERVER = "the lab's server optimiser after its last rounds: needed to go on, no part of what happened"
_STRANGER = "not part of the recording"


@dataclass(frozen=True)
class Verification:
    """What was found. `agrees` is true when every byte is as recorded and every claim follows from it.

    `head` is the hash of the last link: a copy kept elsewhere shows later whether rounds were cut off or rewritten.
    `uncovered` are rounds older than the chain; `confirmed` says what agrees, in sentences; `unchecked` are claims that
    were not compared, because the recording itself was changed; `outside` are files in the folder that the chain does
    not cover, and why. `anchored` says whether the chain passes through heads that were kept elsewhere: without one,
    rounds cut off at the end do not show. `missed` are rounds that the recorder was shown and could not write, with the
    reason; claims of observers that saw them are then `unchecked`.
    """

    folder: str
    head: str | None
    last_round: int | None
    rounds: int
    files: int
    bytes: int
    findings: tuple[Finding, ...] = ()
    uncovered: tuple[int, ...] = ()
    confirmed: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    anchored: bool = False
    missed: dict[int, str] = field(default_factory=dict)
    outside: dict[str, str] = field(default_factory=dict)

    @property
    def agrees(self) -> bool:
        return not self.findings and not self.uncovered and not self.unchecked and self.head is not None

    def to_json(self) -> dict[str, Any]:
        return {"agrees": self.agrees, **asdict(self)}


def verify(
    folder: str | Path, artifacts: Iterable[str | Path] = (), head: str | Iterable[str] | None = None
) -> Verification:
    """Recompute every hash of a run folder, and the scores behind every claim.

    `artifacts` are answers (`fedcoast assess --json`), reports (HTML or JSON) and saved states; those that lie in the
    folder are found without being named. `head` is one that was kept, or several: the chain must pass through each.
    """
    heads = [head] if isinstance(head, str) else [] if head is None else list(head)
    folder, kept_heads = Path(folder), [_head(one) for one in heads]
    if not is_run(folder) and not is_folder(folder / ROUNDS):
        raise BadFile(
            f"{folder} is not a recorded run, and only recorded runs have a chain (fedcoast import makes one)"
        )
    try:
        chain = check_chain(folder)
    except OSError as error:
        raise BadFile(f"{folder} cannot be read ({error})") from error
    confirmed: list[str] = []
    unchecked: list[str] = []
    sound = not chain.findings  # else a claim that no longer follows from it need not be what was changed
    claims = _claims(folder, [Path(artifact) for artifact in artifacts], chain)
    for claim, found in differences(replay(folder), claims) if sound else [(claim, []) for claim in claims]:
        if sound and not found and claim.kind == "report":
            found = check_report(folder, claim.text, claim.last_round)
        if found and claim.whole and (gaps := _missed_before(claim, chain)):
            unchecked.append(f"{claim.file}, since the recorder missed {gaps}, and other observers did not")
            continue
        _check_claim(claim, found, chain, confirmed if sound else [])
    if not sound:
        unchecked = [f"{claim.file}, since the recording itself was changed" for claim in claims]
    passes = [_check_head(kept_head, chain, confirmed) for kept_head in kept_heads]
    return Verification(
        folder=str(folder),
        head=chain.head,
        last_round=chain.last_round,
        rounds=chain.rounds,
        files=chain.files,
        bytes=chain.bytes,
        findings=tuple(chain.findings),
        uncovered=tuple(chain.unlinked),
        confirmed=tuple(confirmed),
        unchecked=tuple(unchecked),
        missed=chain.missed,
        outside=chain.outside,
        anchored=bool(passes) and all(passes),
    )


def _head(text: str) -> str:
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        raise BadSetting(f"a head is 64 hexadecimal digits, as fedcoast verify prints it; got {text!r}")
    return text.lower()


def _claims(folder: Path, artifacts: list[Path], chain: ChainReport) -> list[Claim]:
    """The claims that were given, which must be readable, and those that lie in the folder."""
    claims = []
    for artifact in dict.fromkeys(artifacts):
        if not artifact.is_file():
            raise BadFile(f"{artifact} is no file")
        try:
            claims.append(read_claim(artifact))
        except BadFile as error:
            chain.findings.append(Finding(str(artifact), f"cannot be checked: {error}"))
    try:
        recorded_claim = recorded_credits_claim(folder)
        claims += [] if recorded_claim is None else [recorded_claim]
    except BadFile:
        pass  # every byte of it is covered by the chain, which has named it
    paths = {os.path.realpath(artifact) for artifact in artifacts}
    for path in sorted(folder.iterdir()):
        if path.name in _PRIVATE or os.path.realpath(path) in paths:
            continue
        try:
            if path.suffix not in ARTIFACT_ENDINGS or not is_plain(path):
                raise BadFile("no answer, report or state ends like this")
            claims.append(read_claim(path, follow=False))
        except BadFile as error:
            if path.suffix == ".state":
                chain.findings.append(Finding(path.name, f"was changed: {error}"))
            elif path.suffix in ARTIFACT_ENDINGS and says_it_is_ours(path):
                chain.findings.append(Finding(path.name, f"cannot be checked: {error}"))
            else:
                chain.outside[path.name] = _SERVER if path.name == "server" and is_folder(path) else _STRANGER
    return claims


def _missed_before(claim: Claim, chain: ChainReport) -> str:
    """The rounds that the recorder says it missed, and that the claim may rest on."""
    until = chain.last_round if claim.last_round is None else claim.last_round
    return ", ".join(f"round {n} ({why})" for n, why in chain.missed.items() if until is not None and n <= until)


def _check_claim(claim: Claim, found: list[str], chain: ChainReport, confirmed: list[str]) -> None:
    file = str(claim.file)
    if not claim.whole:
        found = ["was changed after it was made: its content does not match its own hash", *found]
    if claim.head and claim.head != chain.heads.get(-1 if claim.last_round is None else claim.last_round):
        found = [f"was made from another history: its head is not that of round {claim.last_round}", *found]
    chain.findings.extend(Finding(file, what) for what in found)
    if not found:
        settings = ", ".join(f"{option}={value!r}" for option, value in claim.settings.items())
        until = "" if claim.last_round is None else f" up to {claim.last_round}"
        of = f"its {claim.kind} follows from the rounds{until}"
        head = ", and it states their head" if claim.head else ""
        confirmed.append(f"{file}: {of}{head}, by {claim.method}({settings})")


def _check_head(kept_head: str, chain: ChainReport, confirmed: list[str]) -> bool:
    at = next((number for number, found in chain.heads.items() if found == kept_head), None)
    if at is None and kept_head != chain.beginning:
        what = f"no link has the head {kept_head[:12]}…: rounds were cut off at the end, or the chain was rewritten"
        chain.findings.append(Finding(ROUNDS, what))
        return False
    since = sum(at is None or number > at for number in chain.heads)
    growth = f"; {since} rounds were added since" if since else ""
    where = f"that of {RUN_META}, from before the first round" if at is None else f"the link of round {at}"
    confirmed.append(f"the head that was kept is {where}{growth}")
    return True
