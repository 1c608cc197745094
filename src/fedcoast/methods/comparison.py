"""Compare methods: all observe the same rounds once, and the cost of each is measured."""

import csv
import io
import json
import math
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from fedcoast.errors import BadSetting, Client, FedcoastError
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.base import Assessor
from fedcoast.methods.text import as_text, csv_row, printable
from fedcoast.rounds.clients import client_to_json
from fedcoast.rounds.round import Round
from fedcoast.stats.ranking import kendall, spearman

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

FORMAT = "fedcoast-comparison"
VERSION = 1
_COSTS = ["seconds", "evaluations", "peak_bytes"]

Correlation = Literal["spearman", "kendall"]


@dataclass(frozen=True)
class Comparison:
    """The answers of several methods about the same rounds.

    `assessments` has the answer of every method that gave one, by the name it was given; `errors` has the reasons of
    the others. `seconds` is the time a method took, including reading the uploads; `evaluations` is how many models its
    utility valued, for methods with a utility; `peak_bytes` is its largest memory use, if that was measured.
    `truth` is the true value of each client, if there is one.
    """

    assessments: Mapping[str, Assessment]
    seconds: Mapping[str, float] = field(default_factory=dict)
    evaluations: Mapping[str, int] = field(default_factory=dict)
    peak_bytes: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    truth: Mapping[Client, float] | None = None

    @property
    def clients(self) -> tuple[Client, ...]:
        """Everyone who ever answered: the same for all methods."""
        return next(iter(self.assessments.values())).clients if self.assessments else ()

    def agreement(self, by: Correlation = "spearman") -> dict[str, dict[str, float]]:
        """The rank correlation of any two methods: Spearman's ρ or Kendall's τ_b; NaN for a constant method."""
        correlation = {"spearman": spearman, "kendall": kendall}[by]
        scores = {name: [of.scores[client] for client in self.clients] for name, of in self.assessments.items()}
        table: dict[str, dict[str, float]] = {name: {} for name in scores}
        for one, row in table.items():
            for other in scores:
                row[other] = table[other][one] if one in table[other] else correlation(scores[one], scores[other])
        return table

    def spearman(self) -> dict[str, float]:
        """How well each method finds the known truth; empty where there is none for every client."""
        truth = self.truth
        if truth is None or not all(client in truth for client in self.clients):
            return {}
        return {name: assessment.spearman(truth) for name, assessment in self.assessments.items()}

    def to_json(self) -> str:
        """Everything, with null where a number is undefined."""
        found = self.spearman()
        return json.dumps(
            {
                "format": FORMAT,
                "version": VERSION,
                "clients": [client_to_json(client) for client in self.clients],
                "planted": None if self.truth is None else [self.truth.get(client) for client in self.clients],
                "methods": {
                    name: {
                        "assessment": json.loads(assessment.to_json()),
                        "seconds": self.seconds.get(name),
                        "evaluations": self.evaluations.get(name),
                        "peak_bytes": self.peak_bytes.get(name),
                        "spearman_with_planted": _known(found.get(name)),
                    }
                    for name, assessment in self.assessments.items()
                },
                "errors": dict(self.errors),
                "agreement": {
                    by: {one: {other: _known(value) for other, value in row.items()} for one, row in table.items()}
                    for by, table in (("spearman", self.agreement()), ("kendall", self.agreement("kendall")))
                },
            },
            indent=1,
            allow_nan=False,
        )

    def to_csv(self) -> str:
        """A row for each method and client, as `Assessment.to_csv` has them without the single rounds."""
        lines: list[list[str]] = []
        for name, assessment in self.assessments.items():
            head, *rows = csv.reader(io.StringIO(assessment.to_csv(), newline=""))
            keep = head.index("settings") + 1
            lines = lines or [["method", *(column for column in head[:keep] if column != "method"), *_COSTS]]
            place = head.index("method")
            costs = [self.seconds.get(name, ""), self.evaluations.get(name, ""), self.peak_bytes.get(name, "")]
            lines += [[name, *row[:place], *row[place + 1 : keep], *map(str, costs)] for row in rows]
        return "".join(map(csv_row, lines))

    def without_answer(self) -> dict[str, list[str]]:
        """The methods that gave no answer, by the reason.

        >>> Comparison({}, errors={"shapley": "it needs data", "banzhaf": "it needs data"}).without_answer()
        {'it needs data': ['shapley', 'banzhaf']}
        """
        found: dict[str, list[str]] = {}
        for name, reason in self.errors.items():
            found.setdefault(reason, []).append(name)
        return found

    def tables(self, width: int = 100) -> "list[RenderableType]":
        """Scores and ranks, agreement of the methods and cost, for a terminal of so many characters."""
        from fedcoast.methods.comparison_tables import tables

        return tables(self, width)

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from rich.text import Text

        yield from self.tables(options.max_width)
        for reason, names in self.without_answer().items():
            yield Text(f"no answer from {', '.join(names)}: {printable(reason)}")

    def __str__(self) -> str:
        return as_text(self)


