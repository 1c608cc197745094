"""The command line: parse, call one public function, print. Results on stdout, progress on stderr."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Annotated

import typer

from fedcoast import FedcoastError, MissingExtra, __version__
from fedcoast.cli import answers, auditing, comparing, data, lab, reporting, rewarding
from fedcoast.cli.screen import complain

REFUSED = 3
MISSING_EXTRA = 5

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Who contributed what in federated learning, without validation data.",
    epilog="Exit codes: 0 an answer, 1 a check that failed, 2 wrong usage, 3 input that cannot be used, "
    "4 too few rounds for an answer yet, 5 a missing extra, 130 interrupted.",
)
app.command()(answers.assess)
app.command()(comparing.compare)
app.command()(rewarding.rewards)
app.command()(reporting.report)
app.command()(reporting.serve)
app.command()(reporting.watch)
app.command()(auditing.verify)
app.command()(auditing.sign)
app.command("import")(answers.import_)
app.command()(lab.demo)
app.command()(lab.simulate)
app.add_typer(lab.app, name="lab")
app.add_typer(data.app, name="data")


def _version(show_version: bool) -> None:
    if show_version:
        typer.echo(f"fedcoast {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    with reporting_errors():
        app()


@contextmanager
def reporting_errors() -> Iterator[None]:
    """End the program with one line and an exit code, never a traceback, where fedcoast refuses something."""
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # names in files may not be valid text
    try:
        yield
    except MissingExtra as error:
        complain(error)
        sys.exit(MISSING_EXTRA)
    except FedcoastError as error:
        complain(error)
        sys.exit(REFUSED)
