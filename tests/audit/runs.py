"""Small recorded runs to be audited."""

import json

import numpy as np

from fedcoast import CoAst, Recorder, Round, replay
from federations import federation, show, with_upload

CLIENTS = ("ann", "bob", 3)
ROUNDS = 5


def rounds(count=ROUNDS):
    """A federation with weights, metrics and, in round 2, an upload that cannot be used."""
    made = []
    for fl_round in federation(seed=4, rounds=count, clients=CLIENTS):
        if fl_round.number == 2:
            broken = {name: array * np.nan for name, array in fl_round.local["bob"].items()}
            fl_round = with_upload(fl_round, "bob", broken)
        weights = {client: 10.0 * (place + 1) for place, client in enumerate(CLIENTS)}
        made.append(
            Round(fl_round.number, fl_round.start, fl_round.local, fl_round.end, weights, metrics={"accuracy": 0.5})
        )
    return made


def record(folder, count=ROUNDS, ballot_keep=None, first=0):
    with Recorder(folder, about={"what": "a test"}, ballot_keep=ballot_keep) as recorder:
        for fl_round in rounds(count)[first:]:
            recorder.observe(fl_round)
        return recorder.head


def coast():
    return CoAst(keep=0.3, horizon=2)


def answer(folder):
    return show(coast(), replay(folder))


def without_chain(folder):
    """The folder as a fedcoast that kept no chain would have written it."""
    for link in folder.glob("rounds/*/link.json"):
        link.unlink()
    about = json.loads((folder / "run.json").read_text())
    del about["chain"]
    (folder / "run.json").write_text(json.dumps(about, indent=1))
