"""How often honest clients are flagged, and how often attackers are.

    python -m benchmarks.flags [--smoke] [--minutes M] [--honest]

Honest: digits, every setting, two models, five and ten clients. Attacked: deep-mlp, the noise and the label-skew
setting, six and ten clients. The rules were chosen on seeds 100 to 107 and are judged here on seeds 200 to 229, which
nobody had looked at before. Kept in results/flags.json after each seed; the command goes on from there, and measures
again what was measured with earlier rules. `benchmarks.attacks` puts it on its page.
"""

import argparse
import ast
import hashlib
import inspect
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import torch

from benchmarks.record import RESULTS, keep
from fedcoast.analysis import behaviour
from fedcoast.analysis import flags as flag_rules
from fedcoast.analysis.flags import KINDS, flags
from fedcoast.simulation.attacks import attack_named
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.presets import preset
from fedcoast.simulation.settings import SETTINGS

NAME = "flags"
COMMAND = "python -m benchmarks.flags"
SEEDS, ROUNDS = range(200, 230), 30
MODELS, CLIENTS = ("mlp", "deep-mlp"), (5, 10)
ATTACKED_SETTINGS, ATTACKED_CLIENTS = ("noise", "label-skew"), (6, 10)
ATTACKS = (
    "zero", "noise", "matched-noise", "echo", "mean-of-steps", "copy", "steering", "middle", "sign-flip", "reverse",
    "scale-0.1", "scale-5", "scale-100", "half-time",
)  # fmt: skip
ATTACKED_SEEDS = SEEDS[:5]
SIZES: dict[str, Any] = {"rounds": ROUNDS, "batch": 48, "learning_rate": 0.004}
RULES = (flag_rules, behaviour)
SAME = "same upload"  # of an honest client: that it was copied


def run(smoke: bool, minutes: float | None = None, honest_only: bool = False) -> None:
    torch.set_num_threads(1)
    file = RESULTS / f"{NAME}.json"
    runs: dict[str, Any] = {} if smoke or not file.exists() else json.loads(file.read_text(encoding="utf-8"))["runs"]
    until = None if minutes is None else time.monotonic() + 60 * minutes
    for seed in SEEDS[:1] if smoke else SEEDS:
        for key, experiment in experiments(seed, smoke):
            if honest_only and experiment.attack is not None:
                continue
            if runs.get(key, {}).get("made") == made() or (until is not None and time.monotonic() > until):
                continue
            found = flags(Federation(experiment))
            kinds: dict[str, list[str]] = {}
            for flag in found:
                kinds.setdefault(str(flag.client), []).append(flag.kind)
            runs[key] = {"made": made(), "clients": experiment.clients, "flags": kinds}
        print(f"seed {seed}: {_sentence(runs)}", flush=True)
        if not smoke:
            keep(NAME, COMMAND, {"rounds": ROUNDS, "runs": runs})


