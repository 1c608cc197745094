"""What trackers have in common: they show each round to an assessor and log its answer."""

import json
from abc import abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Any, ClassVar

from fedcoast.analysis.running_verdicts import RunningVerdicts
from fedcoast.errors import BadSetting, Client, FedcoastError
from fedcoast.integrations.named_log import NamedLog
from fedcoast.integrations.trackers.round_values import finite, round_values
from fedcoast.integrations.trackers.safe_names import safe_name
from fedcoast.methods import Assessor
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.ledger import Credits
from fedcoast.rounds import Round
from fedcoast.rounds.round_view import RoundView
from fedcoast.storage import Recorder

_log = NamedLog(__name__)
_TRAITS = ("takes_ballots", "remembers_everything", "credits_absent")


class Tracker(Assessor):
    """An assessor that also logs: use it in place of the assessor inside it, whose answers it returns.

    At step = number of the round it logs, for each client, `fedcoast/score/NAME`, `rank`, `verdict` (1 helps, 0
    cannot tell, -1 hurts, -2 idle), `coverage` (share of the valued rounds it took part in), `credit` (what became
    final with this round) and `quarantined` (rounds it was left out of), and `fedcoast/round/…` and
    `fedcoast/metric/…` of the round itself.

    A step is logged once: a resumed run, whose rounds the assessor observes again, continues after the last logged
    step. A tracker that fails (a full disk, a server that is down) reports it once, in the log and in `failure`,
    and stops logging; assessing continues. While the assessor has no answer yet, nothing is logged.

    With a `recorder`, the head of its chain is logged too, so that it is kept in a second place.
    """

    allowed: ClassVar[str] = r"\w .-"  # the characters of a name, as in a regular expression's set

    def __init__(self, assessor: Assessor, recorder: Recorder | None = None) -> None:
        if not isinstance(assessor, Assessor):
            raise BadSetting(f"a tracker logs the answers of an assessor, such as CoAst(); got {assessor!r}")
        if recorder is not None and not isinstance(recorder, Recorder):
            raise BadSetting(f"recorder must be the Recorder whose chain is to be logged; got {recorder!r}")
        self.assessor = assessor
        # Class attributes of the assessor; __getattr__ finds everything else.
        vars(self).update({trait: getattr(assessor, trait) for trait in _TRAITS})
        self.failure = ""
        self._recorder = recorder
        self._opened = self._closed = self._warned_skipped = False
        self._last_problem = ""
        self._logged: int | None = None
        self._final: set[int] | None = None
        self._renamed: dict[str, Client] = {}
        self._explained: set[str] = set()
        self._verdicts = RunningVerdicts()

    @abstractmethod
    def _open(self) -> int | None:
        """Get ready to log; return the last step that is logged already, if any."""

    @abstractmethod
    def _write(self, step: int, numbers: Mapping[str, float], texts: Mapping[str, str]) -> None:
        """Log numbers and texts by name at a step, so that they survive the process."""

    @abstractmethod
    def _end(self) -> None:
        """Close what `_open` opened."""

    def close(self) -> None:
        """Stop logging, also in trackers inside this one."""
        if self._opened and not self._closed:
            try:
                self._end()
            except Exception as error:
                self._give_up("at its end", error)
        self._closed = True
        if isinstance(self.assessor, Tracker):
            self.assessor.close()

    def observe(self, fl_round: Round, /) -> None:
        """Let the assessor observe the round, then log; only the assessor's errors are raised."""
        if self._final is None:
            self._final = _final(self.assessor.assessment())
        self.assessor.observe(fl_round)
        if self.failure or self._closed:
            return
        try:
            self._log_round(fl_round)
        except Exception as error:
            self._give_up(f"in round {fl_round.number}", error)

    def _give_up(self, when: str, error: Exception) -> None:
        if not self.failure:
            self.failure = f"{type(error).__name__}: {error}"
            _log.warning("%s stopped logging %s (%s); assessing goes on", type(self).__name__, when, self.failure)

    def _log_round(self, fl_round: Round) -> None:
        try:
            answer = self.assessor.assessment()
        except FedcoastError as error:
            self._warn_no_answer(error)
            return
        if not self._opened:
            self._logged, self._opened = self._open(), True
        before, self._final = self._final or set(), _final(answer)
        if self._logged is not None and fl_round.number <= self._logged:
            self._warn_skipped()
            return
        values = finite(round_values(fl_round, answer, sorted(self._final - before), self._verdicts.codes(answer)))
        numbers = {self._name(value.quantity, value.subject): value.value for value in values}
        self._write(fl_round.number, numbers, self._texts())
        self._logged = fl_round.number

    def _name(self, quantity: str, subject: Client | None) -> str:
        if subject is None:
            return f"fedcoast/{quantity}"
        safe = safe_name(subject, self.allowed)
        if safe != str(subject):
            self._renamed[safe] = subject
        return f"fedcoast/{quantity}/{safe}"

    def _texts(self) -> dict[str, str]:
        """The clients whose names had to be changed, and the chain's head."""
        new = {safe: str(client) for safe, client in self._renamed.items() if safe not in self._explained}
        texts = {
            f"fedcoast/name/{safe}": text.encode("utf-8", "backslashreplace").decode() for safe, text in new.items()
        }
        self._explained.update(new)
        if self._recorder is not None:
            texts["fedcoast/chain/head"] = f"{self._recorder.head} (round {self._recorder.last_round})"
        return texts

    def _warn_skipped(self) -> None:
        if not self._warned_skipped:
            self._warned_skipped = True
            _log.warning(
                "%s already holds the rounds up to %s, which are not logged again; give another training its own place",
                type(self).__name__,
                self._logged,
            )

    def _warn_no_answer(self, error: FedcoastError) -> None:
        if self._last_problem != str(error):
            self._last_problem = str(error)
            _log.warning("%s logs nothing while the method has no answer: %s", type(self).__name__, error)

    def _identity(self) -> dict[str, Any]:
        """The method and its settings: numbers of others must not be mixed with these."""
        answer = self.assessor.assessment()
        return {"method": answer.method, "settings": json.loads(json.dumps(dict(answer.settings)))}

    def _check_identity(self, place: object, theirs: Mapping[str, Any]) -> None:
        mine = self._identity()
        if theirs != mine:
            raise BadSetting(f"{place} holds the scores of {theirs}; this is {mine}. Use another place")

    # Delegated to the assessor.

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

    def new_segment(self) -> None:
        self.assessor.new_segment()

    def _step(self, view: RoundView, state: Any) -> tuple[Credits, Any]:
        return self.assessor._step(view, state)

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
