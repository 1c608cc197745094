"""What the candidates and the readings of CoAst score on the training bank, as a page.

    python -m paper.bank_page [RUNS]

The candidates need `results/bank` alone. With the run folders at hand, the readings of CoAst are computed on the same
rounds and kept in `results/bank.json`; without them the kept ones are used. The page is `results/bank.md`.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean

from fedcoast import CoAst
from fedcoast.methods import Assessor
from fedcoast.simulation.provenance import provenance
from fedcoast.simulation.worker_pool import one_thread
from fedcoast.stats.ranking import spearman
from fedcoast.storage import replay
from paper.bank import BankRun, read_all
from paper.pages import markdown_line, two
from paper.peer_scores import CANDIDATES, agreement_table

RESULTS = Path("results")
Cells = dict[str, dict[tuple[str, str], list[float]]]  # ρ by row, and by dataset and setting


def readings() -> dict[str, Assessor]:
    return {
        "CoAst, our default": CoAst(),
        "CoAst, votes against movement": CoAst.votes(),
        "CoAst, the public code": CoAst.research_code(),
        "CoAst, past_weight=1, all layers, horizon=5": CoAst(past_weight=1, layers="all", horizon=5),
    }


def correlations_of_readings(run: BankRun, runs: Path) -> dict[str, float]:
    """Spearman's ρ of each reading with the planted order, from the recorded rounds."""
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
    table = agreement_table(run.agreement)
    return {name: spearman(run.truth or [], list(score(table))) for name, score in CANDIDATES.items()}


def page(rows: Cells, runs: int) -> str:
    """A line for each candidate, a column for each dataset and setting."""
    columns = sorted({place for cells in rows.values() for place in cells})
    lines = [
        "# The training bank: candidates for the default",
        "",
        f"Mean Spearman's ρ with the planted order over {runs} runs whose networks live (digits, CIFAR-10 and",
        "Fashion-MNIST, even seeds, FedAvg and pruned aggregation). These are runs to choose by, not to judge by:",
        "no number here says how well a candidate does elsewhere. Command: `python -m paper.bank_page`.",
        "",
        markdown_line(["", "mean", "worst", *(f"{dataset}, {setting}" for dataset, setting in columns)]),
        markdown_line(["---"] * (len(columns) + 3)),
    ]
    for name, cells in rows.items():
        means = [fmean(cells[place]) for place in columns]
        lines.append(markdown_line([name, two(fmean(means)), two(min(means)), *map(two, means)]))
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> None:
    bank = [run for run in read_all(RESULTS / "bank") if run.truth is not None]
    kept = RESULTS / "bank.json"
    found = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {"runs": {}}
    rows: Cells = defaultdict(lambda: defaultdict(list))
    for run in bank:
        name, place = run.experiment.name, (run.experiment.dataset, run.experiment.setting)
        if arguments and name not in found["runs"] and (Path(arguments[0]) / name).is_dir():
            found["runs"][name] = correlations_of_readings(run, Path(arguments[0]))
        for row, value in {**found["runs"].get(name, {}), **correlations_of_candidates(run)}.items():
            rows[row][place].append(value)
    if arguments:
        kept.write_text(json.dumps({**found, "made": provenance()}, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "bank.md").write_text(page(rows, len(bank)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
