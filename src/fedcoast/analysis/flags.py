"""Flags: evidence that an upload does not come from honest training. They are shown, and never change a score.

Each flag rests on something that a reader can check in the run: an upload that equals another model, an update that is
made of earlier global steps, one that repeats itself, that is noise, that works against all others, or that is far
out of scale. `docs/attacks.md` shows which attacks are found, and how often honest clients are flagged.

A client is measured against the others of the same round, never against a fixed number alone. Of large models every
n-th entry of each layer is looked at, at most 4,096 of each.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

import numpy as np

from fedcoast.analysis.behaviour import Behaviour, ClientRound, Sample, series
from fedcoast.errors import Client
from fedcoast.rounds import Round
from fedcoast.rounds.clients import client_to_json

KINDS = (
    "idle",
    "repeated",
    "same upload",
    "copy",
    "replay",
    "steering",
    "noise",
    "opposed",
    "poisoned layers",
    "scale",
    "claimed weight",
    "change",
)
EVIDENT_ROUNDS = 3  # an exact coincidence in so many rounds, or in all if there are fewer
REPLAYED = 0.97  # share of an update that earlier global steps explain
SAME_DIRECTION, ABOVE_OTHERS = 0.95, 0.2  # cosine with the own last update, and how far above the others' median,
STRAIGHTER = 10  # or by what factor nearer to 1
COMMON = 0.1  # others' agreement from which a round tells something
CHANCE = 0.03  # mean cosines that noise stays below
STEADY, STRONG = 0.15, 0.3  # the own direction, or else the agreement, that others need to differ from noise
OPPOSED = 0.75  # of the others' agreement, with the sign turned
AGAINST, NEARLY_ALWAYS = 0.8, 0.95  # in which share of the rounds, of whole updates and of single layers
FEWEST_ROUNDS = 5
OUT_OF_SCALE, CLAIMED = 4.0, 10.0  # times the others' median length, and weight
SPREADS = 6.0  # of the others' own spread
JUST_BEFORE, TURNED = 3, 0.5  # rounds around a change, and the share of the others' agreement before and after


@dataclass(frozen=True)
class Flag:
    """One flag of one client: its kind, the number of rounds that show it, and a sentence for people."""

    client: Client
    kind: str
    rounds: int
    evidence: str

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "client": client_to_json(self.client)}


class Others:
    """The clients that one is measured against: each by the median of its own numbers."""

    def __init__(self, by_client: Mapping[Client, list[ClientRound]]) -> None:
        self._by_client = by_client
        self._medians: dict[str, tuple[dict[Client, int], Sample]] = {}

    def medians(self, name: str, client: Client) -> Sample:
        """The median of one number over the rounds, of every other client that has any."""
        if name not in self._medians:
            known = {c: median(values) for c, rows in self._by_client.items() if (values := series(rows, name))}
            self._medians[name] = {c: at for at, c in enumerate(known)}, np.array(list(known.values()), np.float64)
        places, of_all = self._medians[name]
        return np.delete(of_all, places[client]) if client in places else of_all


Rule = Callable[[Client, list[ClientRound], Others], Flag | None]


def flags(rounds: Iterable[Round]) -> list[Flag]:
    """All flags of a federation, by client; empty if nothing stands out, or if only ballots are known."""
    behaviour = Behaviour()
    for fl_round in rounds:
        behaviour.observe(fl_round)
    return flags_of(behaviour)


def flags_of(behaviour: Behaviour) -> list[Flag]:
    """The flags of rounds that were already observed: a caller that reads the rounds anyway need not read them twice.

    Flags that need no comparison come first; clients flagged so are left out of later comparisons.
    """
    by_client = behaviour.by_client
    evident = _found(EVIDENT, by_client, Others(by_client))
    named = {flag.client for flag in evident}
    measure = {client: rows for client, rows in by_client.items() if client not in named}
    found = [*evident, *_found(COMPARED, by_client, Others(measure if len(measure) > 1 else by_client))]
    place = {client: at for at, client in enumerate(by_client)}
    return sorted(found, key=lambda flag: (place[flag.client], KINDS.index(flag.kind)))


def _found(rules: Iterable[Rule], by_client: Mapping[Client, list[ClientRound]], others: Others) -> list[Flag]:
    rules = tuple(rules)
    return [
        flag for client, rows in by_client.items() for rule in rules if (flag := rule(client, rows, others)) is not None
    ]


def _idle(client: Client, observed: list[ClientRound], others: Others) -> Flag | None:
    return _coincidence(client, observed, "idle", [row.equals_start for row in observed], "the model it was sent")


def _repeated(client: Client, observed: list[ClientRound], others: Others) -> Flag | None:
    same = [row.equals_own_last and not row.equals_start for row in observed]
    return _coincidence(client, observed, "repeated", same, "its own last upload")


def _same_upload(client: Client, observed: list[ClientRound], others: Others) -> Flag | None:
    """Clients with the same upload in one round. It cannot show who copied, or whether both are one participant."""
    names = ", ".join(sorted({str(other) for row in observed for other in row.equals_other}))
    what = f"the upload of {names} in the same round (either may be the copy, or both may be one)"
    return _coincidence(client, observed, "same upload", [bool(row.equals_other) for row in observed], what)


def _copy(client: Client, observed: list[ClientRound], others: Others) -> Flag | None:
    copied = [row.equals_other_last for row in observed]
    names = ", ".join(sorted({str(other) for other in copied if other is not None}))
    what = f"an earlier upload of {names}"
    return _coincidence(client, observed, "copy", [other is not None for other in copied], what)


def _replay(client: Client, observed: list[ClientRound], others: Others) -> Flag | None:
    explained = [row.replayed > REPLAYED for row in observed]
    return _coincidence(client, observed, "replay", explained, "a combination of earlier steps of the shared model")


def _coincidence(client: Client, observed: list[ClientRound], kind: str, holds: list[bool], what: str) -> Flag | None:
    count = sum(holds)
    if count < min(EVIDENT_ROUNDS, len(observed)):
        return None
    return Flag(client, kind, count, f"The upload equals {what} in {count} of {len(observed)} rounds.")


def _steering(client: Client, observed: list[ClientRound], others: Others) -> Flag | None:
    own = series(observed, "own_direction")
    if len(own) < FEWEST_ROUNDS or median(own) < SAME_DIRECTION:
        return None
    theirs = others.medians("own_direction", client)
    if not theirs.size:
        return None
    usual = float(np.median(theirs))
    if median(own) < max(SAME_DIRECTION, min(usual + ABOVE_OTHERS, 1 - (1 - usual) / STRAIGHTER)):
        return None
    text = f"The update repeats its own last direction (median cosine {median(own):.2f}; others {usual:.2f})."
    return Flag(client, "steering", len(own), text)


def _noise(client: Client, observed: list[ClientRound], others: Others) -> Flag | None:
    """Honest training has a direction of its own, even on wrong labels; noise has none."""
    telling = [row for row in observed if row.others_agreement > COMMON]
    if not _is_noise(telling):
        return None
    text = "The update has no direction: it agrees neither with the others' nor with its own last one"
    agreement, direction = (np.nanmean(series(telling, name)) for name in ("agreement", "own_direction"))
    return Flag(client, "noise", len(telling), f"{text} (mean cosines {agreement:.2f} and {direction:.2f}).")


def _is_noise(observed: list[ClientRound]) -> bool:
    rows = [row for row in observed if not row.equals_start]  # who does not move is idle
    own, others = series(rows, "own_direction"), series(rows, "others_direction")
    if min(len(own), len(others), len(rows)) < FEWEST_ROUNDS:
        return False
    if median(others) < STEADY and fmean(row.others_agreement for row in rows) < STRONG:
        return False
    return all(
        abs(fmean(values)) < CHANCE and median(map(abs, values)) < COMMON
        for values in (own, [row.agreement for row in rows])
    )


def _opposed(client: Client, observed: list[ClientRound], others: Others) -> Flag | None:
    telling = [(row.agreement, row.others_agreement) for row in observed if row.others_agreement > COMMON]
    if not _is_opposed(telling):
        return None
    own, common = fmean(own for own, _ in telling), fmean(common for _, common in telling)
    text = f"The update works against the others' (mean cosine {own:.2f}; among the others {common:.2f})."
    return Flag(client, "opposed", len(telling), text)


def _is_opposed(pairs: list[tuple[float, float]], share: float = AGAINST) -> bool:
    """Whether the first numbers are about the second ones with the sign turned, in most rounds."""
    if len(pairs) < FEWEST_ROUNDS:
        return False
    opposed_rounds = sum(own < 0 for own, _ in pairs) >= share * len(pairs)
    return opposed_rounds and fmean(own for own, _ in pairs) < -OPPOSED * fmean(common for _, common in pairs)


def _poisoned_layer(client: Client, observed: list[ClientRound], others: Others) -> Flag | None:
    layers = dict.fromkeys(layer for row in observed for layer in row.layers)
    bad, good = [], 0
    for layer in layers:
        telling = [row.layers[layer] for row in observed if layer in row.layers and row.layers[layer][1] > COMMON]
        if len(telling) < max(FEWEST_ROUNDS, len(observed) / 3):
            continue
        bad += [layer] if _is_opposed(telling, NEARLY_ALWAYS) else []
        good += fmean(own for own, _ in telling) > COMMON
    if not bad or not good:
        return None
    text = f"The update opposes everybody in {', '.join(bad)} and agrees elsewhere."
    return Flag(client, "poisoned layers", len(observed), text)


def _scale(client: Client, observed: list[ClientRound], others: Others) -> Flag | None:
    for name, kind, limit in (("length", "scale", OUT_OF_SCALE), ("weight", "claimed weight", CLAIMED)):
        ratios = series(observed, name)
        theirs = others.medians(name, client)
        if len(ratios) < min(FEWEST_ROUNDS, len(observed)) or not ratios or theirs.size < 2:
            continue
        own, usual = median(ratios), float(np.median(theirs))
        spread = float(np.median(np.abs(theirs - usual)))
        if abs(own - usual) > max(np.log(limit), SPREADS * spread):
            text = (
                f"The {'update' if name == 'length' else 'claimed weight'} is {np.exp(own - usual):.2g} times as large"
            )
            return Flag(client, kind, len(ratios), f"{text} as is usual among the others.")
    return None


def _change(client: Client, observed: list[ClientRound], others: Others) -> Flag | None:
    """From some round on the update is noise, or turned against the others, and just before it was neither."""
    for cut in range(FEWEST_ROUNDS, len(observed) - FEWEST_ROUNDS + 1):
        last, first = observed[cut - JUST_BEFORE : cut], observed[cut : cut + JUST_BEFORE]
        if not _fell(last, first) and not _turned(last, first):  # at once; most rounds are left here
            continue
        after = observed[cut:]
        earlier = [row.agreement for row in observed[:cut] if row.others_agreement > COMMON]
        if len(earlier) < FEWEST_ROUNDS or fmean(earlier) < COMMON:
            continue
        pairs = [(row.agreement, row.others_agreement) for row in after if row.others_agreement > COMMON]
        became = "noise" if _is_noise(after) else "opposed to the others'" if _is_opposed(pairs) else ""
        if became:
            text = f"After {cut} rounds of training the update became {became} at once."
            return Flag(client, "change", len(after), text)
    return None


def _fell(last: list[ClientRound], first: list[ClientRound]) -> bool:
    """Whether the update had a direction in the last rounds before, and has none in the first ones after."""
    if min(max(row.agreement, row.own_direction) for row in last) < COMMON:
        return False
    return max(max(abs(row.agreement), abs(row.own_direction)) for row in first) < COMMON


def _turned(last: list[ClientRound], first: list[ClientRound]) -> bool:
    """Whether the agreement changed its sign from one round to the next."""
    if min(row.others_agreement for row in (*last, *first)) < COMMON:
        return False
    before, after = ([row.agreement / row.others_agreement for row in rows] for rows in (last, first))
    return min(before) > TURNED and max(after) < -TURNED


EVIDENT: tuple[Rule, ...] = (_idle, _repeated, _same_upload, _copy, _replay, _steering)
COMPARED: tuple[Rule, ...] = (_noise, _opposed, _poisoned_layer, _scale, _change)