def experiments(seed: int, smoke: bool) -> Iterator[tuple[str, Experiment]]:
    """The federations of one seed, honest ones first, by key."""
    sizes = {**SIZES, "rounds": 8} if smoke else SIZES
    for setting in ("noise",) if smoke else SETTINGS:
        for model in MODELS[:1] if smoke else MODELS:
            for clients in CLIENTS[:1] if smoke else CLIENTS:
                changes: dict[str, Any] = {"setting": setting, "clients": clients, "seed": seed, **sizes}
                yield f"honest/{setting}/{model}/{clients}/{seed}", preset("quick", "digits", model, **changes)
    for setting in ATTACKED_SETTINGS if seed in ATTACKED_SEEDS else ():
        for clients in ATTACKED_CLIENTS[:1] if smoke else ATTACKED_CLIENTS:
            for attack in ATTACKS[:1] if smoke else ATTACKS:
                changes = {"setting": setting, "clients": clients, "seed": seed, **sizes}
                honest = preset("quick", "digits", "deep-mlp", **changes)
                yield (
                    f"{attack}/{setting}/deep-mlp/{clients}/{seed}",
                    replace(honest, attack=attack, attacker=clients // 2),
                )


def made() -> str:
    """Changes with the rules: what was measured with others is measured again."""
    return hashlib.sha256("".join(map(code_of, RULES)).encode()).hexdigest()[:12]


def code_of(module: ModuleType) -> str:
    """What a module computes: its syntax tree without docstrings, so that rewording them measures nothing again."""
    tree = ast.parse(inspect.getsource(module))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Pass()
    return ast.dump(tree)


def judge(runs: Mapping[str, Any]) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, list[int]]]]:
    """Honest clients by setting; and of each attack by setting: runs that were found, runs, honest clients flagged.

    A client that was copied carries the flag `same upload` too, because nobody can tell within a round who copied whom.
    """
    honest: dict[str, dict[str, Any]] = {}
    attacked: dict[str, dict[str, list[int]]] = {}
    for key, found in runs.items():
        attack, setting, _, clients, _ = key.split("/")
        if attack == "honest":
            entry = honest.setdefault(setting, {"clients": 0, "flagged": 0, "kinds": Counter()})
            entry["clients"] += found["clients"]
            entry["flagged"] += len(found["flags"])
            entry["kinds"].update(kind for kinds in found["flags"].values() for kind in kinds)
            continue
        identities = {str(one) for one in attack_named(attack).identities(int(clients) // 2, int(clients))}
        counts = attacked.setdefault(attack, {}).setdefault(setting, [0, 0, 0])
        counts[0] += identities <= found["flags"].keys()
        counts[1] += 1
        counts[2] += len(wrongly_flagged(found["flags"], identities))
    return honest, attacked


def wrongly_flagged(found: Mapping[str, list[str]], identities: set[str]) -> set[str]:
    """The honest clients with a flag, those that were only copied left out."""
    return {client for client, kinds in found.items() if client not in identities and set(kinds) != {SAME}}


def _sentence(runs: Mapping[str, Any]) -> str:
    honest, attacked = judge(runs)
    flagged, clients = (sum(entry[name] for entry in honest.values()) for name in ("flagged", "clients"))
    found, all_runs, wrong = (sum(of[at] for row in attacked.values() for of in row.values()) for at in range(3))
    text = f"{flagged} of {clients} honest clients flagged; attackers found in {found} of {all_runs} attacked runs"
    return f"{text}, and {wrong} honest clients flagged there"


def flag_sections() -> list[str]:
    """The sections of docs/attacks.md on what flags find, and on false alarms; empty before it was measured."""
    file = RESULTS / f"{NAME}.json"
    if not file.exists():
        return []
    runs = json.loads(file.read_text(encoding="utf-8"))["runs"]
    honest, attacked = judge(runs)
    seeds = sorted({int(key.rpartition("/")[2]) for key in runs})
    names = [setting for setting in SETTINGS if setting in honest]
    lines = [["flag", *names], ["---"] * (1 + len(names))]
    for kind in KINDS:
        lines.append([kind, *(str(honest[name]["kinds"].get(kind, 0)) for name in names)])
    lines.append(["**any**", *(f"**{honest[name]['flagged']}** of {honest[name]['clients']}" for name in names)])
    total, everybody = (sum(entry[name] for entry in honest.values()) for name in ("flagged", "clients"))
    text = (
        f"Nobody attacks: {total} of {everybody} honest clients were flagged ({total / everybody:.1%}; seeds"
        f" {seeds[0]} to {seeds[-1]}, digits, both MLPs, five and ten clients). The rules were chosen on seeds 100"
        " to 107."
    )
    text += _earlier([found for key, found in runs.items() if key.startswith("honest/")])
    false = f"## False alarms\n\n    {COMMAND}\n\n{text}\n\n{_table(lines)}"
    lines = [["attack", *(f"{setting}: found, honest clients flagged" for setting in ATTACKED_SETTINGS)], ["---"] * 3]
    for attack in ATTACKS:
        cells = []
        for setting in ATTACKED_SETTINGS:
            caught, count, wrong = attacked.get(attack, {}).get(setting, (0, 0, 0))
            cells.append(f"{caught} of {count}, {wrong}" if count else "–")
        lines.append([f"`{attack}`", *cells])
    earlier = _earlier([found for key, found in runs.items() if not key.startswith("honest/")])
    return [f"{_FOUND}{earlier}\n\n{_table(lines)}", false]


def _earlier(runs: list[dict[str, Any]]) -> str:
    old = sum(found.get("made") != made() for found in runs)
    return f" {old} of {len(runs)} federations were measured with **earlier rules**." if old else ""


def _table(lines: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


_FOUND = """\
## What flags find

The same command, on seeds that no rule was chosen on: six and ten clients, deep-mlp. An upload that equals another one
of the same round names both clients: nobody can tell who copied whom, or whether both are one. The client that was
copied is therefore flagged too, as `same upload`, and not counted as a false alarm here.

A client that trains on wrong labels is not flagged until it works against the others as a whole: an honest hospital
with bad labels looks the same. Its score says what it contributes. The same holds for a backdoor."""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="two small federations; nothing is written")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--honest", action="store_true", help="only federations that nobody attacks")
    given = parser.parse_args()
    run(given.smoke, given.minutes, given.honest)
