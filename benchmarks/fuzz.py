"""Every reader of files and messages from strangers, fed with millions of bad ones.

    python -m benchmarks.fuzz [--smoke] [--executions 10_000_000] [--minutes M] [--engine mutation|atheris] [--chunk N]

Work is done in chunks, each in one process with at most 2 GB of memory and 5 seconds of processor time for one input; a
process that stands still for five minutes is ended. Files lie in memory. What was done is kept in results/fuzz.json
after each chunk, and the command goes on from there; small chunks reach all readers soon. `mutation` changes good
files by rules of its own (`fuzz_mutations`). `atheris` is guided by coverage, and needs the package of that name. A
reader may refuse with an error of fedcoast; any other error, a death of the process or a hang is a finding, kept with
its input.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.fuzz_child import HEADER, SHARED
from benchmarks.fuzz_targets import names, share
from benchmarks.record import RESULTS, keep

NAME = "fuzz"
COMMAND = "python -m benchmarks.fuzz"
EXECUTIONS, CHUNK = 10_000_000, 100_000
LIMITS = {"FEDCOAST_MAX_MODEL": "256MB", "FEDCOAST_MAX_DATASET": "256MB", "FEDCOAST_MAX_JSON": "64MB"}
CORPUS = Path("build") / "fuzz"
MOST_FINDINGS = 20  # of one reader that are kept with their input
LONGEST_WAIT = 300.0  # seconds by the clock without another input, after which whatever is going on is ended


def run(
    smoke: bool,
    executions: int = EXECUTIONS,
    minutes: float | None = None,
    engine: str = "mutation",
    chunk: int = CHUNK,
) -> None:
    """All readers in turn, the one that is furthest behind first."""
    file = RESULTS / f"{NAME}.json"
    done: dict[str, Any] = {} if smoke or not file.exists() else json.loads(file.read_text(encoding="utf-8"))["readers"]
    until = None if minutes is None else time.monotonic() + 60 * minutes
    if smoke:
        for name in names():
            fuzz(name, done, 40, engine)
            print(line(name, done[name]), flush=True)
    while not smoke and total(done, "executions") < executions and (until is None or time.monotonic() < until):
        name = min(names(), key=lambda one: done.get(one, {}).get("executions", 0) / share(one))
        count = max(min(500, chunk), min(int(chunk * share(name)), executions - total(done, "executions")))
        fuzz(name, done, count, engine)
        print(line(name, done[name]), flush=True)
        keep(NAME, COMMAND, {"totals": totals(done), "limits": LIMITS, "readers": done})
    found = totals(done)
    print(json.dumps(found))
    if smoke and found["errors"] + found["deaths"] + found["hangs"]:
        raise SystemExit("a reader broke; see above")


def fuzz(name: str, done: dict[str, Any], count: int, engine: str) -> None:
    """One chunk, added to what is known of the reader."""
    known = done.setdefault(name, _nothing())
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "shared").write_bytes(bytes(SHARED))
        corpus = CORPUS / engine
        if engine == "atheris":
            corpus.mkdir(parents=True, exist_ok=True)
            (place / "corpus").symlink_to(corpus.resolve())
        begun = time.monotonic()
        arguments = [engine, name, str(known["chunks"]), str(count), str(place)]
        code, used, text = _ended([sys.executable, "-m", "benchmarks.fuzz_child", *arguments], place / "shared")
        _take(known, place, code, text, engine)
        known["chunks"] += 1
        known["seconds"] = round(known["seconds"] + time.monotonic() - begun, 1)
        known["processor s"] = round(known["processor s"] + used.ru_utime + used.ru_stime, 1)
        known["peak MB"] = max(known["peak MB"], used.ru_maxrss // 1024)
        if (place / "scratch").exists():
            shutil.rmtree((place / "scratch").read_text(), ignore_errors=True)


def _nothing() -> dict[str, Any]:
    counts = dict.fromkeys(("executions", "chunks", "errors", "deaths", "hangs", "peak MB"), 0)
    times = dict.fromkeys(("seconds", "processor s", "slowest s", "slowest by the clock s"), 0.0)
    return {**counts, **times, "by engine": {}, "findings": []}


def _ended(command: list[str], shared: Path) -> tuple[int, Any, str]:
    """How a process ended, what it used, and what it complained of."""
    environment = {**os.environ, **LIMITS, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        tried, since = 0, time.monotonic()
        while True:
            process, status, used = os.wait4(child.pid, os.WNOHANG)
            if process:
                break
            with shared.open("rb") as file:
                now, *_ = HEADER.unpack(file.read(HEADER.size))
            if now != tried:
                tried, since = now, time.monotonic()
            if time.monotonic() - since > LONGEST_WAIT:
                child.send_signal(signal.SIGABRT)
            time.sleep(0.1)
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        complaint = [row for row in output.read().decode("utf-8", "replace").splitlines() if "INFO: Instr" not in row]
        text = "\n".join(complaint[-60:]).replace(f"{RESULTS.parent}/", "")
    return child.returncode, used, text


def _take(known: dict[str, Any], place: Path, code: int, text: str, engine: str) -> None:
    """Add what a chunk left behind, however it ended."""
    shared = (place / "shared").read_bytes()
    tried, slowest, longest, length = HEADER.unpack_from(shared)
    known["executions"] += tried
    known["by engine"][engine] = known["by engine"].get(engine, 0) + tried
    known["slowest s"] = round(max(known["slowest s"], slowest), 3)
    known["slowest by the clock s"] = round(max(known["slowest by the clock s"], longest), 3)
    found = place / "findings.jsonl"
    findings = [json.loads(row) for row in found.read_text(encoding="utf-8").splitlines()] if found.exists() else []
    known["errors"] += len(findings)
    if code:
        kind = "hangs" if code in (-signal.SIGPROF, -signal.SIGABRT) else "deaths"
        known[kind] += 1
        last = shared[HEADER.size : HEADER.size + length][:20_000].hex()
        findings.append({"error": f"{kind}: exit code {code}", "where": text, "input": last})
    seen = {(finding["error"].partition(":")[0], finding["where"]) for finding in known["findings"]}
    for finding in findings:
        if (finding["error"].partition(":")[0], finding["where"]) not in seen:
            known["findings"] = [*known["findings"], finding][:MOST_FINDINGS]


def total(done: dict[str, Any], name: str) -> Any:
    return sum(known[name] for known in done.values())


def totals(done: dict[str, Any]) -> dict[str, Any]:
    """Sums over all readers, and the worst of each limit."""
    sums = {name: total(done, name) for name in ("executions", "errors", "deaths", "hangs")}
    engines: dict[str, int] = {}
    for known in done.values():
        for engine, count in known["by engine"].items():
            engines[engine] = engines.get(engine, 0) + count
    limited = ("slowest s", "slowest by the clock s", "peak MB")
    worst = {name: max((known[name] for known in done.values()), default=0) for name in limited}
    times = {name: round(total(done, name)) for name in ("seconds", "processor s")}
    return {**sums, **worst, "readers": len(done), **times, "by engine": engines}


def line(name: str, known: dict[str, Any]) -> str:
    text = f"{name:<22}{known['executions']:>11,} inputs, slowest {known['slowest s']:.2f} s, {known['peak MB']} MB"
    broken = [f"{known[kind]} {kind}" for kind in ("errors", "deaths", "hangs") if known[kind]]
    worst = [f"  {finding['error']} at {finding['where'][-300:]}" for finding in known["findings"]]
    return "\n".join([", ".join([text, *broken]), *worst])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a few inputs for each reader; nothing is written")
    parser.add_argument("--executions", type=int, default=EXECUTIONS)
    parser.add_argument("--minutes", type=float, help="begin no chunk after so many")
    parser.add_argument("--chunk", type=int, default=CHUNK, help="inputs of one process")
    parser.add_argument("--engine", choices=("mutation", "atheris"), default="mutation")
    given = parser.parse_args()
    run(given.smoke, given.executions, given.minutes, given.engine, given.chunk)
