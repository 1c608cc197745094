"""`fedcoast demo --dataset heart` and `brca`: hospitals with their own data, compared with retraining."""

from pathlib import Path

from fedcoast import Recorder, read_about, replay
from fedcoast.cli.answers import show
from fedcoast.cli.run_checks import with_head
from fedcoast.cli.screen import err, out, progress, try_next
from fedcoast.errors import require
from fedcoast.simulation.datasets.brca import load_brca
from fedcoast.simulation.datasets.heart import load_heart
from fedcoast.simulation.site_federation import SiteExperiment, SiteFederation, retraining_shapley

TABLES = {"heart": load_heart, "brca": load_brca}
EXPERIMENTS = {"heart": SiteExperiment(), "brca": SiteExperiment(model="linear", batch=64, learning_rate=0.03)}


def hospital_demo(dataset: str, seed: int, file: Path) -> None:
    """Train the sites together, rank them by what the server saw, and compare with retraining every coalition."""
    require("plotly", extra="report")
    from dataclasses import asdict, replace

    from fedcoast.reports.assess_rounds import assess_rounds
    from fedcoast.reports.forms import write

    table, experiment = TABLES[dataset](), replace(EXPERIMENTS[dataset], seed=seed)
    federation = SiteFederation(table, experiment)
    patients = ", ".join(f"{name} {len(table.rows_of(site))}" for site, name in enumerate(table.sites))
    err().print(f"{table.title}: training on patients of {patients}.")
    metrics: dict[str, float] = {}
    facts = {"site_experiment": asdict(experiment), "dataset": table.title}
    folder = file.parent / (f"demo-{dataset}" if seed == 0 else f"demo-{dataset}-{seed}")
    with progress(experiment.rounds) as bar, Recorder(folder, about=facts) as recorder:
        for fl_round in federation if (recorder.last_round or 0) < experiment.rounds else ():
            if fl_round.number > (recorder.last_round or 0):
                recorder.observe(fl_round)
            bar(f"round {fl_round.number}")
    data = assess_rounds(
        replay(folder),
        on_round=lambda view: metrics.update(view.metrics),
        facts=read_about(folder),
        title=table.title,
    )
    show(data.assessment, None, update_agreement=data.update_agreement)
    quality = "test accuracy" if table.task == "classification" else "concordance"
    out().print(f"On patients that no site trained on, the shared model has a {quality} of {metrics[quality]:.3f}.")
    err().print(f"Retraining all {2 ** len(table.sites)} coalitions to measure what each site is worth …")
    for average, worth in retraining_shapley(table, experiment).items():
        order = ", ".join(f"{site} {value:+.3f}" for site, value in sorted(worth.items(), key=lambda item: -item[1]))
        whom = "each patient has the same weight" if average == "pooled" else "each site has the same weight"
        out().print(f"Retraining, {whom}: {order}", soft_wrap=True)
    write(with_head(data, folder), file)
    out().print(
        "The scores used no test data. One training says little: docs/natural-federations.md has 20 of each.\n"
        f"The report: {file}. The run: {folder}. Try next:",
        soft_wrap=True,
    )
    try_next(file.parent, folder)
