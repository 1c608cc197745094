"""The numbers to log after a round."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from fedcoast.errors import Client
from fedcoast.methods.assessment import Assessment
from fedcoast.rounds.round import Round


class RoundValue(NamedTuple):
    """A number of a client, of a metric (by its name), or of the round itself."""

    quantity: str
    subject: Client | None
    value: float


def round_values(
    fl_round: Round, answer: Assessment, newly_final: Iterable[int], verdicts: Mapping[Client, int]
) -> Iterator[RoundValue]:
    """Scores, ranks, verdicts and coverage so far, credits that became final with this round, the server's metrics.

    Credits are those that never change: a factor that a client's score is multiplied by is not in them.

    Clients appear when a first credit of theirs counts: before that, their rank would mean nothing.
    """
    valued = len(answer.counted)
    ranks = answer.ranks
    for client in answer.clients:
        if answer.rounds_scored[client]:
            yield RoundValue("score", client, answer.scores[client])
            yield RoundValue("rank", client, ranks[client])
            if client in verdicts:
                yield RoundValue("verdict", client, verdicts[client])
            yield RoundValue("coverage", client, answer.rounds_scored[client] / valued)
        if dropped := answer.quarantine_count(client):
            yield RoundValue("quarantined", client, dropped)
    credits: dict[Client, float] = {}
    for number in newly_final:
        for client, credit in answer.lasting_credits[number].items():
            credits[client] = credits.get(client, 0) + credit
    yield from (RoundValue("credit", client, credit) for client, credit in credits.items())
    yield RoundValue("round/answered", None, len(fl_round.clients))
    yield RoundValue("round/quarantined", None, len(answer.quarantined.get(fl_round.number, {})))
    yield RoundValue("round/pending", None, len(answer.pending))
    yield from (RoundValue("metric", name, value) for name, value in fl_round.metrics.items())


def finite(values: Iterable[RoundValue]) -> list[RoundValue]:
    """Only the values that can be plotted."""
    return [value for value in values if math.isfinite(value.value)]