def compare(
    rounds: Iterable[Round],
    assessors: Mapping[str, Assessor],
    truth: Mapping[Client, float] | None = None,
    measure_memory: bool = False,
    on_round: Callable[[Round], None] = lambda fl_round: None,
) -> Comparison:
    """Show the rounds, once, to all of these assessors, and put their answers side by side.

    A method that fails on a round is dropped with its reason; the others continue. `measure_memory` also follows what
    each method allocates in Python, which slows all of them down.

    >>> from fedcoast import CoAst, Round
    >>> from fedcoast.methods import Cosine
    >>> import numpy as np
    >>> zero, one = {"w": np.zeros(2)}, {"w": np.ones(2)}
    >>> fl_round = Round(1, start=zero, local={"helps": one, "idles": zero}, end={"w": np.ones(2) / 2})
    >>> compare([fl_round], {"cosine": Cosine()}).assessments["cosine"].ranking
    ('helps', 'idles')
    """
    for name, assessor in assessors.items():
        if not isinstance(name, str) or not isinstance(assessor, Assessor):
            raise BadSetting(f"methods to compare are assessors by name; got {name!r}: {type(assessor).__name__}")
    runners = {name: _Runner(assessor) for name, assessor in assessors.items()}
    with _tracing(measure_memory):
        for fl_round in rounds:
            for runner in runners.values():
                runner.observe(fl_round)
            on_round(fl_round)
        for runner in runners.values():
            runner.ask()
    answered = {name: runner for name, runner in runners.items() if runner.error is None}
    return Comparison(
        assessments={name: runner.answer for name, runner in answered.items() if runner.answer is not None},
        seconds={name: runner.seconds for name, runner in answered.items()},
        evaluations={name: count for name, runner in answered.items() if (count := runner.evaluations) is not None},
        peak_bytes={name: runner.peak for name, runner in answered.items()} if measure_memory else {},
        errors={name: runner.error for name, runner in runners.items() if runner.error is not None},
        truth=truth,
    )


class _Runner:
    """One method that observes the rounds, and the time and memory that it takes."""

    def __init__(self, assessor: Assessor) -> None:
        self.assessor = assessor
        self.answer: Assessment | None = None
        self.error: str | None = None
        self.seconds = 0.0
        self.peak = 0
        self._own_bytes = 0

    @property
    def evaluations(self) -> int | None:
        count = getattr(self.assessor, "evaluations", None)
        return count if isinstance(count, int) else None

    def observe(self, fl_round: Round) -> None:
        self._run(lambda: self.assessor.observe(fl_round), f"round {fl_round.number}")

    def ask(self) -> None:
        self._run(self._answer, "its answer")

    def _answer(self) -> None:
        answer = self.assessor.assessment()
        answer.to_json()  # what is no number would show only when the others' answers are written too
        self.answer = answer

    def _run(self, step: Callable[[], None], where: str) -> None:
        if self.error is not None:
            return
        traced, start = _traced(reset=True)[0], time.perf_counter()
        try:
            step()
        except Exception as error:  # whatever it is, the others go on
            reason = str(error) if isinstance(error, FedcoastError) else f"{type(error).__name__}: {error}"
            self.error = reason if where in reason else f"{where}: {reason}"
        self.seconds += time.perf_counter() - start
        after, peak = _traced()
        self.peak = max(self.peak, self._own_bytes + peak - traced)
        self._own_bytes += after - traced


@contextmanager
def _tracing(measure_memory: bool) -> Iterator[None]:
    ours = measure_memory and not tracemalloc.is_tracing()
    if ours:
        tracemalloc.start()
    try:
        yield
    finally:
        if ours:
            tracemalloc.stop()


def _traced(reset: bool = False) -> tuple[int, int]:
    """What Python holds now, and the most it held since the last reset; zeros unless tracing."""
    if reset and tracemalloc.is_tracing():
        tracemalloc.reset_peak()
    return tracemalloc.get_traced_memory()


def _known(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value
