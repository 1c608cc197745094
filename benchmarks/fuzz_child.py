"""One chunk of fuzzing in a process of its own: `python -m benchmarks.fuzz_child ENGINE TARGET CHUNK COUNT FOLDER`.

The memory of the process is limited, and a reader that works for five seconds is ended by the system. What the parent
must know even then lies in a file that both map: how many inputs were tried, the slowest, and the last input.
"""

import gc
import hashlib
import json
import logging
import mmap
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEMORY = 2 * 10**9
SECONDS = 5  # of processor time for one input
SHARED = 100_000
HEADER = struct.Struct("<QddQ")  # inputs, seconds of the slowest (of the processor, by the clock), length of the last


def main(engine: str, name: str, chunk: int, count: int, folder: Path) -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, limits[1]))
    with (folder / "shared").open("r+b") as file:
        shared = mmap.mmap(file.fileno(), SHARED)
    memory = Path("/dev/shm")
    scratch = Path(tempfile.mkdtemp(prefix="fedcoast-fuzz-", dir=memory if memory.is_dir() else None))
    (folder / "scratch").write_text(str(scratch))
    try:
        if engine == "atheris":
            _atheris(name, count, chunk, scratch, folder, shared)
        else:
            _mutate(name, count, chunk, scratch, folder, shared)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _mutate(name: str, count: int, chunk: int, scratch: Path, folder: Path, shared: mmap.mmap) -> None:
    from benchmarks.fuzz_mutations import mutated
    from benchmarks.fuzz_targets import target

    chosen = target(name, scratch)
    rng = random.Random(f"{name} {chunk}")
    trial = _trial(chosen.read, folder, shared)
    for example in chosen.examples:  # a reader that refuses good files would make all the rest worthless
        chosen.read(example)
    for done in range(count):
        trial(mutated(rng, chosen.examples))
        if done % 5000 == 4999:
            gc.collect()


def _atheris(name: str, count: int, chunk: int, scratch: Path, folder: Path, shared: mmap.mmap) -> None:
    import atheris

    with atheris.instrument_imports(include=["fedcoast"]):
        from benchmarks.fuzz_targets import target

        chosen = target(name, scratch)
        for example in chosen.examples:
            chosen.read(example)
    corpus = folder / "corpus" / hashlib.sha256(name.encode()).hexdigest()[:12]
    corpus.mkdir(parents=True, exist_ok=True)
    for place, example in enumerate(chosen.examples):
        (corpus / f"example-{place}").write_bytes(example)
    options = [
        f"-runs={count}",
        f"-seed={chunk + 1}",
        "-timeout=600",  # by the clock; 0 would end whatever stands still for a second on a busy machine
        f"-artifact_prefix={folder}/",
        "-rss_limit_mb=0",
        "-max_len=60000",
        "-verbosity=0",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], _trial(chosen.read, folder, shared))
    atheris.Fuzz()


def _trial(read: Callable[[bytes], object], folder: Path, shared: mmap.mmap) -> Callable[[bytes], None]:
    from fedcoast.errors import FedcoastError

    tried, slowest, longest = 0, 0.0, 0.0
    known: set[str] = set()

    def trial(data: bytes) -> None:
        nonlocal tried, slowest, longest
        prefix = data[: SHARED - HEADER.size]
        shared[HEADER.size : HEADER.size + len(prefix)] = prefix
        tried += 1
        HEADER.pack_into(shared, 0, tried, slowest, longest, len(prefix))
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # nobody handles it: the system ends the process
        begun, clock = time.process_time(), time.monotonic()
        try:
            read(data)
        except FedcoastError:
            pass
        except Exception as error:
            _note(error, data, folder, known)
        slowest, longest = max(slowest, time.process_time() - begun), max(longest, time.monotonic() - clock)
        signal.setitimer(signal.ITIMER_PROF, 0)

    return trial


def _note(error: Exception, data: bytes, folder: Path, known: set[str]) -> None:
    """Write a finding down once for each line that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "/fedcoast/" in frame.filename]
    where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed([*ours, last]))
    finding: dict[str, Any] = {"error": f"{type(error).__name__}: {error}"[:300], "where": where}
    if (key := f"{type(error).__name__} {where}") in known:
        return
    known.add(key)
    with (folder / "findings.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({**finding, "input": data[:20_000].hex()}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
