"""Credits stored with the rounds: those that were final when each round was recorded."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fedcoast.errors import BadFile, BadSetting, Client
from fedcoast.rounds.clients import client_from_json, client_to_json
from fedcoast.storage.files import read_json
from fedcoast.storage.old_settings import translated
from fedcoast.storage.run_folder import DEPTH, round_dirs

CREDITS = "credits.json"

Credits = dict[int, dict[Client, float]]


class HasAssessment(Protocol):
    """Anything that can give an assessment at any time."""

    def assessment(self) -> Any: ...


@dataclass
class CreditLog:
    """The ledger in a run folder: its method and settings, and every recorded credit."""

    method: str
    settings: dict[str, Any]
    credits: Credits = field(default_factory=dict)

    def new(self, answer: Any) -> Credits:
        """The new final credits of an assessment."""
        lasting = answer.lasting_credits.items()
        return {n: dict(of) for n, of in lasting if n not in self.credits and n not in answer.pending}

    def to_json(self, new: Credits) -> dict[str, Any]:
        """The file that goes with one round."""
        rows = [[n, [[client_to_json(client), value] for client, value in of.items()]] for n, of in new.items()]
        return {"method": self.method, "settings": self.settings, "credits": rows}


def begin(folder: Path, ledger: HasAssessment) -> CreditLog:
    """The folder's ledger, to be continued by this assessor; a ledger of another assessor is refused."""
    if isinstance(ledger, type) or not callable(getattr(ledger, "assessment", None)):
        raise BadSetting(f"ledger must be the assessor whose credits are to be written down; got {ledger!r}")
    answer = ledger.assessment()
    mine = CreditLog(answer.method, json.loads(json.dumps(dict(answer.settings))))
    log = read_credit_log(folder) or mine
    if (log.method, log.settings) != (mine.method, mine.settings):
        raise BadSetting(
            f"{folder} keeps the ledger of {log.method} with {log.settings}; this is {mine.method} with"
            f" {mine.settings}. Make it with the same settings, or record without a ledger"
        )
    return log


def read_credit_log(folder: Path) -> CreditLog | None:
    """All credits stored with the rounds, or None."""
    log = None
    for path in (place / CREDITS for place in round_dirs(folder)):
        if not os.path.lexists(path):
            continue
        content = read_json(path, DEPTH)
        try:
            log = log or CreditLog(content["method"], translated(content["method"], content["settings"]))
            if not isinstance(log.method, str):
                raise TypeError(f"method {log.method!r}")
            log.credits.update({number: _row(of) for number, of in content["credits"]})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadFile(f"{path} is not as a recorder writes it ({error!r})") from error
    return log


def _row(of: list[tuple[Mapping[str, str], float]]) -> dict[Client, float]:
    return {client_from_json(client): value for client, value in of}
