"""Each attack of the first trials, on a real federation of digits: whoever attacks is flagged, and nobody honest is."""

from dataclasses import replace
from statistics import median

import pytest

pytest.importorskip("torch")

from fedcoast import CoAst
from fedcoast.analysis.flags import flags
from fedcoast.simulation.attacks import ATTACKS
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.presets import preset

CLIENTS, ATTACKER = 6, 3
TRIED = {
    "zero": "idle",
    "noise": "noise",
    "matched-noise": "noise",
    "echo": "replay",
    "mean-of-steps": "replay",
    "extrapolation": "replay",
    "reverse": "opposed",
    "sign-flip": "opposed",
    "scale-5": "scale",
    "scale-100": "scale",
    "copy": "same upload",
    "copy-late": "copy",
    "middle": "poisoned layers",
    "steering": "steering",
    "sybil": "same upload",
    "weight-steering": "claimed weight",
    "half-time": "change",
}


def federation(attack):
    sizes = {"rounds": 14, "batch": 48, "learning_rate": 0.004}
    honest = preset("quick", "digits", "deep-mlp", setting="noise", clients=CLIENTS, seed=5, **sizes)
    return Federation(honest if attack is None else replace(honest, attack=attack, attacker=ATTACKER))


@pytest.mark.slow
@pytest.mark.parametrize("attack", TRIED)
def test_every_attack_of_the_trials_is_flagged_for_what_it_is(attack):
    found = flags(federation(attack))
    kinds = {}
    for flag in found:
        kinds.setdefault(flag.client, set()).add(flag.kind)
    attackers = ATTACKS[attack].identities(ATTACKER, CLIENTS)
    assert all(TRIED[attack] in kinds.get(client, ()) for client in attackers), found
    honest = {client for client, of in kinds.items() if client not in attackers and of != {"same upload"}}
    assert honest == set()


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["zero", "noise", "matched-noise", "echo", "steering", "reverse", "middle"])
def test_a_rider_scores_no_more_than_the_median_honest_client(attack):
    """Without regard to flags. A copy, sybils and colluders do score more, as docs/attacks.md shows."""
    assessor = CoAst()
    for fl_round in federation(attack):
        assessor.observe(fl_round)
    scores = assessor.assessment().scores
    assert scores[ATTACKER] <= median(score for client, score in scores.items() if client != ATTACKER)


@pytest.mark.slow
def test_nobody_is_flagged_where_nobody_attacks():
    assert flags(federation(None)) == []
