"""How often honest clients are flagged: digits, every setting, two models, five and ten clients, three seeds.

    python -m benchmarks.flags [--smoke]

No thresholds were tuned on these seeds. Writes results/flags.json; `benchmarks.attacks` puts it on its page.
"""

import json
import sys
from collections import Counter
from typing import Any

import torch

from benchmarks.record import RESULTS, keep
from fedcoast.analysis.flags import KINDS, flags
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.presets import preset
from fedcoast.simulation.settings import SETTINGS

NAME = "flags"
COMMAND = "python -m benchmarks.flags"
MODELS, CLIENTS, SEEDS, ROUNDS = ("mlp", "deep-mlp"), (5, 10), (30, 31, 32), 30
SIZES = {"rounds": ROUNDS, "batch": 48, "learning_rate": 0.004}


def run(smoke: bool) -> None:
    torch.set_num_threads(1)
    counts: dict[str, dict[str, Any]] = {}
    for seed in SEEDS[:1] if smoke else SEEDS:
        for setting in ("noise",) if smoke else SETTINGS:
            for model in MODELS[:1] if smoke else MODELS:
                for clients in CLIENTS[:1] if smoke else CLIENTS:
                    changes: dict[str, Any] = {"setting": setting, "clients": clients, "seed": seed, **SIZES}
                    changes |= {"rounds": 8} if smoke else {}
                    found = flags(Federation(preset("quick", "digits", model, **changes)))
                    entry = counts.setdefault(setting, {"clients": 0, "flagged": 0, "kinds": {}})
                    entry["clients"] += clients
                    entry["flagged"] += len({flag.client for flag in found})
                    entry["kinds"] = dict(Counter(entry["kinds"]) + Counter(flag.kind for flag in found))
            print(f"seed {seed}, {setting}: {counts[setting]}", flush=True)
        if not smoke:
            keep(NAME, COMMAND, {"rounds": ROUNDS, "by setting": counts})


def false_alarm_section() -> list[str]:
    """The section of docs/attacks.md: honest clients flagged, by kind and setting; empty before it was measured."""
    file = RESULTS / f"{NAME}.json"
    if not file.exists():
        return []
    by_setting = json.loads(file.read_text(encoding="utf-8"))["by setting"]
    lines = [["flag", *by_setting], ["---"] * (1 + len(by_setting))]
    for kind in KINDS:
        lines.append([kind, *(_share(entry["kinds"].get(kind, 0), entry["clients"]) for entry in by_setting.values())])
    lines.append(["any", *(_share(entry["flagged"], entry["clients"]) for entry in by_setting.values())])
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    total, all_clients = (sum(entry[name] for entry in by_setting.values()) for name in ("flagged", "clients"))
    text = f"Nobody attacks: {total} of {all_clients} honest clients were flagged ({total / all_clients:.1%})."
    return [f"## False alarms\n\n    {COMMAND}\n\n{text}\n\n{table}"]


def _share(count: int, clients: int) -> str:
    return f"{count} of {clients}"


if __name__ == "__main__":
    run("--smoke" in sys.argv)
