"""Federations that nature made: does a method rank hospitals as retraining without them does?

    FEDCOAST_DATA=/path/to/data python -m benchmarks.natural [--retrain | --smoke]

Heart disease in four hospitals and breast cancer survival in six regions, a linear model and a small MLP each, FedAvg
weighted by patients, 20 rounds, 20 seeds. A seed draws the test patients (a third of each site), the first model and
the batches. The truth is the Shapley value over all retrained coalitions (`simulation/site_federation.py`), judged by
the loss on all test patients ("pooled") and by the mean of the sites' losses ("by site"). Without the files of
TCGA-BRCA the heart alone is measured, and nothing is written. Writes results/natural.json and the tables of
docs/natural-federations.md. Truths that results/natural.json holds of the same experiment are not trained again, unless
`--retrain` says so: when a method changes, a minute is enough.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from benchmarks.record import RESULTS, keep
from fedcoast import METHODS, BadFile, CoAst, FedcoastError
from fedcoast.methods import Assessor
from fedcoast.simulation.datasets.brca import load_brca
from fedcoast.simulation.datasets.heart import load_heart
from fedcoast.simulation.datasets.site_table import SiteTable
from fedcoast.simulation.site_federation import SiteExperiment, SiteFederation, retraining_shapley
from fedcoast.stats.ranking import average_ranks, spearman
from paper import research_code
from paper.pages import refresh

PAGE = Path(__file__).parents[1] / "docs" / "natural-federations.md"
COMMAND = "python -m benchmarks.natural"
SEEDS = 20
AVERAGES = ("pooled", "by site")
SIZES: dict[tuple[str, str], dict[str, Any]] = {
    ("heart", "linear"): {"batch": 16, "learning_rate": 0.1},
    ("heart", "mlp"): {"batch": 16, "learning_rate": 0.1},
    ("brca", "linear"): {"batch": 64, "learning_rate": 0.03},
    ("brca", "mlp"): {"batch": 64, "learning_rate": 0.1},
}


def methods() -> dict[str, Callable[[], Assessor]]:
    """Every method that needs no validation data, the default first; and the readings of CoAst."""
    needless = {name: m.make for name, m in METHODS.items() if not {"utility", "gradient"} & set(m.needs)}
    readings = {"coast (votes)": CoAst.votes, "coast (research code)": research_code.coast}
    return {"coast": needless.pop("coast"), **readings, **needless}


def one_seed(table: SiteTable, experiment: SiteExperiment, truth: dict[str, Any] | None) -> dict[str, Any]:
    """The truth, unless it is known, and every method's scores, of one training."""
    rounds = list(SiteFederation(table, experiment))
    answers: dict[str, dict[str, float] | None] = {}
    for name, make in methods().items():
        try:
            assessor = make(seed=experiment.seed) if name == "chance" else make()
            for view in rounds:
                assessor.observe(view)
            found = assessor.assessment().scores
            answers[name] = {site: float(found[site]) for site in table.sites}
        except FedcoastError:
            answers[name] = None  # it cannot answer here: no classifier head
    return {
        "seed": experiment.seed,
        "metrics": dict(rounds[-1].metrics),
        "truth": truth or retraining_shapley(table, experiment),
        "scores": answers,
    }


def agreement(runs: list[dict[str, Any]], method: str, average: str) -> list[float]:
    """Spearman's ρ of a method with the truth, a number for each seed; undefined ones (all scores equal) count as 0."""
    found = []
    for run in runs:
        scores, truth = run["scores"][method], run["truth"][average]
        if scores is not None:
            rho = spearman([scores[site] for site in truth], list(truth.values()))
            found.append(0.0 if rho != rho else rho)
    return found


def mean_ranks(rows: list[dict[str, float]]) -> dict[str, float]:
    """The mean place of each site; 1 is the best."""
    places = [dict(zip(row, average_ranks(list(row.values())), strict=True)) for row in rows]
    return {site: fmean(float(place[site]) for place in places) for site in rows[0]}


def agreement_table(cases: dict[str, list[dict[str, Any]]]) -> str:
    heads = [f"{case}, {average}" for case in cases for average in AVERAGES]
    lines = ["| method | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for method in next(iter(cases.values()))[0]["scores"]:
        cells = [_spread(agreement(runs, method, average)) for runs in cases.values() for average in AVERAGES]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _spread(values: list[float]) -> str:
    return "cannot answer" if not values else f"{fmean(values):.2f} ± {stdev(values):.2f}".replace("-", "−")


def place_table(runs: list[dict[str, Any]]) -> str:
    """Where the truth and each method place the sites, on average."""
    sites = list(runs[0]["truth"]["pooled"])
    rows = {f"retraining, {average}": mean_ranks([run["truth"][average] for run in runs]) for average in AVERAGES}
    for method, answer in runs[0]["scores"].items():
        if answer is not None:
            rows[method] = mean_ranks([run["scores"][method] for run in runs])
    lines = ["| mean rank by | " + " | ".join(sites) + " |", "|---" * (len(sites) + 1) + "|"]
    lines += [
        f"| {name} | " + " | ".join(f"{places[site]:.1f}" for site in sites) + " |" for name, places in rows.items()
    ]
    return "\n".join(lines) + "\n"


def known_truths() -> dict[str, dict[int, Any]]:
    """By experiment, as JSON, and seed: what the results hold already."""
    file = RESULTS / "natural.json"
    recorded = json.loads(file.read_text("utf-8")) if file.exists() else {"experiments": {}, "runs": {}}
    return {
        json.dumps({**options, "case": case}, sort_keys=True): {
            run["seed"]: run["truth"] for run in recorded["runs"][case]
        }
        for case, options in recorded["experiments"].items()
    }


def page_parts(cases: dict[str, list[dict[str, Any]]]) -> dict[str, str]:
    """The tables of the page, by the names of their places."""
    places = {f"places of {case}": place_table(runs) for case, runs in cases.items()}
    return {"agreement": agreement_table(cases), **places}


def run(smoke: bool, retrain: bool = False) -> None:
    truths = {} if smoke or retrain else known_truths()
    tables = [load_heart()]
    try:
        tables.append(load_brca())
    except BadFile as error:
        print(error, file=sys.stderr)
    cases: dict[str, list[dict[str, Any]]] = {}
    experiments: dict[str, Any] = {}
    for table in tables:
        for model in ("linear", "mlp"):
            sizes = SIZES[table.name, model]
            case, count = f"{table.name} {model}", 1 if smoke else SEEDS
            experiment = SiteExperiment(model=model, **sizes, **({"rounds": 4} if smoke else {}))
            experiments[case] = {**asdict(experiment), "seed": f"0 to {count - 1}"}
            known = truths.get(json.dumps({**experiments[case], "case": case}, sort_keys=True), {})
            cases[case] = [one_seed(table, replace(experiment, seed=seed), known.get(seed)) for seed in range(count)]
            print(f"{case}: {count} seeds, {len(known)} truths known", flush=True)
    if smoke:
        return
    print(agreement_table(cases))
    if len(tables) < 2:
        return
    keep("natural", COMMAND, {"experiments": experiments, "runs": cases})
    refresh(PAGE, page_parts(cases))


if __name__ == "__main__":
    run("--smoke" in sys.argv, "--retrain" in sys.argv)
