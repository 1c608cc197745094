"""`fedcoast rewards`: from a run, or a saved answer, to what each client should get."""

from pathlib import Path
from typing import Annotated

import typer

from fedcoast import Assessment, BadFile, replay
from fedcoast.analysis import rewards as rules
from fedcoast.analysis.behaviour import Behaviour
from fedcoast.analysis.flags import flags_of
from fedcoast.analysis.money import amount, cents
from fedcoast.analysis.rewards import Rule
from fedcoast.analysis.uncertainty import By
from fedcoast.cli.answers import TOO_FEW_ROUNDS, Run, show
from fedcoast.cli.method_options import MethodOptions, takes_method_options
from fedcoast.cli.run_checks import FAILED, chain_holds
from fedcoast.cli.screen import complain, one_format, out, print_csv, progress
from fedcoast.storage.files import read_plain

PaidFor = Annotated[
    By,
    typer.Option(
        help="Pay for the total, for the mean per round taken part in, or for the mean adjusted for absences."
    ),
]


@takes_method_options
def rewards(
    run: Run,
    *,
    budget: Annotated[
        str | None, typer.Option(help="The amount to share, to the cent; without it, only shares are printed.")
    ] = None,
    rule: Annotated[Rule, typer.Option(help="From scores to shares.")] = "proportional",
    by: PaidFor = "total",
    temperature: Annotated[
        float, typer.Option(help="For softmax: a small value favours the best, a large one pays all equally.")
    ] = 1.0,
    floor: Annotated[float, typer.Option(help="The least share of a client that is paid.")] = 0,
    cap: Annotated[float, typer.Option(help="The largest share of a client.")] = 1,
    equal_pay_ties: Annotated[bool, typer.Option(help="Pay clients that cannot be told apart equally.")] = True,
    level: Annotated[float, typer.Option(help="Confidence of verdicts, ties and ranges.")] = 0.90,
    force: Annotated[bool, typer.Option("--force", help="Pay although too little is certain.")] = False,
    method: MethodOptions,
    flags: Annotated[
        bool, typer.Option("--flags/--no-flags", help="Name clients whose uploads look unlike honest training.")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="A row a client, as CSV.")] = False,
) -> None:
    """Share a budget among the clients by contribution. Idle and hurting clients are never paid, and are listed.

    RUN is a recorded run, a folder of checkpoints, or an answer of `fedcoast assess --json` or `--csv`.
    Example: fedcoast rewards runs/demo --budget 1000
    """
    one_format(json, csv)
    total = None if budget is None else cents(budget)  # before a long replay, not after
    behaviour = Behaviour() if flags else None
    assessment = answer(run, method, behaviour)
    if not assessment.credits and run.is_dir():
        show(assessment, None)
        raise typer.Exit(TOO_FEW_ROUNDS)
    paid = rules.rewards(
        assessment,
        budget=None if total is None else amount(total),
        rule=rule,
        by=by,
        temperature=temperature,
        floor=floor,
        cap=cap,
        level=level,
        equal_pay_ties=equal_pay_ties,
        force=force,
    )
    if json or csv:
        typer.echo(paid.to_json()) if json else print_csv(paid.to_csv())
    else:
        out().print(paid)
    for flag in () if behaviour is None else flags_of(behaviour):
        complain(f"Flagged: {flag.client}, {flag.kind}. {flag.evidence} This changed no amount: decide for yourself")
    if not chain_holds(run, assessment.clients):
        raise typer.Exit(FAILED)


def answer(run: Path, method: MethodOptions, behaviour: Behaviour | None = None) -> Assessment:
    """The assessment in a file, or the method's of a run; of a run, `behaviour` observes the rounds too."""
    if run.is_file():
        method.refuse(f"{run} is an answer; options of the method need the run")
        try:
            text = read_plain(run, follow=True).decode("utf-8")  # line ends as they are: a name may hold one
        except (OSError, UnicodeDecodeError) as error:
            raise BadFile(f"{run} is neither an assessment in JSON nor in CSV ({error})") from error
        return Assessment.from_csv(text) if run.suffix == ".csv" else Assessment.from_json(text)
    assessor = method.make(run)
    with progress(total=None) as bar:
        for fl_round in replay(run):
            assessor.observe(fl_round)
            if behaviour is not None:
                behaviour.observe(fl_round)
            bar(f"round {fl_round.number}, {len(fl_round.clients)} clients")
    return assessor.assessment()
