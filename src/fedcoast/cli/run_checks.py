"""Checks of a run that commands make: whether its chain holds, its head, and which names look the same."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from fedcoast.audit.chain_check import ChainReport, check_chain
from fedcoast.cli.screen import complain
from fedcoast.errors import Client, FedcoastError
from fedcoast.reports.report_data import ReportData
from fedcoast.rounds.clients import look_alikes
from fedcoast.storage.chain import head
from fedcoast.storage.run_folder import is_run

FAILED = 1  # the exit code


def chain_holds(run: Path, clients: Iterable[Client] = ()) -> bool:
    """Recompute the chain of a recorded run and report changes on stderr. Other folders have no chain."""
    for group in look_alikes(clients):
        complain(f"Names that look alike: {', '.join(map(ascii, group))}; they are counted as different clients")
    if not run.is_dir() or not is_run(run):
        return True
    try:
        chain = check_chain(run)
    except (FedcoastError, OSError) as error:
        complain(f"WARNING: the chain of {run} cannot be checked: {error}")
        return False
    if chain.findings:
        complain(_warning(run, chain))
    return not chain.findings


def with_head(report: ReportData, run: Path, last_round: int | None = None) -> ReportData:
    """The report with the head of its run after its last round, if the run has a chain."""
    chain = head(run, last_round) if is_run(run) else None
    return report if chain is None else replace(report, head=chain[1])


def _warning(run: Path, chain: ChainReport) -> str:
    count = len(chain.findings)
    more = f" and {count - 1} more differences" if count > 1 else ""
    return (
        f"WARNING: {run} is not as it was recorded ({chain.findings[0]}{more}), so this answer may be wrong;"
        f" fedcoast verify {run} names everything"
    )
