"""`fedcoast verify`: is a run what was recorded, and do answers and reports follow from it?"""

import json as form
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from fedcoast.audit import Verification
from fedcoast.audit import verify as audit
from fedcoast.cli.run_checks import FAILED
from fedcoast.cli.screen import out
from fedcoast.methods.text import printable

Files = list[Path] | None


def verify(
    run: Annotated[Path, typer.Argument(help="A recorded run.", show_default=False)],
    report: Annotated[Files, typer.Option(help="A report of this run, HTML or JSON; may be repeated.")] = None,
    answer: Annotated[Files, typer.Option(help="An answer of `fedcoast assess --json`; may be repeated.")] = None,
    state: Annotated[Files, typer.Option(help="A saved assessor (its ledger), NAME.state; may be repeated.")] = None,
    head: Annotated[str | None, typer.Option(help="A head that was kept: the chain must pass through it.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
) -> None:
    """Recompute every hash of a run, and the scores behind its reports, answers and ledgers; name what differs.

    RUN is a recorded run.
    """
    found = audit(run, [*(report or ()), *(answer or ()), *(state or ())], head)
    if json:
        typer.echo(form.dumps(found.to_json(), indent=1))
    else:
        for line in _told(found):
            out().print(Text(printable(line)), soft_wrap=True)
    if not found.agrees:
        raise typer.Exit(FAILED)


def _told(found: Verification) -> list[str]:
    lines = [f"DIFFERS: {finding}" for finding in found.findings]
    if found.uncovered:
        lines.append(_uncovered(found))
    lines += [f"agrees: {sentence}" for sentence in found.confirmed]
    lines += [f"not checked: {file}, since the recording is not what it was" for file in found.unchecked]
    lines += [f"outside of the chain: {path} ({why})" for path, why in found.outside.items()]
    if found.head is not None:
        where = "before the first round" if found.last_round is None else f"after round {found.last_round}"
        lines.append(f"head {where}: {found.head}")
    if found.agrees:
        size = f"{found.rounds:,} rounds, {found.files:,} files, {found.bytes:,} bytes"
        lines.append(f"{found.folder} is as it was recorded: {size}.")
    else:
        count = len(found.findings)
        lines.append(
            f"{found.folder} could not be verified" + (f": {count} difference{'s' * (count > 1)}." if count else ".")
        )
    return lines


def _uncovered(found: Verification) -> str:
    if len(found.uncovered) == found.rounds:
        return "This run carries no chain: it was recorded by a fedcoast that kept none. Nothing covers its rounds."
    first, last = found.uncovered[0], found.uncovered[-1]
    return f"Rounds {first} to {last} were recorded before the chain began, and nothing covers them."
