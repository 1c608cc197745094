"""`fedcoast data`: list, fetch and check datasets. Results go to stdout, progress to stderr."""

from pathlib import Path
from typing import Annotated

import typer

from fedcoast.simulation import datasets

app = typer.Typer(no_args_is_help=True, help="List, fetch and check the lab's datasets.")

Name = Annotated[str, typer.Argument(show_default=False)]
NAMES = f"NAME is one of: {', '.join(datasets.NAMES)}."
Root = Annotated[
    Path | None,
    typer.Option(help="The folder with the data ($FEDCOAST_DATA, else the user's cache).", show_default=False),
]


@app.command("list")
def list_(root: Root = None) -> None:
    """List the datasets and where they are."""
    for line in datasets.available(root):
        typer.echo(f"{line.name:<14} {line.state:<11} {line.title:<28} {line.where}")


@app.command(epilog=NAMES)
def get(name: Name, root: Root = None) -> None:
    """Fetch a dataset, checked against its published checksum."""
    place = datasets.fetch(name, root)
    typer.echo(f"{name}: {place or 'part of scikit-learn, nothing to fetch'}")


@app.command(epilog=NAMES)
def check(name: Name, root: Root = None) -> None:
    """Compare your copy with the published files; the exit code is 1 if any is missing or differs."""
    rows = datasets.check(name, root)
    for row in rows:
        typer.echo(f"{row.status:<10} {row.file}: {row.detail}")
    if any(row.status != "published" for row in rows):
        raise typer.Exit(1)
