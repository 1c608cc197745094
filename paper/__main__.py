"""`python -m paper`: the CoAst paper's tables, reproduced."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fedcoast.cli import reporting_errors
from fedcoast.cli.screen import err, out
from fedcoast.errors import BadSetting, require

if TYPE_CHECKING:
    from paper.cell_results import CellResult
    from paper.cells import Table


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def reproduce(
    tables: Annotated[list[str], typer.Argument(help="Which: table1 … table6, beyond, holdout, or all.")],
    preset: Annotated[
        Literal["smoke", "quick", "long", "paper"], typer.Option(help="How much training; smoke is digits, in seconds.")
    ] = "quick",
    seeds: Annotated[int, typer.Option(help="Runs of each experiment: seeds 0, 1, …")] = 3,
    runs: Annotated[Path, typer.Option(help="Where run folders are, and new ones go to.")] = Path("runs"),
    results: Annotated[
        Path | None, typer.Option(help="Where results, JSON and pages go (default: results, or results/PRESET).")
    ] = None,
    only_recorded: Annotated[
        bool, typer.Option("--only-recorded", help="Train nothing: use only the runs that are recorded.")
    ] = False,
    train_only: Annotated[
        bool, typer.Option("--train-only", help="Train the missing runs and stop; no method is run.")
    ] = False,
    workers: Annotated[int, typer.Option(help="Processes, one core each (0: one a core).")] = 0,
    ray: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster that does the work; local starts one.")
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="Where pictures go (default: images, beside the results).")
    ] = None,
    page: Annotated[
        list[Path] | None, typer.Option(help="A page whose marked parts (<!-- begin: table1 -->) are regenerated.")
    ] = None,
) -> None:
    """Train the missing runs of the paper's tables, run all methods, and write our numbers beside the published ones.

    TABLES are table1 … table6, beyond, holdout, or all. After an interruption the same command continues;
    nothing that was trained or computed is done again.
    """
    for module, extra in (("torch", "lab"), ("sklearn", "lab"), ("matplotlib", "plots")):
        require(module, extra=extra)
    from paper.paper_tables import TABLES
    from paper.plots import draw
    from paper.pools import processes, ray_cluster
    from paper.reproduction import Places, missing, untrained, work, write

    if only_recorded and train_only:
        raise BadSetting("--only-recorded trains nothing and --train-only only trains; give one of them")
    if seeds < 1:
        raise BadSetting(f"seeds must be at least 1; got {seeds}")
    for name in tables:
        if name not in (*TABLES, "all"):
            raise BadSetting(f"tables are {', '.join(TABLES)}, or all; got {name!r}")
    names = list(TABLES) if "all" in tables else list(dict.fromkeys(tables))
    wanted = [TABLES[name](preset, tuple(range(seeds))) for name in names]
    results = results or (Path("results") if preset == "quick" else Path("results") / preset)
    places = Places(runs, results, tuple(page or ()))
    chains = untrained(wanted, places) if train_only else missing(wanted, places, only_recorded)
    screen = err()
    if chains:
        count = workers or os.cpu_count() or 1
        with ray_cluster(ray) if ray else processes(min(count, len(chains))) as submit:
            work(chains, submit, count, places.run_results, screen, lambda line: screen.print(line, soft_wrap=True))
    if train_only:
        out().print(f"{len(chains)} runs were missing; recorded runs are in {runs}")
        return

    def command(table: "Table") -> str:
        recorded = " --only-recorded" if only_recorded else ""
        return f"python -m paper {table.name} --preset {preset} --seeds {seeds}{recorded}"

    found = write(wanted, places, command)
    pictured = [table for table in wanted if table.name in found]
    _, not_drawn = draw(pictured, found, places.run_results, images or results / "images")
    _print_summary(found, not_drawn, [name for name in names if name not in found], results)


def _print_summary(found: "dict[str, list[CellResult]]", not_drawn: list[Path], left: list[str], results: Path) -> None:
    """Print what was written, which pictures were not drawn, and which tables were left unchanged."""
    for name, cells in found.items():
        filled = sum(bool(cell_result.values) for cell_result in cells)
        out().print(f"{results / name}.md: {filled} of {len(cells)} cells filled")
    if not_drawn:
        out().print(
            f"not drawn: {', '.join(file.name for file in not_drawn)}; they show credits by round, which the tables"
            " do not contain. Give another folder as --results to compute all of them again"
        )
    if left:
        files = ", ".join(f"{name}.json" for name in left)
        raise BadSetting(
            f"not overwritten, because they contain numbers that these seeds and runs do not provide: {files} in"
            f" {results}; request as many seeds as they have, give another folder as --results, or delete them"
        )


if __name__ == "__main__":
    with reporting_errors():
        app(prog_name="python -m paper")
