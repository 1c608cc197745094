"""`fedcoast compare`: every method on the same run."""

from dataclasses import replace
from typing import Annotated

import typer

from fedcoast.cli.answers import TOO_FEW_ROUNDS, BadUploads, Run, truth_of
from fedcoast.cli.method_choice import Measure, OwnUtility, method_names, prepare_methods
from fedcoast.cli.screen import one_format, out, print_csv, progress
from fedcoast.errors import BadSetting
from fedcoast.methods.comparison import compare as compare_rounds
from fedcoast.rounds.round import Round
from fedcoast.storage import replay


def compare(
    run: Run,
    methods: Annotated[
        str,
        typer.Option(help="Names separated by commas, or all (methods that cannot run are listed with the reason)."),
    ] = "all",
    measure: Annotated[
        Measure, typer.Option(help="What methods with a utility measure; only for runs of the lab.")
    ] = "loss",
    utility: OwnUtility = None,
    memory: Annotated[bool, typer.Option(help="Measure memory too, which slows all methods down a little.")] = True,
    bad_uploads: BadUploads = "quarantine",
    json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
    csv: Annotated[
        bool, typer.Option("--csv", help="Scores and ranks as CSV, a row for each method and client.")
    ] = False,
) -> None:
    """Run several methods on the same rounds and compare their answers.

    RUN is a recorded run, or a folder of checkpoints. Example: fedcoast compare runs/demo --methods coast,cosine
    """
    one_format(json, csv)
    assessors, unavailable = prepare_methods(run, method_names(methods), measure, bad_uploads, utility)
    with progress(total=None) as bar:

        def tell(fl_round: Round) -> None:
            bar(f"round {fl_round.number}, {len(fl_round.clients)} clients")

        answers = compare_rounds(replay(run), assessors, truth_of(run), measure_memory=memory, on_round=tell)
    comparison = replace(answers, errors=unavailable | dict(answers.errors))
    if not comparison.assessments:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in comparison.errors.items())
        raise BadSetting(f"no method has an answer about {run}. {reasons}")
    if json or csv:
        typer.echo(comparison.to_json()) if json else print_csv(comparison.to_csv())
    else:
        out().print(comparison)
    if not any(assessment.credits for assessment in comparison.assessments.values()):
        raise typer.Exit(TOO_FEW_ROUNDS)
