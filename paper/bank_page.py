"""What the default, its neighbours and the readings of CoAst score on the training bank, as a page.

    python -m paper.bank_page [RUNS]

The default and its neighbours need `results/bank` alone. With the run folders at hand, the other readings are computed
on the same rounds and kept in `results/bank.json`; without them the kept ones are used. The page is `results/bank.md`.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from fedcoast import CoAst
from fedcoast.methods import Assessor
from fedcoast.simulation.provenance import provenance
from fedcoast.simulation.worker_pool import one_thread
from fedcoast.stats.ranking import spearman
from fedcoast.storage import replay
from paper import research_code
from paper.bank import BankRun, read_all
from paper.bank_scores import CANDIDATES, scores
from paper.pages import markdown_line, two

RESULTS = Path("results")
Place = tuple[str, str]  # dataset and setting
Cells = dict[str, dict[Place, list[float]]]  # ρ by row, dataset and setting

TUNING_DATASETS = ("digits", "cifar10", "fashion-mnist")


def readings() -> dict[str, Assessor]:
    return {
        "CoAst, the former default": CoAst(
            reference="movement", horizon=2, past_weight=0.5, line_weight=0, layers="first+head"
        ),
        "CoAst, votes against movement": CoAst.votes(),
        "CoAst, the public code": research_code.coast(),
        "CoAst, votes less the past (`horizon=5, past_weight=1`)": CoAst.votes(past_weight=1, horizon=5),
    }


def is_tuning(run: BankRun) -> bool:
    """Whether the default was chosen by this run; all others may judge it."""
    return run.experiment.dataset in TUNING_DATASETS and run.experiment.seed % 2 == 0


def correlations_of_readings(run: BankRun, runs: Path) -> dict[str, float]:
    """Spearman's ρ of each reading with the true order, from the recorded rounds."""
    assessors = readings()
    with one_thread():
        for fl_round in replay(runs / run.experiment.name):
            for assessor in assessors.values():
                assessor.observe(fl_round)
    clients = range(run.experiment.clients)
    return {
        name: spearman(run.truth or [], [assessor.assessment().scores.get(client, 0.0) for client in clients])
        for name, assessor in assessors.items()
    }


def correlations_of_candidates(run: BankRun) -> dict[str, float]:
    return {name: spearman(run.truth or [], scores(run, candidate)) for name, candidate in CANDIDATES.items()}


def table(rows: Cells) -> list[str]:
    """A line for each row, a column for each dataset and setting."""
    columns = sorted({place for cells in rows.values() for place in cells})
    lines = [
        markdown_line(["", "mean", "worst setting", *(f"{dataset}, {setting}" for dataset, setting in columns)]),
        markdown_line(["---"] * (len(columns) + 3)),
    ]
    for name, cells in rows.items():
        means = {place: fmean(cells[place]) for place in columns if place in cells}
        settings: dict[str, list[float]] = defaultdict(list)
        for (_, setting), mean in means.items():
            settings[setting].append(mean)
        worst = min(fmean(of) for of in settings.values())
        cell_words = [two(means[place]) if place in means else "not run" for place in columns]
        lines.append(markdown_line([name, two(fmean(means.values())), two(worst), *cell_words]))
    return lines


def page(tuning: Cells, judged: Cells, counts: Sequence[int]) -> str:
    lines = [
        "# The training bank: the default and its neighbours",
        "",
        "Mean Spearman's ρ with the true order, by dataset and setting. Command: `python -m paper.bank_page`.",
        "",
        "## Chosen by",
        "",
        f"{counts[0]} runs whose networks live: digits, CIFAR-10 and Fashion-MNIST, even seeds, FedAvg and pruned",
        "aggregation. The default was chosen by these runs: they do not say how well it does elsewhere.",
        "",
        *table(tuning),
    ]
    if judged:
        lines += [
            "",
            "## Judged by",
            "",
            f"{counts[1]} runs that the choice was not made by, trained in float32. Twelve of them (CIFAR-10, seed 1;",
            "CIFAR-100, seed 0, resolution and mask) had been looked at before the rule for the better end of the line",
            "was changed.",
            "",
            *table(judged),
        ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> None:
    bank = [run for run in read_all(RESULTS / "bank") if run.truth is not None]
    file = RESULTS / "bank.json"
    found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"runs": {}}
    parts: tuple[Cells, Cells] = (defaultdict(lambda: defaultdict(list)), defaultdict(lambda: defaultdict(list)))
    for run in bank:
        name, place = run.experiment.name, (run.experiment.dataset, run.experiment.setting)
        if arguments and name not in found["runs"] and (Path(arguments[0]) / name).is_dir():
            found["runs"][name] = correlations_of_readings(run, Path(arguments[0]))
        rows = parts[0] if is_tuning(run) else parts[1]
        for row, value in {**correlations_of_candidates(run), **found["runs"].get(name, {})}.items():
            rows[row][place].append(value)
    if arguments:
        file.write_text(json.dumps({**found, "made": provenance()}, indent=1) + "\n", encoding="utf-8")
    counts = [sum(is_tuning(run) for run in bank), sum(not is_tuning(run) for run in bank)]
    (RESULTS / "bank.md").write_text(page(*parts, counts), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
