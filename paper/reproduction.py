"""Reproduce tables: find missing results, run the jobs, write records and pages."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from fedcoast.errors import FedcoastError
from fedcoast.simulation.experiment import Experiment
from fedcoast.storage.files import write_whole
from paper.cell_results import CellResult, fill
from paper.cells import Table
from paper.claims import CLAIMS, claims, default_margins, faults
from paper.default_selection import default_cells, holdout_summary, in_short
from paper.health import write_health
from paper.jobs import RUN, Job, Outcome, accuracy, recorded
from paper.method_specs import MethodSpec
from paper.pages import describe_configurations, grids, headline, page, refresh
from paper.pools import Submit
from paper.progress_table import ProgressTable, shown
from paper.records import loses, results_in_records, write_record
from paper.run_results import Facts, RunResults

RUN_RESULTS = "answers"  # the folder's name since the first records


@dataclass(frozen=True)
class Places:
    """Folders and files: recorded runs, results (tables and run results), pages with parts to regenerate."""

    runs: Path
    results: Path
    pages: tuple[Path, ...] = ()

    @property
    def run_results(self) -> RunResults:
        """Results computed here, and those that the tables here record of runs assessed elsewhere."""
        return RunResults(self.results / RUN_RESULTS, results_in_records(self.results))


def missing(tables: Sequence[Table], places: Places, only_recorded: bool) -> list[list[Job]]:
    """The jobs left to do, one chain per run: methods without utility first, then those that need one."""
    run_results = places.run_results
    wanted: dict[Experiment, dict[str, MethodSpec]] = {}
    for table in tables:
        for cell in table.cells:
            for run in table.runs(cell):
                specs = wanted.setdefault(run, {})
                specs.update((spec.key(run), spec) for spec in cell.specs)
    chains = []
    for run, specs in wanted.items():
        trains = not recorded(run, places.runs)
        if only_recorded and trains:
            continue
        unknown = [spec for spec in specs.values() if run_results.get(run, spec) is None]
        facts = run_results.facts(run)
        unseen = facts is None or (bool(unknown) if trains else _trained_again(run, facts, places.runs))
        if unseen:  # known results may belong to another training, and results of two trainings do not mix
            unknown = list(specs.values())
        without_utility = tuple(spec for spec in unknown if not spec.needs_utility)
        with_utility = tuple(spec for spec in unknown if spec.needs_utility)
        chain = [Job(run, places.runs, without_utility, unseen, trains)] if without_utility or unseen else []
        chain += [Job(run, places.runs, with_utility, trains=trains and not chain)] if with_utility else []
        if chain:
            chains.append(chain)
    return chains


def untrained(tables: Sequence[Table], places: Places) -> list[list[Job]]:
    """Jobs that only train what is not recorded; the first seed of every experiment comes first."""
    runs = dict.fromkeys(run for table in tables for cell in table.cells for run in table.runs(cell))
    left = [run for run in runs if not recorded(run, places.runs)]
    return [[Job(run, places.runs, (), trains=True)] for run in sorted(left, key=lambda run: run.seed)]


def _trained_again(run: Experiment, facts: Facts, runs: Path) -> bool:
    """Whether the recorded run is another training than that of the facts; False where it cannot be read."""
    try:
        return facts.accuracy != accuracy(run, runs)
    except FedcoastError:
        return False


def work(
    chains: Sequence[Sequence[Job]],
    submit: Submit,
    workers: int,
    run_results: RunResults,
    console: Console,
    print_line: Callable[[str], None],
) -> list[Outcome]:
    """Run all chains and keep every result as soon as it arrives."""
    kinds = {id(job): job.kind for chain in chains for job in chain}
    progress = ProgressTable(list(kinds.values()), workers)
    outcomes: list[Outcome] = []
    with shown(progress, console):
        waiting: dict[Future[Outcome], list[Job]] = {submit(chain[0]): list(chain) for chain in chains}
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                job, *later = waiting.pop(future)
                outcome = _result(future, job)
                for name, result in outcome.results.items():
                    run_results.keep(outcome.job.experiment, name, result)
                outcomes.append(outcome)
                print_line(progress.finished(kinds[id(job)], outcome))
                if later and outcome.is_usable:
                    waiting[submit(later[0])] = later
                else:
                    progress.skipped([kinds[id(job)] for job in later])
    return outcomes


def _result(future: "Future[Outcome]", job: Job) -> Outcome:
    try:
        return future.result()
    except BrokenProcessPool:
        raise FedcoastError(
            "a worker process died, most likely killed because memory ran out; use fewer workers. Finished"
            " results are kept: run the same command again to continue"
        ) from None
    except Exception as error:  # a lost machine or a fault in a method: the other jobs continue
        return Outcome(job, errors={RUN: f"{type(error).__name__}: {error}"})


def write(tables: Sequence[Table], places: Places, command: Callable[[Table], str]) -> dict[str, list[CellResult]]:
    """Write every table's JSON and page, regenerate the marked parts of other pages, and return what was written.

    A table on disk with numbers of runs that are unknown here is left unchanged and not returned. The health of the
    runs behind all tables is written beside them.
    """
    run_results = places.run_results
    places.results.mkdir(parents=True, exist_ok=True)
    parts: dict[str, str] = {}
    written: dict[str, list[CellResult]] = {}
    for table in tables:
        cell_results, record = fill(table, run_results), places.results / f"{table.name}.json"
        if loses(record, cell_results):
            continue
        written[table.name] = cell_results
        write_record(record, table, cell_results, run_results, command(table))
        text = page(table, cell_results, run_results, command(table))
        write_whole(places.results / f"{table.name}.md", _writer(text))
        parts[table.name] = f"{describe_configurations(table, run_results)}\n\n{grids(cell_results)}".replace(
            "## ", "#### "
        )
        if table.name == "holdout":
            parts["holdout"] = f"{holdout_summary(cell_results)} {describe_configurations(table, run_results)}"
            parts["holdout in short"] = in_short(cell_results)
            parts["holdout cells"] = default_cells(cell_results)
            parts["holdout margins"] = default_margins(cell_results)
        if table.name == "table1":
            parts["headline"] = f"{headline(cell_results)} {describe_configurations(table, run_results)}"
            parts["faults"] = faults(cell_results)
    if written.keys() >= {claim.table for claim in CLAIMS}:
        parts["claims"] = claims(written)
    for file in places.pages:
        refresh(file, parts)
    write_health(places.results, results_in_records(places.results))
    return written


def _writer(text: str) -> Callable[[Path], object]:
    return lambda file: file.write_text(text, encoding="utf-8")
