"""Merges the credits of shards into the assessment that one machine would have given."""

import logging
from collections.abc import Mapping, Sequence
from fractions import Fraction

from fedcoast.errors import BadUpload, Client
from fedcoast.integrations.ray.shard_worker import Reasons, ShardCredits
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.coast.coast import CoAst
from fedcoast.methods.ledger import Ledger, totals
from fedcoast.rounds.clients import in_order

_log = logging.getLogger(__name__)


def bad_uploads(parts: Sequence[ShardCredits], policy: str) -> Reasons:
    """Whose upload is bad in any layer, by round: parts are in the order of the layers, and the first has the reason.

    With the policy "raise", the first round's first client that one machine would have stopped at.
    """
    found: Reasons = {}
    for part in parts:
        for number, reasons in part.found.items():
            for client, reason in reasons.items():
                found.setdefault(number, {}).setdefault(client, reason)
    for number in sorted(found):
        for client in in_order(found[number]):
            error = BadUpload(client, found[number][client])
            if policy == "raise":
                raise error
            _log.warning("quarantined for this round: %s", error)
    return found


def merge(assessor: CoAst, numbers: Sequence[int], parts: Sequence[ShardCredits], found: Reasons) -> Assessment:
    """The assessment of all shards together. Credits are exact, so the order of the sum changes nothing.

    A client that is bad in one layer is out of the round in all of them.
    """
    ledger = Ledger()
    credits: dict[int, list[dict[Client, Fraction]]] = {}
    number_of: type[float] = float if assessor.config.past_weight else int
    for part in parts:
        for number, of in part.credits.items():
            credits.setdefault(number, []).append(of)
    answered = {number: clients for part in parts for number, clients in part.answered.items()}
    known = {number: reasons for part in parts for number, reasons in part.known.items()}
    for number in numbers:
        out = {**known[number], **found.get(number, {})}
        total = {number: _sum(credits[number], out, number_of)} if number in credits else {}
        ledger.enter(number, answered[number], out, total, _unchanged(parts, number, out))
    counted = {number: ledger.credits[number] for number in list(ledger.credits)[assessor.config.score_rounds]}
    scores, seen = totals(counted, ledger.clients)
    return Assessment(
        method=assessor.method,
        scores=scores,
        credits=ledger.credits,
        pending=tuple(numbers[-assessor.config.horizon :]),
        seen=seen,
        quarantined=ledger.quarantined,
        settings=assessor.settings,
        unchanged={number: tuple(clients) for number, clients in ledger.unchanged.items()},
    )


def _unchanged(parts: Sequence[ShardCredits], number: int, out: Mapping[Client, str]) -> tuple[Client, ...]:
    """Who returned every layer as it was sent."""
    shards = [set(part.unchanged[number]) for part in parts if number in part.unchanged]
    return in_order(set.intersection(*shards) - set(out)) if shards else ()


def _sum(
    credits: Sequence[Mapping[Client, Fraction]], out: Mapping[Client, str], number: type[float]
) -> dict[Client, float]:
    """
    >>> _sum([{"a": Fraction(2), "b": Fraction(1)}, {"a": Fraction(-5, 2)}], {"b": "not finite"}, float)
    {'a': -0.5}
    """
    clients = [client for client in credits[0] if client not in out]
    return {client: number(sum((of[client] for of in credits), Fraction())) for client in clients}
