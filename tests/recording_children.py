"""Processes that record, to be killed by a test.

Run as a script, `recording_children.py JOB` forks one child for each folder it reads from its input, says the child's
id, and `gone` after it was told to `bury` it.
"""

import os
import sys
import traceback
from itertools import count
from pathlib import Path

import numpy as np

from fedcoast import CoAst, Recorder, Round, replay

CLIENTS = ("ann", "bob", "cid", "dora")
LAST = 40


def model(*seed):
    rng = np.random.default_rng(seed)
    return {"w": rng.normal(size=(20, 10)).astype(np.float32), "b": rng.normal(size=10)}


def nth_round(number):
    """A round whose every bit follows from its number."""
    local = {client: model(number, place) for place, client in enumerate(CLIENTS, start=1)}
    weights = {client: float(number * place) for place, client in enumerate(CLIENTS, start=1)}
    return Round(number, start=model(number - 1, 0), local=local, end=model(number, 0), weights=weights)


def say(text):
    os.write(1, f"{text}\n".encode())


def record(folder):
    """Record rounds until the end of time, and say the number of each that is finished."""
    with Recorder(folder) as recorder:
        for number in count((recorder.last_round or 0) + 1):
            recorder.observe(nth_round(number))
            say(number)


def assess(folder):
    """Record and assess up to the last round, the assessor saved after each, and leave the answer in a file."""
    with Recorder(folder / "run") as recorder:
        assessor = CoAst(keep=0.3, horizon=3)
        if (folder / "state").exists():
            assessor.restore(folder / "state")
        for fl_round in replay(folder / "run", after=assessor.last_round):
            assessor.observe(fl_round)
        for number in range((recorder.last_round or 0) + 1, LAST + 1):
            recorder.observe(nth_round(number))
            assessor.observe(nth_round(number))
            assessor.save(folder / "state")
            say(number)
    (folder / "answer.part").write_text(assessor.assessment().to_json())
    (folder / "answer.part").rename(folder / "answer.json")
    say("done")


def spill(folder):
    """Assess up to the last round with all that is held in files, saved after every other round; then the answer."""
    assessor = CoAst(keep=0.3, horizon=3, reference="votes", signal="pruned", spill_dir=folder / "spill")
    if (folder / "state").exists():
        assessor.restore(folder / "state")
    for number in range((assessor.last_round or 0) + 1, LAST + 1):
        assessor.observe(nth_round(number))
        if number % 2 == 0:
            assessor.save(folder / "state")
        say(number)
    (folder / "answer.part").write_text(assessor.assessment().to_json())
    (folder / "answer.part").rename(folder / "answer.json")
    say("done")


def serve(job):
    """One child for each folder; a dead child keeps its id, so that nobody else is killed, until it is asked for."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                say(f"child {os.getpid()}")
                job(Path(line.rstrip("\n")))
            except BaseException:
                traceback.print_exc()
                say("failed")
            os._exit(0)
        assert sys.stdin.readline() == "bury\n"
        os.waitpid(child, 0)
        say("gone")


if __name__ == "__main__":
    serve({"record": record, "assess": assess, "spill": spill}[sys.argv[1]])
