"""Runs whose model loses a part, frozen or healthy ones, and recordings of before the loss was written down."""

import json
from dataclasses import replace

import numpy as np

from fedcoast import Recorder, Round
from fedcoast.rounds.unmoved import unmoved_in

WIDTH = 10


def dying(lost, layer="body", frozen=0, clients=("ann", "bob")):
    """A round for each number in `lost`: so many of ten entries of the layer's weight are moved by nobody."""
    start = {f"{layer}.weight": np.zeros(WIDTH, np.float32), "head.weight": np.zeros(4, np.float32)}
    shown = []
    for number, still in enumerate(lost, 1):
        step = {name: np.ones_like(array) for name, array in start.items()}
        step[f"{layer}.weight"][:still] = 0
        step["head.weight"][:frozen] = 0
        local = {
            c: {n: a + np.float32(0.1 * (i + 1)) * step[n] for n, a in start.items()} for i, c in enumerate(clients)
        }
        end = {n: a + np.float32(0.15) * step[n] for n, a in start.items()}
        shown.append(Round(number, start=start, local=local, end=end))
        start = end
    return shown


def record(folder, rounds, **options):
    with Recorder(folder, **options) as recorder:
        for fl_round in rounds:
            recorder.observe(fl_round)
    return folder


def of_before(folder):
    """The same recording as a fedcoast wrote it that kept neither shares nor a chain."""
    for path in folder.glob("rounds/*/round.json"):
        facts = json.loads(path.read_text())
        del facts["unmoved"]
        path.write_text(json.dumps(facts))
        (path.parent / "link.json").unlink()
    about = json.loads((folder / "run.json").read_text())
    del about["chain"]
    (folder / "run.json").write_text(json.dumps(about))
    return folder


def with_unmoved(rounds):
    """The same rounds, each with its unmoved shares, where they can be known."""
    for fl_round in rounds:
        yield replace(fl_round, unmoved=unmoved_in(fl_round))
