"""How long the quick preset takes on one core: the CPU time of one round of each configuration, times its rounds.

    python -m benchmarks.presets [--smoke]

Configurations whose data are not here (`fedcoast data list`) are left out, and said to be.
"""

import sys
import time

from benchmarks.record import keep
from fedcoast.errors import BadFile
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.presets import preset

CONFIGURATIONS = [
    ("digits", "mlp"),
    ("cifar10", "tiny-resnet"),
    ("cifar100", "tiny-resnet"),
    ("cifar100", "convnet"),
    ("stl10", "resnet4"),
]


def run(smoke: bool) -> None:
    measured = {}
    for dataset, model in CONFIGURATIONS[:1] if smoke else CONFIGURATIONS:
        experiment = preset("quick", dataset, model, setting="noise")
        try:
            federation = Federation(experiment)
        except BadFile as error:
            print(f"{dataset}, {model}: left out ({error})")
            continue
        began = time.process_time()
        next(iter(federation))
        seconds = time.process_time() - began
        minutes = seconds * experiment.rounds / 60
        name = f"{federation.data.title}, {model}"
        measured[name] = {"seconds a round": seconds, "rounds": experiment.rounds, "minutes": minutes}
        print(f"{name}: {seconds:.1f} s a round, {experiment.rounds} rounds, {minutes:.1f} minutes")
    if not smoke:
        keep("presets", "python -m benchmarks.presets", {"measured": measured})


if __name__ == "__main__":
    run("--smoke" in sys.argv)
