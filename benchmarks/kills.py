"""A thousand kills without warning, of processes that record, assess, resume and serve.

    python -m benchmarks.kills [--smoke] [--kills 1000] [--minutes M]

Each child works on a folder and says which rounds it has finished; it is killed (SIGKILL) at a random moment, and the
folder is looked at: everything that was finished must be there to the last bit, the chain of hashes must hold, and the
next child must be able to go on. `assess` must end in the same answer as a process that nobody killed; `resume` is
killed while it goes on with a run, from the first moment on; `serve` is killed while a viewer reads its page, and the
next server must show the rounds. Kept in results/kills.json after every folder; the command goes on from there.
"""

import argparse
import json
import random
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.kill_jobs import LAST, nth_round
from benchmarks.killing import Children, check_whole, half_written
from benchmarks.record import RESULTS, keep
from fedcoast import CoAst, replay

NAME = "kills"
COMMAND = "python -m benchmarks.kills"
JOBS = ("record", "assess", "resume", "serve")
KILLS, OF_ONE_FOLDER = 1000, 5
LATEST = {"record": 0.08, "assess": 0.05, "resume": 0.3, "serve": 0.3}  # seconds until the kill
WAIT = 600.0  # seconds for a server to come up and to have read the run, on a machine that may be busy


def run(smoke: bool, kills: int = KILLS, minutes: float | None = None) -> None:
    """The jobs in turn, a folder each."""
    file = RESULTS / f"{NAME}.json"
    done: dict[str, Any] = {} if smoke or not file.exists() else json.loads(file.read_text(encoding="utf-8"))["jobs"]
    until = None if minutes is None else time.monotonic() + 60 * minutes
    wanted = 12 if smoke else kills
    while _total(done, "kills") < wanted and (until is None or time.monotonic() < until):
        job = min(JOBS, key=lambda one: done.get(one, {}).get("kills", 0))
        known = done.setdefault(job, {"kills": 0, "lost": 0, "while writing": 0, "rounds": 0, "seconds": 0, "what": []})
        begun = time.monotonic()
        _one_folder(job, known, 3 if smoke else OF_ONE_FOLDER)
        known["seconds"] = round(known["seconds"] + time.monotonic() - begun, 1)
        print(
            f"{job}: {known['kills']} kills, {known['while writing']} of them in a round, {known['lost']} lost",
            flush=True,
        )
        if not smoke:
            keep(NAME, COMMAND, {"kills": _total(done, "kills"), "lost": _total(done, "lost"), "jobs": done})
    if smoke and _total(done, "lost"):
        raise SystemExit("something finished was lost")


def _one_folder(job: str, known: dict[str, Any], most: int) -> None:
    chance = random.Random(f"{job} {known['kills']}")
    with tempfile.TemporaryDirectory() as place, Children(job) as children:
        folder = Path(place) / "job"
        folder.mkdir()
        run_folder = folder / "run" if job in ("assess", "resume") else folder
        last = 0
        for _ in range(most):
            seconds = chance.uniform(0, LATEST[job])
            try:
                known["kills"] += 1
                if job == "serve":
                    reported = _kill_server(children, folder, seconds, last)
                else:
                    reported = children.run_and_kill(folder, seconds, after_first=job != "resume")
                numbers = [word for word in reported if word.isdigit()]
                known["while writing"] += bool(half_written(run_folder))
                found = check_whole(run_folder, numbers)
                assert found >= last, f"{last} rounds were there, and now {found}"
                known["rounds"] += found - last
                last = found
                if job == "assess" and (folder / "answer.json").exists():
                    _same_answer(folder)
                    break
            except AssertionError as error:
                known["lost"] += 1
                known["what"].append(str(error)[:500])
                break


def _kill_server(children: Children, folder: Path, seconds: float, last: int) -> list[str]:
    """Kill a server while a viewer reads its page; before that it must show the rounds that were there."""
    child = children.start(folder)
    address = children.hear().removeprefix("address ")
    until = time.monotonic() + WAIT
    shown = -1
    while shown < last and time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"{address}view", timeout=WAIT) as answer:
                words = json.load(answer)["status"]["text"].split()
            shown = int(words[-1]) if words[-1].isdigit() else 0
        except (OSError, ValueError):  # not up yet
            time.sleep(0.01)
    with urllib.request.urlopen(f"{address}events", timeout=WAIT) as viewer:
        viewer.readline()
        time.sleep(seconds)
        reply = children.kill(child)
    assert shown >= last, f"{last} rounds are there, and the page shows {shown}"
    return reply


def _same_answer(folder: Path) -> None:
    rounds = [nth_round(number) for number in range(1, LAST + 1)]
    uninterrupted, replayed = CoAst(keep=0.3, horizon=3), CoAst(keep=0.3, horizon=3)
    for fl_round in rounds:
        uninterrupted.observe(fl_round)
    for fl_round in replay(folder / "run"):
        replayed.observe(fl_round)
    answers = {uninterrupted.assessment().to_json(), replayed.assessment().to_json()}
    assert answers == {(folder / "answer.json").read_text()}, "the answer differs"


def _total(done: dict[str, Any], name: str) -> int:
    return sum(known[name] for known in done.values())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="twelve kills; nothing is written")
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--minutes", type=float)
    given = parser.parse_args()
    run(given.smoke, given.kills, given.minutes)
