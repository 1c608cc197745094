"""What trackers have in common: they show each round to an assessor, and log what it then says."""

import json
import logging
from abc import abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Any, ClassVar

from fedcoast.errors import BadSetting, Client, FedcoastError
from fedcoast.integrations.trackers.names import safe_name
from fedcoast.integrations.trackers.readings import finite, readings
from fedcoast.methods import Assessor
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.base import Uploads
from fedcoast.methods.ledger import Credits
from fedcoast.rounds import Round
from fedcoast.rounds.schema import ModelSchema
from fedcoast.storage import Recorder

_log = logging.getLogger("fedcoast")
_TRAITS = ("takes_ballots", "remembers_everything", "credits_absent")


class Tracker(Assessor):
    """An assessor that also logs: it stands wherever the assessor inside it would, and answers as that one does.

    At step = number of the round it logs, for each client, `fedcoast/score/NAME`, `rank`, `coverage` (share of the
    valued rounds it took part in), `credit` (what became final with this round) and `quarantined` (rounds it was left
    out of), and `fedcoast/round/…` and `fedcoast/metric/…` of the round itself.

    A step is logged once: a resumed run, whose rounds are shown again to the assessor, goes on after the last step that
    is there. A tracker that fails (a full disk, a server that is down) says so once, in the log and in `trouble`, and
    stops logging; assessing goes on. While the assessor has no answer yet, nothing is logged.

    With a `recorder`, the head of its chain is logged too, so that it is kept in a second place.
    """

    allowed: ClassVar[str] = r"\w .-"  # the characters of a name, as in a regular expression's set

    def __init__(self, assessor: Assessor, recorder: Recorder | None = None) -> None:
        if not isinstance(assessor, Assessor):
            raise BadSetting(f"a tracker logs what an assessor says, such as CoAst(); got {assessor!r}")
        if recorder is not None and not isinstance(recorder, Recorder):
            raise BadSetting(f"recorder must be the Recorder whose chain is to be logged; got {recorder!r}")
        self.assessor = assessor
        # What the class of the assessor says of itself; all else that it has is found by __getattr__.
        vars(self).update({trait: getattr(assessor, trait) for trait in _TRAITS})
        self.trouble = ""
        self._recorder = recorder
        self._opened = self._closed = self._skipped = False
        self._silent = ""
        self._logged: int | None = None
        self._final: set[int] | None = None
        self._changed: dict[str, Client] = {}
        self._explained: set[str] = set()

    @abstractmethod
    def _open(self) -> int | None:
        """Get ready to log; the last step that is there already, if any."""

    @abstractmethod
    def _write(self, step: int, numbers: Mapping[str, float], words: Mapping[str, str]) -> None:
        """Log numbers and words by name at a step, so that they survive the process."""

    @abstractmethod
    def _end(self) -> None:
        """Let go of what was opened."""

    def close(self) -> None:
        """Log nothing more; nor do trackers inside this one."""
        if self._opened and not self._closed:
            try:
                self._end()
            except Exception as error:
                self._give_up("at its end", error)
        self._closed = True
        if isinstance(self.assessor, Tracker):
            self.assessor.close()

    def observe(self, round: Round, /) -> None:
        """Show the round to the assessor, then log; only the assessor's errors are raised."""
        if self._final is None:
            self._final = _final(self.assessor.assessment())
        self.assessor.observe(round)
        if self.trouble or self._closed:
            return
        try:
            self._tell(round)
        except Exception as error:
            self._give_up(f"in round {round.number}", error)

    def _give_up(self, when: str, error: Exception) -> None:
        if not self.trouble:
            self.trouble = f"{type(error).__name__}: {error}"
            _log.warning("%s stopped logging %s (%s); assessing goes on", type(self).__name__, when, self.trouble)

    def _tell(self, round: Round) -> None:
        try:
            answer = self.assessor.assessment()
        except FedcoastError as error:
            self._say_silent(error)
            return
        if not self._opened:
            self._logged, self._opened = self._open(), True
        before, self._final = self._final or set(), _final(answer)
        if self._logged is not None and round.number <= self._logged:
            self._say_skipped()
            return
        told = finite(readings(round, answer, sorted(self._final - before)))
        numbers = {self._name(reading.kind, reading.whose): reading.value for reading in told}
        self._write(round.number, numbers, self._words())
        self._logged = round.number

    def _name(self, kind: str, whose: Client | None) -> str:
        if whose is None:
            return f"fedcoast/{kind}"
        safe = safe_name(whose, self.allowed)
        if safe != str(whose):
            self._changed[safe] = whose
        return f"fedcoast/{kind}/{safe}"

    def _words(self) -> dict[str, str]:
        """Whose the names are that had to be changed, and the chain's head."""
        new = {safe: str(whose) for safe, whose in self._changed.items() if safe not in self._explained}
        words = {
            f"fedcoast/name/{safe}": text.encode("utf-8", "backslashreplace").decode() for safe, text in new.items()
        }
        self._explained.update(new)
        if self._recorder is not None:
            words["fedcoast/chain/head"] = f"{self._recorder.head} (round {self._recorder.last_round})"
        return words

    def _say_skipped(self) -> None:
        if not self._skipped:
            self._skipped = True
            _log.warning(
                "%s holds the rounds up to %s already, which are not logged again; another training needs a place of"
                " its own",
                type(self).__name__,
                self._logged,
            )

    def _say_silent(self, error: FedcoastError) -> None:
        if self._silent != str(error):
            self._silent = str(error)
            _log.warning("%s logs nothing while the method has no answer: %s", type(self).__name__, error)

    def _identity(self) -> dict[str, Any]:
        """What the numbers mean: another method or other settings must not be mixed with them."""
        answer = self.assessor.assessment()
        return {"method": answer.method, "settings": json.loads(json.dumps(dict(answer.settings)))}

    def _check_identity(self, place: object, theirs: Mapping[str, Any]) -> None:
        mine = self._identity()
        if theirs != mine:
            raise BadSetting(f"{place} holds the scores of {theirs}; this is {mine}. Give it a place of its own")

    # As the assessor would.

    @property
    def settings(self) -> dict[str, Any]:
        return self.assessor.settings

    def assessment(self) -> Assessment:
        return self.assessor.assessment()

    def save(self, path: Any) -> None:
        self.assessor.save(path)

    def restore(self, path: Any) -> None:
        self.assessor.restore(path)
        self._final = None

    def _take(self, round: Round, schema: ModelSchema, uploads: Uploads) -> Credits:
        return self.assessor._take(round, schema, uploads)

    def __getattr__(self, name: str) -> Any:
        if name == "assessor":
            raise AttributeError(name)
        return getattr(self.assessor, name)

    def __enter__(self) -> "Tracker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _final(answer: Assessment) -> set[int]:
    return set(answer.credits) - set(answer.pending)
