"""What attackers gain: rank and share of attackers before and after, by attack and method.

    python -m benchmarks.attacks [--smoke]

Digits, deep-mlp, the noise setting (each client's images are noisier than the one before's), FedAvg, six and ten
clients, three seeds. The client in the middle of the true order attacks and its upload is aggregated like any other.
The same federation without attack is the comparison. Methods: all that need no validation data, and exact Shapley
(for six clients), which sees 100 test images. Writes results/attacks.json and docs/attacks.md; finished runs are kept
in the record and not trained again.
"""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import fmean
from typing import Any

import torch

from benchmarks.flags import flag_sections, wrongly_flagged
from benchmarks.record import RESULTS, keep
from fedcoast.analysis.flags import flags
from fedcoast.methods import METHODS, Assessor
from fedcoast.methods.coalition.utility import Evaluator
from fedcoast.simulation.attacks import ATTACKS, attack_named
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.presets import preset
from fedcoast.simulation.simulation import about
from fedcoast.simulation.utility import utility_for

NAME = "attacks"
COMMAND = "python -m benchmarks.attacks"
CLIENTS, SEEDS, ROUNDS = (6, 10), (0, 1, 2), 30
BATCH, RATE = 48, 0.004
MOST_FOR_SHAPLEY = 6
VALIDATION_IMAGES = 100
LEFT_OUT = ("chance", "constant", "size", "fed-pca-exact", "cgsv-exact")
HONEST = "honest"


def methods(clients: int) -> list[str]:
    """Every method without validation data that is not a baseline or a variant, and Shapley where it is affordable."""
    free = [
        name
        for name, method in METHODS.items()
        if not {"utility", "gradient"} & set(method.needs)
        and name not in LEFT_OUT
        and not name.endswith("-research-code")
    ]
    return free + (["shapley"] if clients <= MOST_FOR_SHAPLEY else [])


def measure(experiment: Experiment) -> dict[str, Any]:
    """Scores by method, flagged clients and final accuracy of one federation."""
    federation = Federation(experiment)
    utility = Evaluator(utility_for(about(federation), limit=VALIDATION_IMAGES, workers=1))
    names = methods(experiment.clients)
    assessors: dict[str, Assessor] = {
        name: METHODS[name].make(utility=utility) if name == "shapley" else METHODS[name].make() for name in names
    }
    rounds = list(federation)
    for fl_round in rounds:
        for assessor in assessors.values():
            assessor.observe(fl_round)
    flagged: dict[str, list[str]] = {}
    for flag in flags(rounds):
        flagged.setdefault(str(flag.client), []).append(flag.kind)
    return {
        "accuracy": rounds[-1].metrics["test accuracy"],
        "scores": {
            name: {str(client): score for client, score in assessor.assessment().scores.items()}
            for name, assessor in assessors.items()
        },
        "flags": flagged,
    }


def shares(scores: Mapping[str, float]) -> dict[str, float]:
    """The positive part of each score, as a share of all; nobody has any where no score is positive."""
    positive = {client: max(0.0, score) for client, score in scores.items()}
    total = sum(positive.values())
    return {client: value / total if total else 0.0 for client, value in positive.items()}


def rank(scores: Mapping[str, float], client: str) -> int:
    return 1 + sum(score > scores[client] for score in scores.values())


