"""A federation whose clients have names that trackers have to bear."""

from dataclasses import replace
from functools import partial

import pytest

from fedcoast import CoAst
from fedcoast.analysis.running_verdicts import CODES
from fedcoast.analysis.uncertainty import uncertainty
from fedcoast.analysis.verdicts import verdicts
from federations import federation, show, with_upload

NASTY = (
    "berlin",
    "7",
    7,
    "a/b",
    "a_b",
    "St. Mary's",
    "<script>alert(1)</script>",
    "مستشفى",
    "é",
    "..",
    "\ud800",
    "x" * 250,
)


def rounds(count=6, clients=NASTY):
    """The first client's upload cannot be used in round 3."""
    made = [
        replace(fl_round, metrics={"test accuracy": fl_round.number / 10}) for fl_round in federation(3, count, clients)
    ]
    return [with_upload(fl_round, clients[0], {}) if fl_round.number == 3 else fl_round for fl_round in made]


def coast():
    return CoAst(keep=0.3, horizon=2)


def expected(count=6, clients=NASTY):
    """What an assessor alone says after each round."""
    return {number: show(coast(), rounds(count, clients)[:number]) for number in range(1, count + 1)}


def check_log(logged, name, count=6, clients=NASTY):
    """All a tracker logged, as {tag: {step: value}}, is what the assessor said; `name(client)` is how it calls it."""
    answers = expected(count, clients)
    credited = {}
    for step, answer in answers.items():
        for client in clients:
            at = partial(_at, logged, name(client), step)
            counted = answer.rounds_scored[client] > 0
            assert at("score") == (about(answer.scores[client]) if counted else None), (step, client)
            assert at("rank") == (answer.ranks[client] if counted else None)
            assert (at("coverage") is not None) == counted
            assert at("verdict") == (CODES[verdicts(answer, uncertainty(answer))[client]] if counted else None)
            assert at("quarantined") == (1 if client == clients[0] and step >= 3 else None)
            credited[client] = credited.get(client, 0) + (at("credit") or 0)
            lasting = sum(of.get(client, 0) for n, of in answer.lasting_credits.items() if n not in answer.pending)
            assert credited[client] == about(lasting), "credits add up to the score before its factor"
        assert logged["fedcoast/round/answered"][step] == len(clients)
        assert logged["fedcoast/round/quarantined"][step] == (1 if step == 3 else 0)
        assert logged["fedcoast/round/pending"][step] == len(answer.pending)
    accuracy = next(steps for tag, steps in logged.items() if tag.startswith("fedcoast/metric/test"))
    assert {step: round(value, 6) for step, value in accuracy.items()} == {n: n / 10 for n in answers}


def about(number):
    """The number as TensorBoard keeps it, in float32."""
    return pytest.approx(number, rel=1e-6, abs=1e-6)


def _at(logged, name, step, kind):
    return logged.get(f"fedcoast/{kind}/{name}", {}).get(step)
