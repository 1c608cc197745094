"""What the chain of hashes costs while recording, and how fast a run is verified.

Five clients send a model of eleven million float32 parameters. The same rounds are recorded in turn to a folder with a
chain and to one without: nothing hashed, no link written. Seconds by the clock depend on the disk and on who else is
busy; seconds of the processor hardly do.

    python -m benchmarks.chain [--smoke]
"""

import argparse
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.record import keep
from fedcoast import Recorder, Round
from fedcoast.audit import verify
from fedcoast.storage import chain
from fedcoast.storage import recorder as recording

CLIENTS = 5
NOTHING = chain.Content(0, "")


def run(smoke: bool) -> None:
    rounds, parameters = (2, 10_000) if smoke else (15, 11_000_000)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        measured = measure(Path(folder), rounds, parameters)
    for name, value in measured.items():
        print(f"{name:<45}{value:>14,.3f}")
    if not smoke:
        keep("chain", "python -m benchmarks.chain", {"rounds": rounds, "parameters": parameters, "measured": measured})


def measure(folder: Path, rounds: int, parameters: int) -> dict[str, Any]:
    """Medians over the rounds, and the spread of the ratio of the two."""
    rng = np.random.default_rng(0)
    models = [{f"layer{n}": rng.random(parameters // 10, np.float32) for n in range(10)} for _ in range(CLIENTS + 1)]
    times: dict[str, list[tuple[float, float]]] = {"with": [], "without": []}
    peaks = {}
    with Recorder(folder / "without") as plain, Recorder(folder / "with") as chained:
        for number in range(1, rounds + 1):
            local = {f"client {place}": model for place, model in enumerate(models[1:])}
            fl_round = Round(number, start=models[0], local=local, end=models[number % CLIENTS + 1])
            unhashed = mock.patch.object(chain, "content", return_value=NOTHING)
            with unhashed, mock.patch.object(recording, "write_whole"):
                times["without"].append(_timed(plain, fl_round))
            peaks.setdefault("without", _peak())
            times["with"].append(_timed(chained, fl_round))
    peaks["with"] = _peak()
    begun = time.perf_counter()
    found = verify(folder / "with")
    seconds = time.perf_counter() - begun
    assert found.agrees
    clock, processor = ({k: [pair[which] for pair in of] for k, of in times.items()} for which in (0, 1))
    ratios = sorted(a / b for a, b in zip(clock["with"], clock["without"], strict=True))
    return {
        "seconds a round, without": statistics.median(clock["without"]),
        "seconds a round, with": statistics.median(clock["with"]),
        "ratio of the clock, median": statistics.median(ratios),
        "ratio of the clock, lower quartile": ratios[len(ratios) // 4],
        "ratio of the clock, upper quartile": ratios[-1 - len(ratios) // 4],
        "processor seconds a round, without": statistics.median(processor["without"]),
        "processor seconds a round, with": statistics.median(processor["with"]),
        "MB a round": found.bytes / found.rounds / 1e6,
        "peak MB after a round without": peaks["without"],
        "peak MB after all": peaks["with"],
        "verified, MB a second": found.bytes / seconds / 1e6,
    }


def _timed(recorder: Recorder, fl_round: Round) -> tuple[float, float]:
    clock, processor = time.perf_counter(), time.process_time()
    recorder.observe(fl_round)
    return time.perf_counter() - clock, time.process_time() - processor


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chain")
    parser.add_argument("--smoke", action="store_true")
    run(parser.parse_args().smoke)
