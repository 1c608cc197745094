"""Files that say something about a run: answers, reports and saved states, each as a claim to be checked."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fedcoast.errors import BadFile
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.assessment_files import FORMAT as ANSWER
from fedcoast.methods.base import STATE_FORMAT
from fedcoast.reports.forms import FORMAT as REPORT
from fedcoast.reports.signature import FORMAT as SEAL
from fedcoast.reports.signature import last_round, read_signature
from fedcoast.storage.credit_log import CREDITS, read_credit_log
from fedcoast.storage.files import read_plain
from fedcoast.storage.old_settings import translated
from fedcoast.storage.run_folder import ROUNDS
from fedcoast.storage.tensors import read_tensors

ARTIFACT_ENDINGS = (".state", ".json", ".html")  # the endings that claims have
Kind = Literal["answer", "report", "ledger", "record of credits"]


@dataclass(frozen=True)
class Claim:
    """What a file says that a method found in the rounds up to `last_round`.

    `content` is the assessment as JSON, for a page without its credits; of a ledger the whole file is checked.
    `standings` are the clients as a report in JSON lists them. `whole` is false where the file was changed since it was
    made.
    """

    file: Path
    kind: Kind
    method: str
    settings: dict[str, Any]
    last_round: int | None
    content: dict[str, Any]
    standings: tuple[dict[str, Any], ...] = ()
    head: str = ""
    whole: bool = True
    text: str = ""


def read_claim(file: Path, follow: bool = True) -> Claim:
    """What a file claims; BadFile if it claims nothing that could be checked. A saved state ends in .state."""
    try:
        if file.suffix == ".state":
            return _ledger(file, follow)
        text = read_plain(file, follow=follow).decode("utf-8")  # every byte counts, also those that end lines
        if text.lstrip().startswith("<"):
            return _report(file, text)
        content = json.loads(text)
        if isinstance(content, dict) and content.get("format") == REPORT:
            return _report(file, text)
        answer = Assessment.from_json(text)
        if not isinstance(answer.method, str):
            raise BadFile(f"{file} does not say whose answer it is")
        content["settings"] = dict(answer.settings)
        return Claim(file, "answer", answer.method, dict(answer.settings), last_round(answer), content)
    except OSError as error:
        raise BadFile(f"{file} cannot be read ({error.strerror})") from error
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, BadFile):
            raise
        raise BadFile(f"{file} is neither an answer nor a report ({error})") from error


def says_it_is_ours(file: Path) -> bool:
    """Whether the file calls itself an answer or a report of fedcoast, readable or not."""
    try:
        content = read_plain(file, follow=False)
    except (OSError, BadFile):
        return False
    return any(f'"{name}"'.encode() in content for name in (ANSWER, REPORT, SEAL))


def recorded_credits_claim(folder: Path) -> Claim | None:
    """The credits recorded with the rounds, if any."""
    log = read_credit_log(folder)
    if log is None:
        return None
    path = Path(ROUNDS) / "*" / CREDITS
    return Claim(path, "record of credits", log.method, log.settings, None, {"credits": log.credits})


def _report(file: Path, text: str) -> Claim:
    signature, content, whole = read_signature(text)
    listed = json.loads(text).get("clients") if text.lstrip().startswith("{") else ()
    if not isinstance(content.get("method"), str) or not isinstance(content.get("settings"), dict):
        raise BadFile(f"{file} does not say which method it reports on")
    content["settings"] = translated(content["method"], content["settings"])
    if not isinstance(listed, list | tuple) or not all(isinstance(entry, dict) for entry in listed):
        raise BadFile(f"{file} does not list the clients as a report does")
    return Claim(
        file,
        "report",
        content["method"],
        content["settings"],
        signature["last_round"],
        content,
        standings=tuple(listed),
        head=signature["head"] or "",
        whole=whole,
        text=text,
    )


def _ledger(file: Path, follow: bool) -> Claim:
    _, header = read_tensors(file, follow=follow)
    try:
        if header["format"] != STATE_FORMAT:
            raise BadFile(f"{file} holds no state of an assessor")
        if not isinstance(header["last_round"], int | None):
            raise BadFile(f"{file} does not say which round was the last; it was altered")
        return Claim(file, "ledger", header["method"], dict(header["settings"]), header["last_round"], header["ledger"])
    except (KeyError, TypeError, ValueError) as error:
        raise BadFile(f"{file} holds no state of an assessor ({error!r})") from error
