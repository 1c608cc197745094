"""`fedcoast demo --dataset heart` and `brca`: hospitals that hold what they hold, held against retraining."""

from pathlib import Path

from fedcoast.cli.answers import show
from fedcoast.cli.screen import err, out, progress
from fedcoast.errors import require
from fedcoast.rounds import Round
from fedcoast.rounds.unmoved import with_unmoved
from fedcoast.simulation.datasets.brca import load_brca
from fedcoast.simulation.datasets.heart import load_heart
from fedcoast.simulation.site_federation import SiteExperiment, SiteFederation, retraining_shapley

TABLES = {"heart": load_heart, "brca": load_brca}
EXPERIMENTS = {"heart": SiteExperiment(), "brca": SiteExperiment(model="linear", batch=64, learning_rate=0.03)}


def hospital_demo(dataset: str, seed: int, file: Path) -> None:
    """Train the sites together, rank them by what the server saw, and say what retraining without them says."""
    require("plotly", extra="report")
    from dataclasses import asdict, replace

    from fedcoast.reports.assess_rounds import assess_rounds
    from fedcoast.reports.forms import write

    table, experiment = TABLES[dataset](), replace(EXPERIMENTS[dataset], seed=seed)
    federation = SiteFederation(table, experiment)
    patients = ", ".join(f"{name} {len(table.rows_of(site))}" for site, name in enumerate(table.sites))
    err().print(f"{table.title}: training on patients of {patients}.")
    metrics: dict[str, float] = {}
    with progress(experiment.rounds) as bar:

        def on_round(view: Round) -> None:
            metrics.update(view.metrics)
            bar(f"round {view.number}")

        facts = {"experiment": asdict(experiment), "dataset": table.title}
        data = assess_rounds(with_unmoved(federation), on_round=on_round, facts=facts, title=table.title)
    show(data.assessment, None)
    quality = "test accuracy" if table.task == "classification" else "concordance"
    out().print(f"On patients nobody trained on, the shared model has a {quality} of {metrics[quality]:.3f}.")
    err().print(f"Retraining all {2 ** len(table.sites)} coalitions to see what each site is really worth …")
    for judge, worth in retraining_shapley(table, experiment).items():
        order = ", ".join(f"{site} {value:+.3f}" for site, value in sorted(worth.items(), key=lambda item: -item[1]))
        whom = "each patient counts alike" if judge == "pooled" else "each site counts alike"
        out().print(f"Retraining, where {whom}: {order}", soft_wrap=True)
    write(data, file)
    out().print(
        "The scores saw no test data, and one training says little: docs/natural-federations.md has 20 of each.\n"
        f"The report: {file}",
        soft_wrap=True,
    )
