"""Accounts to report on: of small federations, of names that would do harm, and of a thousand clients."""

from datetime import UTC, datetime

import numpy as np

from fedcoast import Assessment
from fedcoast.methods.layer_credits import LayerCredits
from fedcoast.reports.assess_rounds import assess_rounds, build_report
from federations import federation

SCRIPT = "<script>alert(1)</script>"
RIGHT_TO_LEFT = "مستشفى القاهرة"
NASTY = (
    SCRIPT,
    RIGHT_TO_LEFT,
    "</script><img src=x onerror=alert(2)>",
    "\u202egpj.exe",
    "a | b *c* [d](e)",
    "$&{x}%{y}",
)
MADE = datetime(2026, 11, 16, 8, 30, tzinfo=UTC)


def small(rounds=30, clients=("ann", "bob", "cid"), others=None, **options):
    """A federation of a few clients, the first the best."""
    return assess_rounds(federation(rounds=rounds, clients=clients), None, others, made=MADE, title="small", **options)


def clear(clients=("ann", "bob", "cid")):
    """A federation with votes enough to tell the clients apart; of four, all but the last two."""
    layers = {"hidden.weight": (40, 40), "head.weight": (10, 10)}
    return assess_rounds(federation(rounds=45, clients=clients, layers=layers), made=MADE, title="clear")


def nasty(rounds=20):
    return assess_rounds(federation(rounds=rounds, clients=NASTY), title=SCRIPT, made=MADE, facts={SCRIPT: SCRIPT})


def large(clients=1000, rounds=1000, layers=60, draws=100):
    """As large as a report has to bear: everyone takes part in six rounds of ten."""
    rng = np.random.default_rng(0)
    credits = np.round(np.linspace(60, -20, clients)[:, None] + 60 * rng.normal(size=(clients, rounds))).astype(int)
    there = rng.random((clients, rounds)) < 0.6
    names = [f"hospital-{number:04d}" for number in rng.permutation(clients)]
    assessment = Assessment(
        "coast",
        scores={name: int(credits[place][there[place]].sum()) for place, name in enumerate(names)},
        credits={
            number + 1: {names[place]: int(credits[place, number]) for place in np.flatnonzero(there[:, number])}
            for number in range(rounds)
        },
        rounds_scored={name: int(there[place].sum()) for place, name in enumerate(names)},
        zero_is_idle=True,
        dependence_span=4,
    )
    report = build_report(assessment, draws=draws, title="large", made=MADE)
    votes = {name: np.full(layers, 100) for name in names}
    found = LayerCredits(
        tuple(f"blocks.{layer}.weight" for layer in range(layers)),
        {name: rng.integers(-20, 80, layers) for name in names},
        votes,
    )
    return report.__class__(**{**vars(report), "layers": found})
