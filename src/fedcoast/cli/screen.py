"""The two streams of a terminal program: answers on stdout, everything else on stderr."""

import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from fedcoast.errors import printable

Bar = Callable[[str], None]


def program() -> str:
    """The command that runs this program again from here: a name on the PATH, a path, or python -m fedcoast.

    A Makefile runs the program of an environment that its user may never activate.
    """
    started = Path(sys.argv[0])
    if started.name == "__main__.py":
        return f"{shlex.quote(_short_path(Path(sys.executable)))} -m fedcoast"
    found = shutil.which(started.name)
    if found is not None and Path(found).absolute() == started.absolute():
        return shlex.quote(started.name)
    return shlex.quote(_short_path(started))


def _short_path(path: Path) -> str:
    """Relative where the path lies below the current folder."""
    whole, here = path.absolute(), Path.cwd()
    return str(whole.relative_to(here)) if whole.is_relative_to(here) else str(whole)


def try_next(runs: Path, run: Path) -> None:
    """Three commands to try next on a run, as they can be typed here."""
    for command in (f"serve {quoted(runs)}", f"assess {quoted(run)}", f"rewards {quoted(run)} --budget 1000"):
        out().print(Text(f"  {program()} {command}"), soft_wrap=True)


def quoted(path: Path) -> str:
    return shlex.quote(str(path))


def out() -> Console:
    """Where answers go. A pipe has no width, so nothing is cut or folded there; NO_COLOR is respected."""
    return Console(width=None if sys.stdout.isatty() else 200, highlight=False, soft_wrap=not sys.stdout.isatty())


def err() -> Console:
    return Console(stderr=True, highlight=False)


def complain(error: object) -> None:
    err().print(Text(f"fedcoast: {printable(error)}"), soft_wrap=True)


def one_format(json: bool, csv: bool) -> None:
    """Refuse to print two formats into one stream."""
    if json and csv:
        raise typer.BadParameter("--json and --csv exclude each other; choose one")


def print_csv(text: str) -> None:
    """CSV as it is into a pipe or a file; on a terminal nothing in it can move the cursor or forge a line's colour."""
    if sys.stdout.isatty():
        text = "".join(c if c == "\n" else printable(c) for c in text)
    sys.stdout.write(text)


@contextmanager
def progress(total: int | None) -> Iterator[Bar]:
    """A bar with the time left, on a terminal; nothing in a pipe or a log."""
    console = err()
    if not console.is_terminal:  # rich before 14 ends even a bar that is disabled with an empty line
        yield lambda text: None
        return
    words = TextColumn("{task.description}")
    columns = (words, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as p:
        task = p.add_task("rounds", total=total)
        yield lambda text: p.update(task, advance=1, description=text)
