"""Each attack of the first trials, on a real federation of digits: whoever attacks is flagged, and nobody honest is."""

from dataclasses import replace

import pytest

pytest.importorskip("torch")

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
def test_nobody_is_flagged_where_nobody_attacks():
    assert flags(federation(None)) == []
