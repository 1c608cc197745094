"""Publishes what a Flower server saw to every observer, and never stops a federation.

Whatever goes wrong here (an observer that raises, a model that cannot be assessed, a disk that is full) is logged,
kept in `unobserved` and reported in the metrics of the round. Training goes on.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
from flwr.serverapp import Grid

from fedcoast.errors import BadSetting, FedcoastError, printable
from fedcoast.integrations.flower.assembly import RoundCapture, assemble
from fedcoast.integrations.flower.identity import Identity, NodeRegistry, ResolvedReplies, Resolver, resolve_clients
from fedcoast.integrations.flower.npy_layers import Dtypes, dtypes_of, read_global
from fedcoast.integrations.flower.replies import Upload
from fedcoast.methods import Assessor
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.base import Observer
from fedcoast.rounds import Round
from fedcoast.rounds.schema import NORMALISATION_STATISTICS
from fedcoast.storage import Recorder, replay

Metrics = dict[str, int | float | list[int] | list[float]]
T = TypeVar("T")

_log = logging.getLogger(__name__)


class ObserverHub:
    """Observers, client identities, and the numbers of the rounds; shared by all three wrappers."""

    def __init__(
        self,
        observers: Sequence[Observer],
        identity: Resolver | None = None,
        buffers: Collection[str] = NORMALISATION_STATISTICS,
    ) -> None:
        self.observers = _labelled(observers)
        self.unobserved: dict[int, dict[str, str]] = {}
        self.last_round = 0
        self._buffers = buffers
        self._identity: Resolver = Identity() if identity is None else identity
        self._registry = NodeRegistry()
        self._kinds: Dtypes | None = None
        self._last: Round | None = None
        self._warned_single_client = False
        self._last_problem: dict[str, str] = {}
        self._catch_up()
        self._before, self._last_server_round = self.last_round, 0

    def _catch_up(self) -> None:
        """Go on where a recording ended: assessors are shown its rounds, and score as if never killed."""
        for recorder in (one for one in self.observers.values() if isinstance(one, Recorder)):
            if recorder.last_round is None:
                continue
            for assessor in (one for one in self.observers.values() if isinstance(one, Assessor)):
                for fl_round in replay(recorder.folder, after=assessor.last_round):
                    assessor.observe(fl_round)
            self._last = next(replay(recorder.folder, after=recorder.last_round - 1))
            self._kinds = {entry.name: np.dtype(entry.dtype) for entry in self._last.schema().entries}
        numbers = [getattr(one, "last_round", None) for one in self.observers.values()]
        self.last_round = max((number for number in numbers if isinstance(number, int)), default=0)

    def number(self, server_round: int) -> int:
        """The number of a round over all starts of this federation; Flower counts from 1 at every start."""
        if server_round <= self._last_server_round:
            self._before = self.last_round
        self._last_server_round = server_round
        self.last_round = self._before + server_round
        return self.last_round

    def register_nodes(self, node_ids: Iterable[int], grid: Grid) -> None:
        self._guarded("the grid was not asked who its nodes are", lambda: self._registry.update(node_ids, grid))

    def resolve_clients(self, number: int, uploads: Callable[[], Sequence[Upload]]) -> ResolvedReplies:
        try:
            return resolve_clients(uploads(), self._registry, self._identity)
        except Exception as error:
            self._note(number, "everyone", f"the replies cannot be read ({error})", error)
            return ResolvedReplies({}, {}, 0)

    def publish(self, number: int, capture: RoundCapture) -> Metrics:
        """Show one round to all observers; returns the metrics to report."""
        for client, reason in capture.replies.rejections.items():
            _log.warning("round %d: %s is left out: %s", number, printable(client), printable(reason))
        somebody = bool(capture.replies.uploads or capture.replies.rejections)
        if somebody:
            self._show(number, capture)
        metrics: Metrics = {
            "fedcoast/observed": int(somebody and number not in self.unobserved),
            "fedcoast/answered": capture.replies.num_replies,
        }
        for label, answer in self.answers().items():
            scores = self._guarded(f"the scores of {label} were not read", partial(self._scores, number, label, answer))
            metrics |= scores or {}
        return metrics

    def answers(self) -> dict[str, Assessment]:
        """What the assessors say so far; one that cannot answer yet is left out, and its reason is logged once."""
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
        """Note that nobody will see this round; once is enough for a reason."""
        if self.unobserved.get(number, {}).get("everyone") != reason:
            self._note(number, "everyone", reason)

    def _show(self, number: int, capture: RoundCapture) -> None:
        try:
            if self._kinds is None:
                self._kinds = dtypes_of(capture.start)
            fl_round = assemble(number, capture, self._kinds, self._buffers)
            self._check_goes_on(number, capture)
        except Exception as error:
            self._note(number, "everyone", str(error), error)
            return
        for label, observer in self.observers.items():
            try:
                observer.observe(fl_round)
            except Exception as error:
                self._note(number, label, str(error), error)

    def _check_goes_on(self, number: int, capture: RoundCapture) -> None:
        """A recording that is continued with another training would mix two histories in one score: say so, once."""
        last, self._last = self._last, None
        if last is None or self._kinds is None:
            return
        start, end = read_global(capture.start, self._kinds), last.read_end(last.schema())
        if start.keys() != end.keys() or not all(np.array_equal(start[name], end[name]) for name in end):
            _log.warning(
                "round %d does not start from the model that the recording ended with in round %d: if this is another"
                " training, its scores are mixed with the old one's; record it to a folder of its own, or start from"
                " fedcoast.integrations.flower.resumed(folder, arrays)",
                number,
                last.number,
            )

    def _note(self, number: int, label: str, reason: str, error: Exception | None = None) -> None:
        self.unobserved.setdefault(number, {})[label] = reason
        expected = error is None or isinstance(error, FedcoastError)
        _log.warning("round %d was not observed by %s: %s", number, label, reason, exc_info=None if expected else error)

    def _scores(self, number: int, label: str, answer: Assessment) -> Metrics:
        metrics: Metrics = {
            f"fedcoast/{label}/pending": [int(pending) for pending in answer.pending],
            f"fedcoast/{label}/quarantined": len(answer.quarantined.get(number, {})),
        }
        if self._only_one_client(answer.clients):
            return metrics
        for client, score in answer.scores.items():
            if np.isfinite(score):  # JSON knows no NaN, and a MetricRecord no NumPy numbers
                metrics[f"fedcoast/{label}/score/{client}"] = score if type(score) is int else float(score)
                metrics[f"fedcoast/{label}/seen/{client}"] = int(answer.seen[client])
        return metrics

    def _only_one_client(self, clients: Sequence[object]) -> bool:
        if len(clients) == 1 and not self._warned_single_client:
            self._warned_single_client = True
            _log.warning(
                "only one client (%s) has answered so far: a contribution is a comparison, and there is nobody to"
                " compare it with; scores are given from the second client on",
                clients[0],
            )
        return len(clients) < 2

    def _guarded(self, what: str, action: Callable[[], T]) -> T | None:
        try:
            return action()
        except Exception as error:
            _log.warning("%s (%s: %s)", what, type(error).__name__, error, exc_info=error)
            return None


def _labelled(observers: Sequence[Observer]) -> dict[str, Observer]:
    if not observers:
        raise BadSetting("at least one observer is wanted, such as Observed(FedAvg(), CoAst())")
    labelled: dict[str, Observer] = {}
    for observer in observers:
        if isinstance(observer, type) or not callable(getattr(observer, "observe", None)):
            raise BadSetting(f"an observer has a method observe(round); got {observer!r}")
        if any(other is observer for other in labelled.values()):
            raise BadSetting(f"{observer!r} was given twice; it would see every round twice")
        name = observer.method if isinstance(observer, Assessor) else type(observer).__name__.lower()
        repeats = sum(label.partition("#")[0] == name for label in labelled)
        labelled[name if not repeats else f"{name}#{repeats + 1}"] = observer
    return labelled
