"""What attackers gain: rank and share of attackers before and after, by attack and method.

    python -m benchmarks.attacks [--dataset digits|cifar10] [--attacks zero,noise] [--minutes M] [--smoke]

The noise setting (each client's images are noisier than the one before's), FedAvg, six and ten clients, three seeds.
Digits: deep-mlp, about three seconds of one core a federation. CIFAR-10: tiny-resnet in float32, a twentieth of an
epoch in each of 20 rounds, about half a minute. The client in the middle of the true order
attacks and its upload is aggregated like any other. The same federation without attack is the comparison. Methods: all
that need no validation data, and exact Shapley (for six clients), which sees test images. Writes results/attacks.json
and docs/attacks.md. Finished federations are kept and not trained again, unless the default of CoAst or the flag rules
have changed since.
"""

import argparse
import json
import time
from collections.abc import Callable, Collection, Mapping
from statistics import fmean, median
from typing import Any

import torch

from benchmarks.attack_runs import (
    CLIENTS,
    DATASETS,
    HONEST,
    SEEDS,
    experiments,
    made,
    measure,
    methods,
    rank,
    shares,
)
from benchmarks.flags import flag_sections, wrongly_flagged
from benchmarks.record import RESULTS, keep
from fedcoast.simulation.attacks import ATTACKS, attack_named

NAME = "attacks"
COMMAND = "python -m benchmarks.attacks"
RIDERS = ("zero", "noise", "matched-noise", "echo", "mean-of-steps", "copy", "steering")
RIVALS = ("coast", "cgsv", "shapfed", "shapley")
SYBIL_GAIN = 0.10
GAIN = 0.02  # of all shares, from which a gain counts as one
FAVOURED = 0.10


