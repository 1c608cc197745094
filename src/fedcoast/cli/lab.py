"""`fedcoast demo`, `fedcoast simulate` and `fedcoast lab`: federations to try things on."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fedcoast import CoAst, Round, read_about, replay
from fedcoast.cli.answers import print_sentence, show
from fedcoast.cli.evidence import Evidence, flag_sentences
from fedcoast.cli.run_checks import with_head
from fedcoast.cli.screen import err, out, progress, try_next
from fedcoast.errors import BadSetting, require
from fedcoast.methods.text import printable
from fedcoast.simulation.names import check_names

if TYPE_CHECKING:
    from fedcoast.simulation.federation import Federation

app = typer.Typer(no_args_is_help=True, help="Build and inspect the lab's federations.")

Seed = Annotated[int, typer.Option(help="Seed of every random choice.")]
Dataset = Annotated[str, typer.Option(help="digits, cifar10, cifar100, stl10 or fashion-mnist.")]
Setting = Annotated[str, typer.Option(help="How the clients differ: quantity, noise, resolution, mask, …")]
Clients = Annotated[int, typer.Option(help="Number of clients; client 0 is the best.")]


def demo(
    seed: Seed = 0,
    file: Annotated[Path, typer.Option("--out", help="Where the report goes.")] = Path("runs/demo.html"),
    dataset: Annotated[
        Literal["digits", "heart", "brca"],
        typer.Option(help="Images with added noise, four hospitals, or six regions (in FEDCOAST_DATA)."),
    ] = "digits",
) -> None:
    """Train a small federation with a known true order, rank it with CoAst, and write a report.

    Example: fedcoast demo --dataset heart
    """
    if dataset != "digits":
        from fedcoast.cli.hospitals import hospital_demo

        return hospital_demo(dataset, seed, file)
    _require_lab()
    require("plotly", extra="report")
    from fedcoast.reports.assess_rounds import assess_rounds
    from fedcoast.reports.forms import write
    from fedcoast.simulation.federation import Federation
    from fedcoast.simulation.presets import preset
    from fedcoast.simulation.simulation import simulate

    federation = Federation(preset("quick", "digits", "mlp", setting="noise", seed=seed))
    experiment, truth, accuracy = federation.experiment, federation.ground_truth, list[float]()
    err().print(
        f"Training {experiment.clients} clients for {experiment.rounds} rounds on {federation.data.title};"
        " each client's images are noisier than the one before's."
    )
    with progress(experiment.rounds) as bar:
        folder = file.parent / ("demo" if seed == 0 else f"demo-{seed}")
        for _ in _finished(folder):
            bar("already trained")
        simulate(federation, folder, on_round=lambda fl_round: bar(_progress_line(fl_round)))
    data = assess_rounds(
        replay(folder),
        on_round=lambda fl_round: accuracy.append(fl_round.metrics["test accuracy"]),
        truth=truth,
        facts=read_about(folder),
        title="The demo",
    )
    show(data.assessment, truth, update_agreement=data.update_agreement)
    out().print(
        f"The shared model classifies {accuracy[-1]:.1%} of the test digits correctly; the scores used no test data.\n"
        f"{CoAst().config.score_meaning()} Clients that merely repeat the recent direction are discounted."
        " An idle client would score 0.\n"
        "Clients were ranked by these scores alone; the true rank says how clean their images are."
    )
    print_sentence(data.health.warning(printable))
    write(with_head(data, folder), file)
    out().print(f"The report: {file}. The run: {folder}. Try next:", soft_wrap=True)
    try_next(file.parent, folder)


def simulate(
    dataset: Dataset = "cifar10",
    model: Annotated[str, typer.Option(help="mlp, tiny-resnet, convnet, resnet4 or resnet18.")] = "tiny-resnet",
    setting: Setting = "noise",
    aggregation: Annotated[
        Literal["fedavg", "pruned", "sparse", "fedavgm", "fedadam"],
        typer.Option(help="How the server aggregates uploads."),
    ] = "fedavg",
    preset: Annotated[Literal["quick", "long", "paper"], typer.Option(help="How much training.")] = "quick",
    clients: Clients = 5,
    rounds: Annotated[int | None, typer.Option(help="Number of rounds (default: the preset's).")] = None,
    participation: Annotated[float, typer.Option(help="Share of the clients drawn for each round.")] = 1.0,
    weighting: Annotated[Literal["uniform", "samples"], typer.Option(help="Weights of the mean.")] = "uniform",
    seed: Seed = 0,
    runs: Annotated[Path, typer.Option("--out", help="The folder that holds the runs.")] = Path("runs"),
    record: Annotated[
        Literal["models", "ballots"], typer.Option(help="Record whole uploads, or only what CoAst needs (a sixteenth).")
    ] = "models",
    workers: Annotated[int, typer.Option(help="Processes that train clients; 0 is one per core.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda, …")] = "cpu",
) -> None:
    """Train a federation into a run folder; after an interruption the same command resumes it.

    Example: fedcoast simulate --dataset digits --model mlp
    """
    check_names(dataset, setting, model)
    _require_lab()
    from fedcoast.simulation.federation import Federation
    from fedcoast.simulation.presets import preset as sized
    from fedcoast.simulation.simulation import simulate

    changes: dict[str, Any] = {
        "setting": setting,
        "aggregation": aggregation,
        "clients": clients,
        "participation": participation,
        "weighting": weighting,
        "seed": seed,
    }
    experiment = sized(preset, dataset, model, **changes, **({} if rounds is None else {"rounds": rounds}))
    federation = Federation(experiment, workers or os.cpu_count() or 1, device)
    folder = runs / experiment.name
    with progress(experiment.rounds) as bar:
        for _ in _finished(folder):
            bar("already trained")
        simulate(
            federation,
            folder,
            ballot_keep=experiment.keep if record == "ballots" else None,
            on_round=lambda fl_round: bar(_progress_line(fl_round)),
        )
    _summarise(federation, folder)


def _finished(folder: Path) -> range:
    return range(len(list((folder / "rounds").glob("[0-9]*"))))


def _summarise(federation: "Federation", folder: Path) -> None:
    assessor, accuracy = CoAst(keep=federation.experiment.keep), float("nan")
    evidence = Evidence()
    for fl_round in replay(folder):
        assessor.observe(fl_round)
        evidence.observe(fl_round)
        accuracy = fl_round.metrics["test accuracy"]
    show(assessor.assessment(), federation.ground_truth, update_agreement=evidence.update_agreement)
    out().print(f"Test accuracy of the shared model after round {assessor.last_round}: {accuracy:.3f}")
    for sentence in (evidence.health(folder).line(printable), *flag_sentences(evidence.flags)):
        print_sentence(sentence)
    out().print(f"Recorded in {folder}", soft_wrap=True)


def _progress_line(fl_round: Round) -> str:
    return f"round {fl_round.number}, test accuracy {fl_round.metrics['test accuracy']:.3f}"


@app.command()
def attack(
    name: Annotated[str, typer.Argument(show_default=False)],
    client: Annotated[int, typer.Option(help="The (first) client that attacks.")] = 2,
    dataset: Dataset = "digits",
    model: Annotated[str, typer.Option(help="mlp, deep-mlp, tiny-resnet, convnet, resnet4 or resnet18.")] = "deep-mlp",
    setting: Setting = "noise",
    preset: Annotated[Literal["quick", "long", "paper"], typer.Option(help="How much training.")] = "quick",
    clients: Clients = 5,
    rounds: Annotated[int | None, typer.Option(help="Number of rounds (default: the preset's).")] = None,
    seed: Seed = 0,
    runs: Annotated[Path, typer.Option("--out", help="The folder that holds the runs.")] = Path("runs"),
    workers: Annotated[int, typer.Option(help="Processes that train clients; 0 is one per core.")] = 0,
) -> None:
    """Train a federation in which a client attacks, into a run folder.

    NAME is the attack, such as echo or steering; list prints all of them. Example: fedcoast lab attack echo
    """
    from fedcoast.simulation.attacks import ATTACKS, attack_named

    if name == "list":
        for known, what in ATTACKS.items():
            out().print(f"{known:<16} {what.description}", soft_wrap=True)
        return
    chosen = attack_named(name)
    check_names(dataset, setting, model)
    _require_lab()
    from fedcoast.simulation.federation import Federation
    from fedcoast.simulation.presets import preset as sized
    from fedcoast.simulation.simulation import simulate

    changes: dict[str, Any] = {"setting": setting, "clients": clients, "seed": seed, "attack": name, "attacker": client}
    experiment = sized(preset, dataset, model, **changes, **({} if rounds is None else {"rounds": rounds}))
    federation = Federation(experiment, workers or os.cpu_count() or 1)
    folder = runs / experiment.name
    with progress(experiment.rounds) as bar:
        for _ in _finished(folder):
            bar("already trained")
        simulate(federation, folder, on_round=lambda fl_round: bar(_progress_line(fl_round)))
    _summarise(federation, folder)
    identities = ", ".join(map(str, chosen.identities(client, clients)))
    out().print(f"Attack {name} ({chosen.description}), by client {identities}", soft_wrap=True)


@app.command()
def samples(
    dataset: Dataset = "cifar10",
    setting: Setting = "noise",
    clients: Clients = 5,
    seed: Seed = 0,
    file: Annotated[Path | None, typer.Option("--out", help="The PNG file (default: DATASET-SETTING.png).")] = None,
) -> None:
    """Draw sample images as each client sees them.

    Example: fedcoast lab samples --dataset digits --setting mask
    """
    check_names(dataset, setting)
    _require_lab()
    from fedcoast.simulation.datasets import load
    from fedcoast.simulation.sample_grid import sample_grid, save
    from fedcoast.simulation.settings import setting_named

    target = file or Path(f"{dataset}-{setting}.png")
    if target.suffix.lower() != ".png":
        raise BadSetting(f"the sample grid is written as PNG; got {target.name!r}")
    save(sample_grid(load(dataset).train_images, setting_named(setting), clients, seed), target)
    typer.echo(str(target))


def _require_lab() -> None:
    for module in ("torch", "sklearn"):
        require(module, extra="lab")
