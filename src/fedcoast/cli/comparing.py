"""`fedcoast compare`: every method on the same run."""

from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fedcoast.cli.answers import TOO_FEW_ROUNDS, BadUploads, Run, truth_of
from fedcoast.cli.screen import out, progress
from fedcoast.errors import BadSetting, FedcoastError, require
from fedcoast.methods import METHODS, Assessor
from fedcoast.methods.coalition.utility import Evaluator
from fedcoast.methods.comparison import compare as compare_rounds
from fedcoast.rounds.round import Policy, Round
from fedcoast.storage import read_about, replay
from fedcoast.storage.run_folder import is_run

Measure = Literal["loss", "accuracy"]


def compare(
    run: Run,
    methods: Annotated[
        str, typer.Option(help="Names separated by commas, or all whose needs the run can meet.")
    ] = "all",
    measure: Annotated[
        Measure, typer.Option(help="What a model is worth, for the methods that need to know; runs of the lab only.")
    ] = "loss",
    memory: Annotated[bool, typer.Option(help="Measure memory too, which slows all of them down a little.")] = True,
    bad_uploads: BadUploads = "quarantine",
    json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
    csv: Annotated[
        bool, typer.Option("--csv", help="Scores and ranks as CSV, a row for each method and client.")
    ] = False,
) -> None:
    """Ask several methods about a run, and hold their answers against each other.

    RUN is a recorded run, or a folder of checkpoints.
    """
    assessors, unavailable = prepare_methods(run, method_names(methods), measure, bad_uploads)
    with progress(total=None) as bar:

        def tell(fl_round: Round) -> None:
            bar(f"round {fl_round.number}, {len(fl_round.clients)} clients")

        answers = compare_rounds(replay(run), assessors, truth_of(run), measure_memory=memory, on_round=tell)
    comparison = replace(answers, errors=unavailable | dict(answers.errors))
    if not comparison.assessments:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in comparison.errors.items())
        raise BadSetting(f"no method has an answer about {run}. {reasons}")
    if json or csv:
        typer.echo(comparison.to_json() if json else comparison.to_csv(), nl=json)
    else:
        out().print(comparison)
    if not any(assessment.credits for assessment in comparison.assessments.values()):
        raise typer.Exit(TOO_FEW_ROUNDS)


def method_names(methods: str) -> list[str]:
    """The names that were asked for, each once.

    >>> method_names("cosine, norm,cosine")
    ['cosine', 'norm']
    """
    if methods.strip() == "all":
        return list(METHODS)
    names = list(dict.fromkeys(name.strip() for name in methods.split(",") if name.strip()))
    for name in names or [methods]:
        if name not in METHODS:
            near = get_close_matches(name, METHODS, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise BadSetting(f"methods must be all, or names among {', '.join(METHODS)}; got {name!r}{hint}")
    return names


def prepare_methods(
    run: Path, names: list[str], measure: Measure, bad_uploads: Policy
) -> tuple[dict[str, Assessor], dict[str, str]]:
    """The methods that can be asked, and why the others cannot."""
    assessors: dict[str, Assessor] = {}
    unavailable: dict[str, str] = {}
    evaluator: Evaluator | None = None
    for name in names:
        options: dict[str, Any] = {"bad_uploads": bad_uploads}
        try:
            if {"utility", "gradient"} & set(METHODS[name].needs):
                evaluator = evaluator or _evaluator(run, measure)  # one for all: what several ask about is judged once
                options["utility"] = evaluator
            assessors[name] = METHODS[name].make(**options)
        except FedcoastError as error:
            unavailable[name] = str(error)
    return assessors, unavailable


def _evaluator(run: Path, measure: Measure) -> Evaluator:
    if not is_run(run) or "experiment" not in read_about(run):
        raise BadSetting("it needs validation data, and only a run of the lab comes with some")
    for module in ("torch", "sklearn"):
        require(module, extra="lab")
    from fedcoast.simulation.utility import utility_for

    return Evaluator.of(utility_for(read_about(run), measure))