def summarise(runs: Mapping[str, Any], dataset: str, attack: str, clients: int, method: str) -> dict[str, Any] | None:
    """Ranks, shares and what others lose, over the seeds that both federations have."""
    rows = []
    identities = [str(client) for client in attack_named(attack).identities(clients // 2, clients)]
    for seed in SEEDS:
        before, after = (runs.get(f"{dataset}/{name}/{clients}/{seed}") for name in (HONEST, attack))
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
    parts = [_INTRODUCTION]
    for dataset in DATASETS:
        parts.append(f"## {_TITLES[dataset]}\n\n{coverage(runs, dataset)}")
        if any(key.startswith(f"{dataset}/") for key in runs):
            parts += [
                goals(runs, dataset),
                misses(runs, dataset),
                *(_size_table(runs, dataset, clients) for clients in CLIENTS),
            ]
    parts += flag_sections()
    parts.append(
        "## The attacks\n\n" + "\n".join(f"* `{name}`: {attack.description}" for name, attack in ATTACKS.items())
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _size_table(runs: Mapping[str, Any], dataset: str, clients: int) -> str:
    keys = [key for key in runs if key.startswith(f"{dataset}/") and f"/{clients}/" in key]
    known = {name for key in keys for name in runs[key]["scores"]}
    names = [name for name in methods(clients) if name in known]
    heads = ["attack", "accuracy", "flagged", *names]
    lines = [heads, ["---"] * len(heads), _honest_line(runs, dataset, clients, names)]
    lines += [_attack_line(runs, dataset, attack, clients, names) for attack in ATTACKS]
    lines = [line for line in lines if line]
    return f"### {clients} clients\n\n{_table(lines)}" if len(lines) > 2 else ""


def goals(runs: Mapping[str, Any], dataset: str) -> str:
    """Line by line, what was aimed at and how often it was reached; by CoAst and by the rivals on the same rounds."""
    lines = [["goal", *RIVALS, "flagged (goal: 95%)"], ["---"] * (len(RIVALS) + 2)]
    for attack in RIDERS:
        found = _runs_of(runs, dataset, attack)
        below = [
            _count([not _above_honest(run, ids, name) for run, ids in found if name in run["scores"]])
            for name in RIVALS
        ]
        caught = _count([ids <= run["flags"].keys() for run, ids in found])
        lines.append([f"`{attack}` never above the median honest client", *below, caught])
    gains = [
        [summary["others lose"] for clients in CLIENTS if (summary := summarise(runs, dataset, "sybil", clients, name))]
        for name in RIVALS
    ]
    caught = _count([ids <= run["flags"].keys() for run, ids in _runs_of(runs, dataset, "sybil")])
    cells = [f"{max(of):+.0%}" if of else "–" for of in gains]
    lines.append([f"`sybil` gains less than {SYBIL_GAIN:.0%} of all shares (worst size shown)", *cells, caught])
    return f"### Goals\n\n{_table(lines)}"


def misses(runs: Mapping[str, Any], dataset: str) -> str:
    """What flags and the default's scores miss, attack by attack, whether there was a goal for it or not."""
    unflagged, gains, favoured = [], [], []
    for attack in ATTACKS:
        found = _runs_of(runs, dataset, attack)
        missed = sum(not ids <= run["flags"].keys() for run, ids in found)
        unflagged += [f"`{attack}` ({missed} of {len(found)} runs)"] if missed else []
        for clients in CLIENTS:
            summary = summarise(runs, dataset, attack, clients, "coast")
            if summary and summary["others lose"] >= GAIN:
                gains.append(f"`{attack}` {summary['others lose']:+.0%} ({clients} clients)")
            others = others_gain(runs, dataset, attack, clients)
            favoured += [
                f"`{attack}` client {client} {gain:+.0%} ({clients} clients)"
                for client, gain in others.items()
                if gain >= FAVOURED
            ]
    return (
        f"**Missed.** Not every attacker flagged: {', '.join(unflagged) or 'none'}. Attackers that gain at least"
        f" {GAIN:.0%} of all shares with CoAst, at the cost of honest clients: {', '.join(gains) or 'none'}. Clients"
        f" that do not attack, and gain at least {FAVOURED:.0%} because another one does, as an accomplice would:"
        f" {', '.join(favoured) or 'none'}."
    )


def others_gain(runs: Mapping[str, Any], dataset: str, attack: str, clients: int) -> dict[str, float]:
    """By client that does not attack, what its share with CoAst gains on the average over the seeds."""
    attackers = {str(client) for client in attack_named(attack).identities(clients // 2, clients)}
    gains: dict[str, list[float]] = {}
    for seed in SEEDS:
        before, after = (runs.get(f"{dataset}/{name}/{clients}/{seed}") for name in (HONEST, attack))
        if before is not None and after is not None:
            old, new = shares(before["scores"]["coast"]), shares(after["scores"]["coast"])
            for client in old.keys() - attackers:
                gains.setdefault(client, []).append(new[client] - old[client])
    return {client: fmean(of) for client, of in sorted(gains.items())}


def _runs_of(runs: Mapping[str, Any], dataset: str, attack: str) -> list[tuple[Any, set[str]]]:
    """The attacked runs, and who attacked in each."""
    return [
        (run, {str(client) for client in attack_named(attack).identities(clients // 2, clients)})
        for clients in CLIENTS
        for seed in SEEDS
        if (run := runs.get(f"{dataset}/{attack}/{clients}/{seed}")) is not None
    ]


def _above_honest(run: Mapping[str, Any], identities: set[str], method: str) -> bool:
    scores = run["scores"][method]
    honest = median(score for client, score in scores.items() if client not in identities)
    return any(scores[client] > honest for client in identities)


def _count(holds: list[bool]) -> str:
    return f"{sum(holds)} of {len(holds)} runs" if holds else "–"


def _table(lines: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def coverage(runs: Mapping[str, Any], dataset: str) -> str:
    """Which of the planned runs the page is made of."""
    planned = experiments(dataset)
    there = [key for key in planned if key in runs]
    text = f"{len(there)} of {len(planned)} planned federations ({len(CLIENTS)} sizes, {len(SEEDS)} seeds) are in."
    if len(there) < len(planned):
        text += " The others were **not run**; the command continues where it stopped."
    if old := sum(runs[key].get("made") != made() for key in there):
        text += f" {old} were measured with an **earlier default of CoAst or earlier flag rules**; the command measures"
        text += " them again."
    sick = sum(bool(runs[key].get("health")) for key in there if f"/{HONEST}/" in key)
    return text + (f" The model lost parts of a layer in {sick} honest federations." if sick else "")


def _honest_line(runs: Mapping[str, Any], dataset: str, clients: int, names: list[str]) -> list[str]:
    found = [runs[key] for seed in SEEDS if (key := f"{dataset}/{HONEST}/{clients}/{seed}") in runs]
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


def _attack_line(runs: Mapping[str, Any], dataset: str, attack: str, clients: int, names: list[str]) -> list[str]:
    found = [runs[key] for seed in SEEDS if (key := f"{dataset}/{attack}/{clients}/{seed}") in runs]
    if not found:
        return []
    identities = {str(client) for client in attack_named(attack).identities(clients // 2, clients)}
    caught = sum(identities <= run["flags"].keys() for run in found)
    wrong = sum(len(wrongly_flagged(run["flags"], identities)) for run in found)
    flagged = f"{caught} of {len(found)}" + (f", {wrong} honest too" if wrong else "")
    cells = []
    for name in names:
        summary = summarise(runs, dataset, attack, clients, name)
        ranks = "/".join(map(str, summary["rank after"])) if summary else "–"
        cells.append(f"{ranks} {summary['share after']:.0%} ({summary['others lose']:+.0%})" if summary else "–")
    return [f"`{attack}`", f"{fmean(run['accuracy'] for run in found):.2f}", flagged, *cells]


_TITLES = {"digits": "Digits", "cifar10": "CIFAR-10"}
_INTRODUCTION = f"""\
# Attacks: what a cheating client gains

    {COMMAND}
    {COMMAND} --dataset cifar10

A client in the middle of the true order attacks in every round, and its upload is aggregated like any other. Each cell
shows the attacker's rank, seed by seed, and its mean share of all positive scores; in brackets, by how much the
share of the honest clients falls (+) or grows (−) against the same federation without attack. “flagged” counts the runs
in which every attacker was flagged (below), and honest clients that were flagged too. Shapley sees test images (100 of
digits, 50 of CIFAR-10); no other method sees any. FedAvg, the noise setting; digits: deep-mlp, 30 rounds; CIFAR-10:
tiny-resnet, 20 rounds of a twentieth of an epoch. Where an attacker leads a ranking, the table says so: scores measure
agreement or utility, they do not prove honesty.

Shares of collusions and sybils are those of all their identities together; the rank is that of one of them."""


def run(
    smoke: bool,
    dataset: str = "digits",
    attacks: Collection[str] = tuple(ATTACKS),
    minutes: float | None = None,
    on_run: Callable[[str], None] = print,
) -> None:
    torch.set_num_threads(1)
    runs = {} if smoke else load()
    until = None if minutes is None else time.monotonic() + 60 * minutes
    for key, experiment in experiments(dataset, smoke).items():
        wanted = experiment.attack is None or experiment.attack in attacks
        known = key in runs and runs[key].get("made") == made()
        if known or not wanted or (until is not None and time.monotonic() > until):
            continue
        begun = time.process_time()
        runs[key] = measure(experiment)
        runs[key]["seconds"] = round(time.process_time() - begun, 1)
        on_run(f"{key}: accuracy {runs[key]['accuracy']:.3f}, flagged {runs[key]['flags']}, {runs[key]['seconds']} s")
        if not smoke:
            keep(NAME, COMMAND, {"runs": runs})
    text = page(runs)
    if not smoke:
        (RESULTS.parent / "docs" / f"{NAME}.md").write_text(text, encoding="utf-8")


def load() -> dict[str, Any]:
    """What was measured, by key. Before there was a second dataset, keys did not name it."""
    file = RESULTS / f"{NAME}.json"
    recorded = json.loads(file.read_text(encoding="utf-8"))["runs"] if file.exists() else {}
    return {key if key.partition("/")[0] in DATASETS else f"digits/{key}": value for key, value in recorded.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="three small federations; nothing is written")
    parser.add_argument("--dataset", choices=tuple(DATASETS), default="digits")
    parser.add_argument("--attacks", default=",".join(ATTACKS), help="some of them, with commas")
    parser.add_argument("--minutes", type=float, help="begin no federation after so many")
    parser.add_argument("--page", action="store_true", help="write docs/attacks.md from what is there; train nothing")
    given = parser.parse_args()
    chosen = given.attacks.split(",")
    for name in chosen:
        attack_named(name)
    run(given.smoke, given.dataset, chosen, 0.0 if given.page else given.minutes)
