"""Tables made again: which answers are missing, who gives them, and what is written of them."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from fedcoast.errors import FedcoastError
from fedcoast.simulation.experiment import Experiment
from fedcoast.storage.files import write_whole
from paper.cell_results import CellResult, find
from paper.cells import Table
from paper.claims import CLAIMS, claims, faults, lead
from paper.default_selection import default_cells, grid, shortlist
from paper.health import write_health
from paper.jobs import RUN, Job, Outcome, accuracy, recorded
from paper.method_specs import MethodSpec
from paper.pages import grids, ground, headline, page, refresh
from paper.pools import Submit
from paper.progress_table import ProgressTable, shown
from paper.records import loses, told, write_record
from paper.run_results import Facts, RunResults

ANSWERS = "answers"


@dataclass(frozen=True)
class Places:
    """Where things lie: recorded runs; results, that is tables and answers; pages that have parts to refresh."""

    runs: Path
    results: Path
    pages: tuple[Path, ...] = ()

    @property
    def answers(self) -> RunResults:
        """What was answered here, and what the tables here tell of runs that were answered elsewhere."""
        return RunResults(self.results / ANSWERS, told(self.results))


def missing(tables: Sequence[Table], places: Places, only_recorded: bool) -> list[list[Job]]:
    """The jobs that are left to do, a chain for each run: what is cheap first, then what needs a utility."""
    answers = places.answers
    wanted: dict[Experiment, dict[str, MethodSpec]] = {}
    for table in tables:
        for slot in table.slots:
            for run in table.runs(slot):
                questions = wanted.setdefault(run, {})
                questions.update((question.key(run), question) for question in slot.questions)
    chains = []
    for run, questions in wanted.items():
        trains = not recorded(run, places.runs)
        if only_recorded and trains:
            continue
        unknown = [question for question in questions.values() if answers.answer(run, question) is None]
        facts = answers.facts(run)
        unseen = facts is None or (bool(unknown) if trains else _trained_again(run, facts, places.runs))
        if unseen:  # what is known may be of another training, and answers of two do not mix
            unknown = list(questions.values())
        cheap = tuple(question for question in unknown if not question.judges)
        dear = tuple(question for question in unknown if question.judges)
        chain = [Job(run, places.runs, cheap, unseen, trains)] if cheap or unseen else []
        chain += [Job(run, places.runs, dear, trains=trains and not chain)] if dear else []
        if chain:
            chains.append(chain)
    return chains


def untrained(tables: Sequence[Table], places: Places) -> list[list[Job]]:
    """The jobs that train what is not recorded and ask nothing; the first seed of everything comes first."""
    runs = dict.fromkeys(run for table in tables for slot in table.slots for run in table.runs(slot))
    left = [run for run in runs if not recorded(run, places.runs)]
    return [[Job(run, places.runs, (), trains=True)] for run in sorted(left, key=lambda run: run.seed)]


def _trained_again(run: Experiment, facts: Facts, runs: Path) -> bool:
    """Whether the recorded run is another training than the one the facts are of. One that cannot be read is none."""
    try:
        return facts.accuracy != accuracy(run, runs)
    except FedcoastError:
        return False


def work(
    chains: Sequence[Sequence[Job]],
    submit: Submit,
    workers: int,
    answers: RunResults,
    console: Console,
    tell: Callable[[str], None],
) -> list[Outcome]:
    """Have all chains done, keeping every answer as soon as it is there."""
    kinds = {id(job): job.kind for chain in chains for job in chain}
    board = ProgressTable(list(kinds.values()), workers)
    outcomes: list[Outcome] = []
    with shown(board, console):
        waiting: dict[Future[Outcome], list[Job]] = {submit(chain[0]): list(chain) for chain in chains}
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                job, *later = waiting.pop(future)
                outcome = _result(future, job)
                for name, kept in outcome.kept.items():
                    answers.keep(outcome.job.experiment, name, kept)
                outcomes.append(outcome)
                tell(board.finished(kinds[id(job)], outcome))
                if later and outcome.runs:
                    waiting[submit(later[0])] = later
                else:
                    board.given_up([kinds[id(job)] for job in later])
    return outcomes


def _result(future: "Future[Outcome]", job: Job) -> Outcome:
    try:
        return future.result()
    except BrokenProcessPool:
        raise FedcoastError(
            "a worker process died, most likely killed by the system for want of memory; use fewer workers. What was"
            " answered is kept: the same command goes on"
        ) from None
    except Exception as error:  # a machine that was lost, a fault in a method: the other jobs go on
        return Outcome(job, errors={RUN: f"{type(error).__name__}: {error}"})


def write(tables: Sequence[Table], places: Places, command: Callable[[Table], str]) -> dict[str, list[CellResult]]:
    """Write every table's JSON and page, refresh the marked parts of other pages, and return what was written.

    A table on disk with numbers of runs that are not known here stays as it is, and is not returned. The health of the
    runs behind all tables there is written beside them.
    """
    answers = places.answers
    places.results.mkdir(parents=True, exist_ok=True)
    parts: dict[str, str] = {}
    found: dict[str, list[CellResult]] = {}
    for table in tables:
        findings, record = find(table, answers), places.results / f"{table.name}.json"
        if loses(record, findings):
            continue
        found[table.name] = findings
        write_record(record, table, findings, answers, command(table))
        text = page(table, findings, answers, command(table))
        write_whole(places.results / f"{table.name}.md", _writer(text))
        parts[table.name] = f"{ground(table, answers)}\n\n{grids(findings)}".replace("## ", "#### ")
        if table.name in ("tuning", "judgement"):
            parts[table.name] = f"{shortlist(findings)} {ground(table, answers)}"
            parts[f"{table.name} cells"] = default_cells(findings)
            parts[f"{table.name} grid"] = grid(findings)
        if table.name == "judgement":
            parts["judgement lead"] = lead(findings)
        if table.name == "table1":
            parts["headline"] = f"{headline(findings)} {ground(table, answers)}"
            parts["faults"] = faults(findings)
    if found.keys() >= {claim.table for claim in CLAIMS}:
        parts["claims"] = claims(found)
    for file in places.pages:
        refresh(file, parts)
    write_health(places.results, told(places.results))
    return found


def _writer(text: str) -> Callable[[Path], object]:
    return lambda file: file.write_text(text, encoding="utf-8")
