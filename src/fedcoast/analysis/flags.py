"""Flags: evidence that an upload is not what honest training gives. They are shown, and never change a score.

Each flag rests on something that a reader can check in the run: an upload that equals another model, an update that is
made of earlier global steps, one that repeats itself, that has nothing to do with what all others do, or that is far
out of scale. `docs/attacks.md` shows which attacks are found, and how often honest clients are flagged.

A client is measured against the others of the same round, never against a fixed number alone. Of large models every
n-th entry of each layer is looked at, at most 4,096 of each.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

import numpy as np

from fedcoast.analysis.behaviour import Behaviour, Observed, series
from fedcoast.errors import Client
from fedcoast.rounds import Round

KINDS = (
    "idle",
    "repeated",
    "copy",
    "replay",
    "steering",
    "unrelated",
    "opposed",
    "poisoned layers",
    "scale",
    "claimed weight",
    "change",
)
EVIDENT_ROUNDS = 3  # an exact coincidence in so many rounds, or in all if there are fewer
REPLAYED = 0.97  # share of an update that earlier global steps explain
SAME_DIRECTION, ABOVE_OTHERS = 0.95, 0.2  # cosine with the own last update, and how far above the others' median
COMMON, UNRELATED = 0.1, 0.03  # others' agreement from which a round tells something, and the flagged client's own
OPPOSED = -0.1
FEWEST_ROUNDS = 5
OUT_OF_SCALE, CLAIMED = 4.0, 10.0  # times the others' median length, and weight
SPREADS = 6.0  # of the others' own spread
CHANGED = 8.0  # standard errors between the agreement before and after


@dataclass(frozen=True)
class Flag:
    """One finding about one client: what kind it is, in how many rounds it shows, and a sentence for people."""

    client: Client
    kind: str
    rounds: int
    evidence: str


def flags(rounds: Iterable[Round]) -> list[Flag]:
    """All flags of a federation, by client; empty where nothing stands out, or uploads are known by ballots only."""
    behaviour = Behaviour()
    for fl_round in rounds:
        behaviour.observe(fl_round)
    return flags_of(behaviour)


def flags_of(behaviour: Behaviour) -> list[Flag]:
    """The flags of the rounds that were observed, for whoever goes through the rounds anyway."""
    by_client = behaviour.by_client
    found = []
    for client, observed in by_client.items():
        others = {other: rows for other, rows in by_client.items() if other != client}
        found += [flag for rule in RULES if (flag := rule(client, observed, others)) is not None]
    return found


Others = Mapping[Client, list[Observed]]


def _idle(client: Client, observed: list[Observed], others: Others) -> Flag | None:
    return _coincidence(client, observed, "idle", [row.equals_start for row in observed], "the model it was sent")


def _repeated(client: Client, observed: list[Observed], others: Others) -> Flag | None:
    same = [row.equals_own_last and not row.equals_start for row in observed]
    return _coincidence(client, observed, "repeated", same, "its own last upload")


def _copy(client: Client, observed: list[Observed], others: Others) -> Flag | None:
    copied = [(row.equals_other is not None or row.equals_other_last is not None) for row in observed]
    names = {str(row.equals_other or row.equals_other_last) for row in observed if row.equals_other is not None}
    names |= {str(row.equals_other_last) for row in observed if row.equals_other_last is not None}
    return _coincidence(client, observed, "copy", copied, f"an upload of {', '.join(sorted(names))}")


def _replay(client: Client, observed: list[Observed], others: Others) -> Flag | None:
    explained = [row.replayed > REPLAYED for row in observed]
    return _coincidence(client, observed, "replay", explained, "a combination of earlier steps of the shared model")


def _coincidence(client: Client, observed: list[Observed], kind: str, holds: list[bool], what: str) -> Flag | None:
    count = sum(holds)
    if count < min(EVIDENT_ROUNDS, len(observed)):
        return None
    return Flag(client, kind, count, f"The upload equals {what} in {count} of {len(observed)} rounds.")


def _steering(client: Client, observed: list[Observed], others: Others) -> Flag | None:
    own = series(observed, "own_direction")
    theirs = [median(values) for rows in others.values() if (values := series(rows, "own_direction"))]
    if len(own) < FEWEST_ROUNDS or not theirs or median(own) < max(SAME_DIRECTION, median(theirs) + ABOVE_OTHERS):
        return None
    text = f"The update repeats its own last direction (median cosine {median(own):.2f}; others {median(theirs):.2f})."
    return Flag(client, "steering", len(own), text)


def _unrelated(client: Client, observed: list[Observed], others: Others) -> Flag | None:
    telling = [row for row in observed if row.others_agreement > COMMON]
    if len(telling) < FEWEST_ROUNDS:
        return None
    mean = float(np.mean([row.agreement for row in telling]))
    if mean > UNRELATED:
        return None
    common = float(np.mean([row.others_agreement for row in telling]))
    kind = "opposed" if mean < OPPOSED else "unrelated"
    text = f"The update does not agree with the others' (mean cosine {mean:.2f}; among the others {common:.2f})."
    return Flag(client, kind, len(telling), text)


def _poisoned_layer(client: Client, observed: list[Observed], others: Others) -> Flag | None:
    layers = dict.fromkeys(layer for row in observed for layer in row.layers)
    bad, good = [], 0
    for layer in layers:
        telling = [row.layers[layer] for row in observed if row.layers[layer][1] > COMMON]
        if len(telling) < FEWEST_ROUNDS:
            continue
        mean = float(np.mean([own for own, _ in telling]))
        bad += [layer] if mean < OPPOSED else []
        good += mean > COMMON
    if not bad or not good:
        return None
    text = f"The update opposes everybody in {', '.join(bad)} and agrees elsewhere."
    return Flag(client, "poisoned layers", len(observed), text)


def _scale(client: Client, observed: list[Observed], others: Others) -> Flag | None:
    for name, kind, limit in (("length", "scale", OUT_OF_SCALE), ("weight", "claimed weight", CLAIMED)):
        ratios = series(observed, name)
        theirs = [median(values) for rows in others.values() if (values := series(rows, name))]
        if len(ratios) < min(FEWEST_ROUNDS, len(observed)) or not ratios or len(theirs) < 2:
            continue
        own, usual = median(ratios), median(theirs)
        spread = median(abs(value - usual) for value in theirs)
        if abs(own - usual) > max(np.log(limit), SPREADS * spread):
            text = (
                f"The {'update' if name == 'length' else 'claimed weight'} is {np.exp(own - usual):.2g} times as large"
            )
            return Flag(client, kind, len(ratios), f"{text} as is usual among the others.")
    return None


def _change(client: Client, observed: list[Observed], others: Others) -> Flag | None:
    telling = [row for row in observed if row.others_agreement > COMMON]
    own = np.array([row.agreement for row in telling])
    gaps = own - [row.others_agreement for row in telling]
    best, at = 0.0, 0
    for cut in range(FEWEST_ROUNDS, len(gaps) - FEWEST_ROUNDS + 1):
        before, after = gaps[:cut], gaps[cut:]
        if own[cut:].mean() > UNRELATED:
            continue
        error = float(np.sqrt(before.var(ddof=1) / len(before) + after.var(ddof=1) / len(after)))
        drop = float(before.mean() - after.mean())
        if drop > ABOVE_OTHERS / 2 and drop / max(error, 1e-9) > best:
            best, at = drop / max(error, 1e-9), cut
    if best < CHANGED:
        return None
    return Flag(client, "change", len(gaps) - at, f"Its agreement with the others fell at once, after {at} rounds.")


RULES = (_idle, _repeated, _copy, _replay, _steering, _unrelated, _poisoned_layer, _scale, _change)
