"""Publishes the rounds of any server to observers, and never stops a federation.

Any failure here (an observer that raises, a broken upload, a full disk) is logged, stored in `unobserved` and
reported in the metrics of the round. Training continues, and the next healthy round is observed again.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from fedcoast.analysis.running_verdicts import RunningVerdicts
from fedcoast.errors import BadSetting, Client, FedcoastError, blame, printable
from fedcoast.integrations.named_log import NamedLog
from fedcoast.integrations.round_capture import (
    RoundCapture,
    bad_uploads,
    build_round,
    conform,
    huge_uploads,
    is_weight,
    shown,
    without_bad_names,
)
from fedcoast.methods import Assessor
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.base import Observer
from fedcoast.rounds import Round
from fedcoast.rounds.schema import NORMALISATION_STATISTICS, ModelSchema, schema_of
from fedcoast.storage import Recorder, replay

Metrics = dict[str, int | float | list[int] | list[float]]
EVERYONE = "everyone"
T = TypeVar("T")

_log = NamedLog(__name__)


class ObserverHub:
    """Observers and the numbers of the rounds; one hub serves one federation.

        hub = ObserverHub([coast, Recorder("runs/today")])
        metrics = hub.publish(hub.number(server_round), RoundCapture(start, uploads, end))

    `unobserved` maps the number of a round that was missed to the observer (or "everyone") and the reason.
    """

    def __init__(self, observers: Sequence[Observer], buffers: Collection[str] = NORMALISATION_STATISTICS) -> None:
        self.observers = _labelled(observers)
        self.unobserved: dict[int, dict[str, str]] = {}
        self.last_round = 0
        self._buffers = buffers
        self._schema: ModelSchema | None = None
        self._recorded: Round | None = None
        self._warned_single_client = False
        self._verdicts: dict[str, RunningVerdicts] = {}
        self._last_problem: dict[str, str] = {}
        self._resume()
        self._offset, self._last_server_round = self.last_round, 0

    def _resume(self) -> None:
        """Continue a recording: assessors observe its rounds, and score as if training had never stopped."""
        for recorder in (one for one in self.observers.values() if isinstance(one, Recorder)):
            if recorder.last_round is None:
                continue
            for assessor in (one for one in self.observers.values() if isinstance(one, Assessor)):
                for fl_round in replay(recorder.folder, after=assessor.last_round):
                    assessor.observe(fl_round)
            self._recorded = next(replay(recorder.folder, after=recorder.last_round - 1))
            self._schema = self._recorded.schema()
        numbers = [getattr(one, "last_round", None) for one in self.observers.values()]
        self.last_round = max((number for number in numbers if isinstance(number, int)), default=0)

    def number(self, server_round: int) -> int:
        """The number of a round over all starts of this federation; servers count from 1 at every start."""
        if server_round <= self._last_server_round:
            self._offset = self.last_round
        self._last_server_round = server_round
        self.last_round = self._offset + server_round
        return self.last_round

    def publish(self, number: int, capture: RoundCapture) -> Metrics:
        """Show one round to all observers; returns the metrics to report, about the clients of this round."""
        capture = without_bad_names(capture)
        for client, reason in capture.rejections.items():
            _log.warning("round %d: %s is left out: %s", number, printable(client), printable(reason))
        anyone = bool(capture.uploads or capture.rejections)
        if anyone:
            self._publish(number, capture)
        replies = len(capture.uploads) + len(capture.rejections)
        metrics: Metrics = {
            "fedcoast/observed": int(anyone and number not in self.unobserved),
            "fedcoast/answered": replies if capture.num_replies is None else capture.num_replies,
        }
        for label, answer in self.answers().items():
            scores = self.safely(
                f"the scores of {label} were not read", partial(self._scores, number, label, answer, capture)
            )
            metrics |= scores or {}
        return metrics

    def answers(self) -> dict[str, Assessment]:
        """The assessments so far; an assessor without an answer is left out, and its reason is logged once."""
        answers: dict[str, Assessment] = {}
        for label, observer in self.observers.items():
            if not isinstance(observer, Assessor):
                continue
            try:
                answers[label] = observer.assessment()
                self._last_problem.pop(label, None)
            except Exception as error:
                if self._last_problem.get(label) != str(error):
                    expected = isinstance(error, FedcoastError)
                    _log.warning("%s has no answer: %s", label, error, exc_info=None if expected else error)
                self._last_problem[label] = str(error)
        return answers

    def mark_unobserved(self, number: int, reason: str) -> None:
        """Note that no observer sees this round; each reason is logged once."""
        if self.unobserved.get(number, {}).get(EVERYONE) != reason:
            self._note(number, EVERYONE, reason)

    def explain_failure(self, number: int, capture: RoundCapture, error: Exception | str) -> None:
        """Name the clients whose upload may have made the server's aggregation fail."""
        problem = error if isinstance(error, str) else f"the aggregation failed ({type(error).__name__}: {error})"
        schema = self._schema or self.safely("the model was not read", lambda: schema_of(capture.start, self._buffers))
        reasons = {} if schema is None else self.safely("uploads were not read", lambda: bad_uploads(capture, schema))
        self.mark_unobserved(number, f"{problem}{blame(reasons or {})}")

    def safely(self, problem: str, action: Callable[[], T]) -> T | None:
        """The result, or None after logging what went wrong."""
        try:
            return action()
        except Exception as error:
            _log.warning("%s (%s: %s)", problem, type(error).__name__, error, exc_info=error)
            return None

    def _publish(self, number: int, capture: RoundCapture) -> None:
        try:
            schema = self._check_layers(number, capture)
            self._check_models(number, capture, schema)
            fl_round = build_round(number, capture, schema, self._buffers)
            self._check_resumed(number, fl_round)
        except Exception as error:
            self._note(number, EVERYONE, str(error), error)
            return
        for client, upload in capture.uploads.items():
            if upload.weight is not None and not is_weight(upload.weight):
                _log.warning(
                    "round %d: the weight of %s must be a number ≥ 0; got %s",
                    number,
                    printable(client),
                    printable(shown(upload.weight)),
                )
        for label, observer in self.observers.items():
            try:
                observer.observe(fl_round)
            except Exception as error:
                self._note(number, label, str(error), error)

    def _check_layers(self, number: int, capture: RoundCapture) -> ModelSchema:
        """The schema of this segment of the training; a model with other layers begins a new one."""
        if self._schema is None:
            self._schema = schema_of(capture.start, self._buffers)
            return self._schema
        current = schema_of(_conformed(capture, self._schema), self._buffers)
        change = self._schema.differs(current)
        if change:
            _log.warning(
                "round %d: the model changed its layers: %s. A new segment begins: earlier credits stay, and rounds"
                " that were still pending get none",
                number,
                change,
            )
            for label, observer in self.observers.items():
                if isinstance(observer, Assessor):
                    self.safely(f"{label} cannot begin a new segment", observer.new_segment)
            self._schema, self._recorded = current, None
        return self._schema

    def _check_models(self, number: int, capture: RoundCapture, schema: ModelSchema) -> None:
        """If a global model is not finite, name the client whose upload made it so."""
        for which, model in (("before", capture.start), ("after", capture.end)):
            if model is None:
                continue
            try:
                schema.read(conform(model, schema))
            except FedcoastError as error:
                reasons = {} if which == "before" else bad_uploads(capture, schema) or huge_uploads(capture, schema)
                raise FedcoastError(f"global model {which} the round: {error}{blame(reasons)}") from error

    def _check_resumed(self, number: int, fl_round: Round) -> None:
        """Warn once if a recording is continued by another training, which would mix two histories in one score."""
        recorded, self._recorded = self._recorded, None
        if recorded is None or self._schema is None:
            return
        start, end = fl_round.read_start(self._schema), recorded.read_end(self._schema)
        if not all(np.array_equal(start[name], end[name]) for name in end):
            _log.warning(
                "round %d does not start from the model that the recording ended with in round %d: if this is another"
                " training, its scores are mixed with the old one's; record it to a folder of its own, or start from"
                " the recorded model",
                number,
                recorded.number,
            )

    def _note(self, number: int, label: str, reason: str, error: Exception | None = None) -> None:
        self.unobserved.setdefault(number, {})[label] = reason
        expected = error is None or isinstance(error, FedcoastError)
        trace = None if expected else error
        _log.warning("round %d was not observed by %s: %s", number, label, printable(reason), exc_info=trace)

    def _scores(self, number: int, label: str, answer: Assessment, capture: RoundCapture) -> Metrics:
        metrics: Metrics = {
            f"fedcoast/{label}/pending": [int(pending) for pending in answer.pending],
            f"fedcoast/{label}/quarantined": len(answer.quarantined.get(number, {})),
        }
        if self._only_one_client(answer.clients):
            return metrics
        codes = self._verdicts.setdefault(label, RunningVerdicts()).codes(answer)
        for client in (*capture.uploads, *capture.rejections):
            score = answer.scores.get(client)
            if score is not None and np.isfinite(score):  # JSON has no NaN, and frameworks take plain numbers only
                metrics[f"fedcoast/{label}/score/{client}"] = score if type(score) is int else float(score)
                metrics[f"fedcoast/{label}/rounds/{client}"] = int(answer.rounds_scored[client])
                if client in codes:
                    metrics[f"fedcoast/{label}/verdict/{client}"] = codes[client]
        return metrics

    def _only_one_client(self, clients: Sequence[Client]) -> bool:
        if len(clients) == 1 and not self._warned_single_client:
            self._warned_single_client = True
            _log.warning(
                "only one client (%s) has answered so far: a contribution is a comparison, and there is nobody to"
                " compare it with; scores are given from the second client on",
                clients[0],
            )
        return len(clients) < 2


def _conformed(capture: RoundCapture, schema: ModelSchema) -> dict[str, object]:
    try:
        return conform(capture.start, schema)
    except FedcoastError:  # a layer of floats became integers: another layout
        return dict(capture.start)


def _labelled(observers: Sequence[Observer]) -> dict[str, Observer]:
    if not observers:
        raise BadSetting("at least one observer is wanted, such as CoAst()")
    labelled: dict[str, Observer] = {}
    for observer in observers:
        if isinstance(observer, type) or not callable(getattr(observer, "observe", None)):
            raise BadSetting(f"an observer has a method observe(fl_round); got {observer!r}")
        if any(other is observer for other in labelled.values()):
            raise BadSetting(f"{observer!r} was given twice; it would see every round twice")
        name = observer.method if isinstance(observer, Assessor) else type(observer).__name__.lower()
        repeats = sum(label.partition("#")[0] == name for label in labelled)
        labelled[name if not repeats else f"{name}#{repeats + 1}"] = observer
    return labelled
