"""`fedcoast report`, `fedcoast serve` and `fedcoast watch`: answers to show to others."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fedcoast import BadSetting, read_about, replay
from fedcoast.analysis.health import health_of
from fedcoast.analysis.rewards import Rule
from fedcoast.cli.answers import TOO_FEW_ROUNDS, Run, truth_of
from fedcoast.cli.method_choice import method_names, prepare_methods
from fedcoast.cli.method_options import MethodOptions, takes_method_options
from fedcoast.cli.rewarding import PaidFor, answer
from fedcoast.cli.run_checks import FAILED, chain_holds, with_head
from fedcoast.cli.screen import err, out, progress
from fedcoast.errors import printable, require
from fedcoast.reports.assess_rounds import assess_rounds, build_report
from fedcoast.reports.following import RunFollower
from fedcoast.reports.forms import form_of, write
from fedcoast.reports.report_data import ReportData, title_of
from fedcoast.storage.run_folder import is_run

Form = Literal["html", "md", "csv", "json", "png"]
Title = Annotated[str | None, typer.Option(help="The title (default: the run's name).")]


@takes_method_options
def report(
    run: Run,
    file: Annotated[Path | None, typer.Option("--out", "-o", help="The file (default: report.html).")] = None,
    form: Annotated[
        Form | None, typer.Option("--format", help="The form, if the ending of the file does not say it.")
    ] = None,
    *,
    method: MethodOptions,
    methods: Annotated[str, typer.Option(help="Other methods to compare with, separated by commas, or all.")] = "",
    level: Annotated[float, typer.Option(help="Confidence of the ranges.")] = 0.90,
    rule: Annotated[Rule, typer.Option(help="From scores to shares.")] = "proportional",
    by: PaidFor = "total",
    budget: Annotated[str | None, typer.Option(help="The amount to share, to the cent.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Share the budget even if the evidence is too weak.")] = False,
    title: Title = None,
) -> None:
    """Write a report as one file that opens anywhere: HTML, Markdown, CSV, JSON or PNG.

    RUN is a recorded run, a folder of checkpoints, or an answer of `fedcoast assess --json` or `--csv`.
    Example: fedcoast report runs/demo -o report.html
    """
    target = file or Path(f"report.{form or 'html'}")
    if form_of(target, form) in ("html", "png"):  # before a long run is read, not after
        require("plotly", extra="report")
    options: dict[str, Any] = {"level": level, "rule": rule, "by": by, "budget": budget, "force": force}
    options["title"] = title or (run.stem if run.is_file() else title_of(run))
    if run.is_file():
        if methods:
            raise BadSetting(f"{run} is an answer; --methods needs the run")
        data = build_report(answer(run, method), **options)
    else:
        data = _report_on(run, method, methods, options)
    holds = chain_holds(run, data.assessment.clients)
    write(data if holds else replace(data, head=""), target, form)  # no head that this answer does not follow from
    typer.echo(printable(target))
    if not holds:
        raise typer.Exit(FAILED)
    if not data.rounds:
        raise typer.Exit(TOO_FEW_ROUNDS)


@takes_method_options
def serve(
    run: Run,
    host: Annotated[str, typer.Option(help="The address to listen on; other machines need a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 picks a free port.")] = 8471,
    token_file: Annotated[
        Path | None, typer.Option(help="A file with the token that every request must bring; or set FEDCOAST_TOKEN.")
    ] = None,
    *,
    method: MethodOptions,
    title: Title = None,
) -> None:
    """Show a run in browsers while it grows, or all runs of a folder; Ctrl-C ends it.

    RUN is a recorded run, a folder of checkpoints, or a folder of runs; a run need not be there yet.
    Example: fedcoast serve runs
    """
    for module in ("plotly", "starlette", "uvicorn"):
        require(module, extra="report")
    from fedcoast.reports import many_runs
    from fedcoast.reports.live import read_token, serve, serve_application

    token = read_token(token_file)

    def ready(address: str) -> None:
        err().print(f"{address}  (Ctrl-C stops it)", soft_wrap=True)

    if many_runs.find_runs(run):
        runs = many_runs.OpenRuns(run, lambda place: _follower(place, method, None))
        serve_application(lambda closing: many_runs.application(runs, token, closing), host, port, token, ready)
    else:
        _check_parent(run)
        serve(_follower(run, method, title), host, port, token, ready)


@takes_method_options
def watch(
    run: Run,
    once: Annotated[bool, typer.Option("--once", help="Print the current state and exit.")] = False,
    *,
    method: MethodOptions,
    title: Title = None,
) -> None:
    """Show a run in the terminal while it grows; Ctrl-C ends it.

    RUN is the folder of a recorded run, or of checkpoints; it need not be there yet. Example: fedcoast watch runs/demo
    """
    from fedcoast.reports.terminal import watch

    _check_parent(run)
    watch(_follower(run, method, title), out(), until=lambda: once)


def _check_parent(run: Path) -> None:
    """The run may not exist yet, but its parent folder must: otherwise the path is mistyped."""
    if not run.exists() and not run.resolve().parent.is_dir():
        raise BadSetting(f"{run} cannot be followed: the folder {run.resolve().parent} does not exist; check the path")


def _follower(run: Path, method: MethodOptions, title: str | None) -> RunFollower:
    return RunFollower(run, lambda: method.make(run, track_layers=True), title or "")


def _report_on(run: Path, method: MethodOptions, methods: str, options: dict[str, Any]) -> ReportData:
    assessor = method.make(run, track_layers=True)
    names = [name for name in (method_names(methods) if methods else []) if name != assessor.method]
    others, unavailable = prepare_methods(run, names, "loss", method.bad_uploads, method.utility)
    with progress(total=None) as bar:
        data = assess_rounds(
            replay(run),
            assessor,
            others,
            unavailable,
            on_round=lambda fl_round: bar(f"round {fl_round.number}, {len(fl_round.clients)} clients"),
            facts=read_about(run) if is_run(run) else {},
            truth=truth_of(run),
            **options,
        )
    data = replace(data, health=health_of(run, data.health.shares))
    return data if assessor.last_round is None else with_head(data, run, assessor.last_round)
