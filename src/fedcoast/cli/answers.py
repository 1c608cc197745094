"""`fedcoast assess` and `fedcoast import`: answers from a folder."""

from collections.abc import Mapping
from json import dumps, loads
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from fedcoast import Assessment, CoAst, Recorder, read_about, replay
from fedcoast.analysis.disagreement import UpdateAgreement
from fedcoast.analysis.health import health_of
from fedcoast.analysis.uncertainty import uncertainty
from fedcoast.analysis.verdicts import blind_spots, too_early, verdicts, verdicts_to_json
from fedcoast.cli.evidence import Evidence, flag_sentences
from fedcoast.cli.method_options import MethodOptions, takes_method_options
from fedcoast.cli.run_checks import FAILED, chain_holds
from fedcoast.cli.screen import one_format, out, print_csv, progress
from fedcoast.errors import BadSetting, Client
from fedcoast.integrations.ray import assess_on_ray
from fedcoast.integrations.round_capture import with_differences_added
from fedcoast.methods.text import printable
from fedcoast.reports.answer_table import answer_table
from fedcoast.rounds.round import Policy
from fedcoast.stats.ranking import spearman
from fedcoast.storage.replay import round_numbers
from fedcoast.storage.run_folder import ground_truth, is_run

TOO_FEW_ROUNDS = 4

Run = Annotated[Path, typer.Argument(show_default=False)]  # commands say what it is: no help of arguments is shown
BadUploads = Annotated[Policy, typer.Option(help="Leave a client with an unusable upload out of the round, or stop.")]
Flags = Annotated[bool, typer.Option("--flags/--no-flags", help="Also flag uploads that look unlike honest training.")]


@takes_method_options
def assess(
    run: Run,
    *,
    method: MethodOptions,
    ray: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on a Ray cluster: its address, or local.")
    ] = None,
    flags: Flags = True,
    json: Annotated[bool, typer.Option("--json", help="The whole answer as JSON.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="The whole answer as CSV.")] = False,
) -> None:
    """Rank the clients of a run by what they contributed.

    RUN is a recorded run, or a folder of checkpoints. Example: fedcoast assess runs/demo
    """
    one_format(json, csv)
    assessor = method.make(run)
    evidence = Evidence(flags)
    with progress(total=None) as bar:
        if ray is None:
            for fl_round in replay(run):
                assessor.observe(fl_round)
                evidence.observe(fl_round)
                bar(f"round {fl_round.number}, {len(fl_round.clients)} clients")
            assessment = assessor.assessment()
        elif not isinstance(assessor, CoAst):
            raise BadSetting(f"--ray works with CoAst only; leave out --ray or --method {method.method}")
        else:
            assessment = assess_on_ray(run, assessor, ray, lambda done, of: bar(f"shard {done} of {of}"))
    if assessment.credits and not assessment.counted:
        raise BadSetting(
            f"--score-rounds selects none of the {len(assessment.credits)} scored rounds; choose rounds among them"
        )
    health = evidence.health(run) if ray is None else health_of(run, dict.fromkeys(round_numbers(run)))
    if json:
        found = uncertainty(assessment) if assessment.credits else None
        added = verdicts_to_json(assessment, found, evidence.update_agreement if ray is None else None)
        whole = {**loads(assessment.to_json()), "verdicts": added, "health": health.to_json()}
        if flags and ray is None:
            whole["flags"] = [flag.to_json() for flag in evidence.flags]
        typer.echo(dumps(whole, indent=1, allow_nan=False))
    elif csv:
        print_csv(assessment.to_csv())
    else:
        show(assessment, truth_of(run), update_agreement=evidence.update_agreement)
        for sentence in (health.warning(printable), *flag_sentences(evidence.flags)):
            print_sentence(sentence)
    if not chain_holds(run, assessment.clients):
        raise typer.Exit(FAILED)
    if not assessment.credits:
        raise typer.Exit(TOO_FEW_ROUNDS)


def import_(
    source: Run,
    folder: Annotated[Path, typer.Argument(show_default=False)],
    bad_uploads: BadUploads = "quarantine",
    uploads: Annotated[
        Literal["models", "differences"], typer.Option(help="What clients sent: trained models, or what they changed.")
    ] = "models",
) -> None:
    """Turn SOURCE, a folder of checkpoints, into a recorded run in FOLDER.

    Example: fedcoast import checkpoints runs/imported
    """
    count = 0
    with Recorder(folder, bad_uploads=bad_uploads) as recorder, progress(total=None) as bar:
        for fl_round in replay(source, after=recorder.last_round):
            recorder.observe(fl_round if uploads == "models" else with_differences_added(fl_round))
            count += 1
            bar(f"round {fl_round.number}, {len(fl_round.clients)} clients")
    typer.echo(f"{count} rounds recorded in {printable(folder)}")


def show(
    assessment: Assessment,
    truth: Mapping[Client, float] | None,
    level: float = 0.90,
    update_agreement: UpdateAgreement | None = None,
) -> None:
    """Print an answer for people: what is certain first, then the ranking."""
    screen = out()
    found = uncertainty(assessment, level=level) if assessment.credits else None
    print_sentence(too_early(assessment, found))
    if not assessment.credits:
        waiting = ", ".join(map(str, assessment.pending)) or "none"
        screen.print(f"A round is scored by the rounds after it. Waiting: {waiting}.")
        return
    everyone = truth is not None and set(truth) == set(assessment.clients)
    screen.print(answer_table(assessment, found, verdicts(assessment, found), truth if everyone else None))
    for sentence in blind_spots(assessment, found, update_agreement):
        print_sentence(sentence)
    if truth is not None and everyone and len(truth) > 1:
        level_of = assessment.adjusted_mean
        adjusted = f", adjusted means {spearman([*truth.values()], [level_of[client] for client in truth]):+.2f}"
        screen.print(
            f"Agreement with the true order (Spearman): {assessment.spearman(truth):+.2f}"
            + (adjusted if assessment.needs_adjustment else "")
        )


def print_sentence(sentence: str) -> None:
    """Print a sentence, if there is one, with nothing in it taken for markup."""
    if sentence:
        out().print(Text(sentence), soft_wrap=True)


def truth_of(run: Path) -> dict[Client, float] | None:
    """The order that is known in a run of the lab, if one is."""
    return ground_truth(read_about(run)) if is_run(run) else None