def experiments(smoke: bool) -> dict[str, Experiment]:
    """By key: attack, clients and seed."""
    found = {}
    for clients in CLIENTS[:1] if smoke else CLIENTS:
        for seed in SEEDS[:1] if smoke else SEEDS:
            sizes = {"rounds": 6 if smoke else ROUNDS, "batch": BATCH, "learning_rate": RATE}
            honest = preset("quick", "digits", "deep-mlp", clients=clients, seed=seed, **sizes)
            found[f"{HONEST}/{clients}/{seed}"] = honest
            for name in ("echo", "zero") if smoke else ATTACKS:
                found[f"{name}/{clients}/{seed}"] = replace(honest, attack=name, attacker=clients // 2)
    return found


def summarise(runs: Mapping[str, Any], attack: str, clients: int, method: str) -> dict[str, Any] | None:
    """Ranks, shares and what others lose, over the seeds that both federations have."""
    rows = []
    identities = [str(client) for client in attack_named(attack).identities(clients // 2, clients)]
    for seed in SEEDS:
        before, after = (runs.get(f"{name}/{clients}/{seed}") for name in (HONEST, attack))
        if before is None or after is None or not before["scores"].keys() & after["scores"].keys() & {method}:
            continue
        old, new = shares(before["scores"][method]), shares(after["scores"][method])
        first = identities[0] if attack != "collusion-40" else str(clients // 2)
        rows.append(
            {
                "rank before": rank(before["scores"][method], first),
                "rank after": rank(after["scores"][method], first),
                "share before": sum(old.get(client, 0.0) for client in identities),
                "share after": sum(new[client] for client in identities),
            }
        )
    if not rows:
        return None
    summary: dict[str, Any] = {name: [row[name] for row in rows] for name in ("rank before", "rank after")}
    summary |= {name: fmean(row[name] for row in rows) for name in ("share before", "share after")}
    summary["others lose"] = summary["share after"] - summary["share before"]
    return summary


def page(runs: Mapping[str, Any]) -> str:
    """docs/attacks.md."""
    parts = [_INTRODUCTION, coverage(runs)]
    for clients in CLIENTS:
        known = {name for key, run in runs.items() if f"/{clients}/" in key for name in run["scores"]}
        names = [name for name in methods(clients) if name in known]
        heads = ["attack", "accuracy", "flagged", *names]
        lines = [heads, ["---"] * len(heads), _honest_line(runs, clients, names)]
        lines += [_attack_line(runs, attack, clients, names) for attack in ATTACKS]
        lines = [line for line in lines if line]
        if len(lines) > 2:
            table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
            parts.append(f"## {clients} clients\n\n{table}")
    parts += flag_sections()
    parts.append(
        "## The attacks\n\n" + "\n".join(f"* `{name}`: {attack.description}" for name, attack in ATTACKS.items())
    )
    return "\n\n".join(parts) + "\n"


def coverage(runs: Mapping[str, Any]) -> str:
    """Which of the planned runs the page is made of."""
    planned = experiments(smoke=False)
    there = sum(key in runs for key in planned)
    missing = "" if there == len(planned) else " The others were **not run**; the command continues where it stopped."
    return f"{there} of {len(planned)} planned federations ({len(CLIENTS)} sizes, {len(SEEDS)} seeds) are in.{missing}"


def _honest_line(runs: Mapping[str, Any], clients: int, names: list[str]) -> list[str]:
    found = [runs[key] for seed in SEEDS if (key := f"{HONEST}/{clients}/{seed}") in runs]
    if not found:
        return []
    client = str(clients // 2)
    false = sum(len(run["flags"]) for run in found)
    cells = []
    for name in names:
        scores = [run["scores"][name] for run in found if name in run["scores"]]
        ranks = "/".join(str(rank(by_client, client)) for by_client in scores)
        cells.append(f"{ranks} {fmean(shares(by_client)[client] for by_client in scores):.0%}" if scores else "–")
    flagged = f"{false} of {clients * len(found)} clients"
    return ["(honest)", f"{fmean(run['accuracy'] for run in found):.2f}", flagged, *cells]


def _attack_line(runs: Mapping[str, Any], attack: str, clients: int, names: list[str]) -> list[str]:
    found = [runs[key] for seed in SEEDS if (key := f"{attack}/{clients}/{seed}") in runs]
    if not found:
        return []
    identities = {str(client) for client in attack_named(attack).identities(clients // 2, clients)}
    caught = sum(identities <= run["flags"].keys() for run in found)
    wrong = sum(len(wrongly_flagged(run["flags"], identities)) for run in found)
    flagged = f"{caught} of {len(found)}" + (f", {wrong} honest too" if wrong else "")
    cells = []
    for name in names:
        summary = summarise(runs, attack, clients, name)
        ranks = "/".join(map(str, summary["rank after"])) if summary else "–"
        cells.append(f"{ranks} {summary['share after']:.0%} ({summary['others lose']:+.0%})" if summary else "–")
    return [f"`{attack}`", f"{fmean(run['accuracy'] for run in found):.2f}", flagged, *cells]


_INTRODUCTION = f"""\
# Attacks: what a cheating client gains

    {COMMAND}

A client in the middle of the true order attacks in every round, and its upload is aggregated like any other. Each cell
shows the attacker's rank, seed by seed, and its mean share of all positive scores; in brackets, by how much the
share of the honest clients falls (+) or grows (−) against the same federation without attack. “flagged” counts the runs
in which every attacker was flagged (below), and honest clients that were flagged too. Shapley sees 100 test
images; no other method sees any. Digits, deep-mlp, 30 rounds of FedAvg, the noise setting. Where
an attacker leads a ranking, the table says so: scores measure agreement or utility, they do not prove honesty.

The flag rules `idle` and `change` and the strength of the steering attacks were changed after a look at the flags of
attacked federations of six clients with seed 0 (batches of 16). Detection on seed 0 is no independent test. The honest
federations under “False alarms” have seeds that were not looked at before.

Shares of collusions and sybils are those of all their identities together; the rank is that of one of them."""


def run(smoke: bool, on_run: Callable[[str], None] = print) -> None:
    torch.set_num_threads(1)
    file = RESULTS / f"{NAME}.json"
    runs: dict[str, Any] = {} if smoke or not file.exists() else json.loads(file.read_text(encoding="utf-8"))["runs"]
    for key, experiment in experiments(smoke).items():
        if key in runs:
            continue
        runs[key] = measure(experiment)
        on_run(f"{key}: accuracy {runs[key]['accuracy']:.3f}, flagged {runs[key]['flags']}")
        if not smoke:
            keep(NAME, COMMAND, {"rounds": ROUNDS, "runs": runs})
    text = page(runs)
    if not smoke:
        (RESULTS.parent / "docs" / f"{NAME}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    run("--smoke" in sys.argv)
