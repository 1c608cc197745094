"""Memory, disk and cold starts, each measured in a process of its own: peaks belong to a process, and so do caches."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.models import named, sizes

SAMPLE = 0.005  # seconds between two looks at memory
HORIZON = 2


def in_a_process(function: str, *arguments: object, **environment: str) -> dict[str, Any]:
    """Call a function of this module in a new process; it answers in JSON."""
    code = f"import json; from benchmarks import footprint; print(json.dumps(footprint.{function}(*{arguments!r})))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{function}{arguments} failed:\n{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def streamed(parameters: int, clients: int, rounds: int) -> dict[str, Any]:
    """Rounds of streamed uploads assessed with a folder to spill to: peak private memory, disk and seconds.

    The global model before and after a round and one upload are in memory, as on a server; all else is the assessor's.
    """
    from fedcoast import CoAst, LazyModels, Round
    from fedcoast.kernels.compiling import kernels

    kernels("float32", wait=True)
    with tempfile.TemporaryDirectory(prefix="fedcoast-speed-") as scratch:
        noise = _noise(Path(scratch) / "noise", parameters)
        start, end, upload = (np.zeros(parameters, np.float32) for _ in range(3))
        np.copyto(start, noise)
        start *= np.float32(20)
        spill = Path(scratch) / "spill"
        assessor = CoAst.votes(horizon=HORIZON, num_threads=1, spill_dir=spill)
        seconds_taken = []
        with _watched(spill) as peak:
            before = _private()
            for number in range(1, rounds + 1):
                np.add(start, noise, out=end)

                def load(client: int, number: int = number, start: Any = start) -> dict[str, Any]:
                    shift = (client * 7919 + number * 104729) % parameters  # the same noise elsewhere: another client
                    np.add(start[: parameters - shift], noise[shift:], out=upload[: parameters - shift])
                    np.add(start[parameters - shift :], noise[:shift], out=upload[parameters - shift :])
                    return _cut(upload)

                loaders = {client: lambda client=client: load(client) for client in range(clients)}
                began = time.perf_counter()
                assessor.observe(Round(number, _cut(start), LazyModels(loaders), _cut(end)))
                seconds_taken.append(time.perf_counter() - began)
                start, end = end, start
            scores = assessor.assessment().scores
    assert len(scores) == clients
    return {
        "parameters": parameters,
        "clients": clients,
        "rounds": rounds,
        "private GB": peak["private"] / 1e9,
        "of which before the first round, three models included": before / 1e9,
        "disk GB": peak["disk"] / 1e9,
        "seconds a round": min(seconds_taken),
    }


def cold_start(parameters: int, clients: int) -> dict[str, Any]:
    """The first round that a fresh process is shown, against the same round once all is warm."""
    began = time.perf_counter()
    from fedcoast import CoAst, Round
    from fedcoast.kernels.compiling import kernels

    imported = time.perf_counter() - began
    noise = _noise(None, parameters)
    start = noise * np.float32(20)
    local = {client: named(_layers(start + np.roll(noise, 7919 * client))) for client in range(clients)}
    models = named(_layers(start)), named(_layers(start + noise))
    assessor, seconds_taken = CoAst.votes(num_threads=1), []
    for number in range(1, 9):
        began = time.perf_counter()
        assessor.observe(Round(number, models[0], local, models[1]))
        seconds_taken.append(time.perf_counter() - began)
        if number == 1:
            began = time.perf_counter()
            kernels("float32", wait=True)
            ready = time.perf_counter() - began
    warm = min(seconds_taken[1:])
    return {
        "import s": imported,
        "first round s": seconds_taken[0],
        "warm round s": warm,
        "waited s": seconds_taken[0] - warm,
        "compiled s after the first round": ready,
    }


def _noise(file: Path | None, parameters: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Updates to draw from; in a file, mapped, so that they are nobody's private memory."""
    rng = np.random.default_rng(0)
    if file is None:
        return np.float32(0.002) * rng.standard_normal(parameters, np.float32)
    with file.open("wb") as out:
        for at in range(0, parameters, 1 << 20):
            piece = rng.standard_normal(min(1 << 20, parameters - at), np.float32)
            out.write((np.float32(0.002) * piece).tobytes())
    return np.asarray(np.memmap(file, np.float32, "r"))


def _layers(flat: Any) -> list[Any]:
    layers, at = [], 0
    for size in sizes(flat.size):
        layers.append(flat[at : at + size])
        at += size
    return layers


def _cut(flat: Any) -> dict[str, Any]:
    return named(_layers(flat))


@contextmanager
def _watched(folder: Path) -> Iterator[dict[str, int]]:
    """The most private memory, and the most bytes in a folder, while this lasts."""
    peak, over = {"private": 0, "disk": 0}, threading.Event()

    def look() -> None:
        turn = 0
        while not over.wait(SAMPLE):
            peak["private"] = max(peak["private"], _private())
            turn += 1
            if turn % 100 == 0:
                peak["disk"] = max(peak["disk"], _bytes_in(folder))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield peak
    finally:
        over.set()
        watcher.join()
        peak["disk"] = max(peak["disk"], _bytes_in(folder))


def _private() -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def _bytes_in(folder: Path) -> int:
    total = 0
    for path in folder.glob("*"):
        try:
            total += path.stat().st_blocks * 512
        except OSError:  # it was deleted just now
            continue
    return total
