"""What there is to log after a round, as plain numbers."""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fedcoast.errors import Client
from fedcoast.methods.assessment import Assessment
from fedcoast.rounds.round import Round


class Reading(NamedTuple):
    """A number of a kind, and whose it is: a client's, a metric's (by its name), or the round's own."""

    kind: str
    whose: Client | None
    value: float


def readings(round: Round, answer: Assessment, newly_final: Iterable[int]) -> Iterator[Reading]:
    """Scores, ranks and coverage so far; the credits that became final with this round; what the server had to say.

    Clients appear when a first credit of theirs counts: before that, their rank would mean nothing.
    """
    valued = len(answer.counted)
    ranks = answer.ranks
    for client in answer.clients:
        if answer.seen[client]:
            yield Reading("score", client, answer.scores[client])
            yield Reading("rank", client, ranks[client])
            yield Reading("coverage", client, answer.seen[client] / valued)
        if dropped := answer.dropped(client):
            yield Reading("quarantined", client, dropped)
    credits: dict[Client, float] = {}
    for number in newly_final:
        for client, credit in answer.credits[number].items():
            credits[client] = credits.get(client, 0) + credit
    yield from (Reading("credit", client, credit) for client, credit in credits.items())
    yield Reading("round/answered", None, len(round.clients))
    yield Reading("round/quarantined", None, len(answer.quarantined.get(round.number, {})))
    yield Reading("round/pending", None, len(answer.pending))
    yield from (Reading("metric", name, value) for name, value in round.metrics.items())


def finite(told: Iterable[Reading]) -> list[Reading]:
    """Only what can be drawn."""
    return [reading for reading in told if math.isfinite(reading.value)]
