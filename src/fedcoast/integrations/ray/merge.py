"""Merges the credits of shards into the assessment that one machine would have given."""

import logging
from collections.abc import Mapping, Sequence

from fedcoast.errors import BadUpload, Client
from fedcoast.integrations.ray.shard_worker import Reasons, ShardCredits, Totals
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.coast.agreement import discounted_credit
from fedcoast.methods.coast.coast import CoAst
from fedcoast.methods.coast.pair_credits import PairCredits, PairTable, merged
from fedcoast.methods.ledger import Credits, Ledger, scaled, totals
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
    """The assessment of all shards together. Agreement is exact, so the order of the sum changes nothing.

    A client that is bad in one layer is out of the round in all of them.
    """
    ledger = Ledger()
    answered = {number: clients for part in parts for number, clients in part.answered.items()}
    known = {number: reasons for part in parts for number, reasons in part.known.items()}
    out = {number: {**known[number], **found.get(number, {})} for number in numbers}
    factors: dict[Client, float] = {}
    unordered: tuple[tuple[Client, Client], ...] = ()
    if assessor.config.reference == "others":
        pairs = _pair_credits(assessor, numbers, parts, answered, out)
        credits = {number: pairs.credits(number) for number in _valued(assessor, numbers)}
        factors, unordered = pairs.factors(assessor.config.line_weight), pairs.unordered(assessor.config.line_weight)
    else:
        credits = _compared_with_reference(assessor, numbers, parts, out)
    for number in numbers:
        of_round = {number: credits[number]} if number in credits else {}
        ledger.enter(number, answered[number], out[number], of_round, _unchanged(parts, number, out[number]))
    valued = scaled(ledger.credits, factors)
    counted = assessor.config.counted(tuple(valued))
    scores, rounds_scored = totals(
        valued if counted is None else {number: valued[number] for number in counted}, ledger.clients
    )
    return Assessment(
        method=assessor.method,
        scores=scores,
        credits=valued,
        pending=tuple(numbers[-assessor.config.horizon :]),
        rounds_scored=rounds_scored,
        quarantined=ledger.quarantined,
        settings=assessor.settings,
        counted_rounds=counted,
        zero_is_idle=assessor.zero_is_idle,
        dependence_span=assessor.dependence_span,
        unchanged={number: tuple(clients) for number, clients in ledger.unchanged.items()},
        unscaled_credits=ledger.credits if factors else None,
        unordered=unordered,
    )


def _compared_with_reference(
    assessor: CoAst, numbers: Sequence[int], parts: Sequence[ShardCredits], out: Reasons
) -> Credits:
    agreement: dict[int, list[Totals]] = {}
    for part in parts:
        for number, totals_of_round in part.agreement.items():
            agreement.setdefault(number, []).append(totals_of_round)
    weight = assessor.config.past_weight
    return {number: _credits(agreement[number], out[number], weight) for number in numbers if number in agreement}


def _pair_credits(
    assessor: CoAst,
    numbers: Sequence[int],
    parts: Sequence[ShardCredits],
    answered: Mapping[int, tuple[Client, ...]],
    out: Reasons,
) -> PairCredits:
    """What all shards together know of the agreement of every two rounds."""
    config = assessor.config
    tables: dict[tuple[int, int], list[PairTable]] = {}
    for part in parts:
        for rounds, table in part.tables.items():
            tables.setdefault(rounds, []).append(table)
    pairs = PairCredits(config.horizon, config.past_weight)
    for number in numbers:
        pairs = pairs.with_round(number, [c for c in in_order(answered[number]) if c not in out[number]], 0)
        for earlier, later in sorted(rounds for rounds in tables if rounds[1] == number):
            pairs = pairs.with_table(merged(tables[earlier, later], out[earlier], out[later]))
    return pairs


def _valued(assessor: CoAst, numbers: Sequence[int]) -> Sequence[int]:
    """The rounds that are not pending."""
    return numbers[: -assessor.config.horizon] if assessor.config.incomplete_rounds == "drop" else numbers[:-1]


def _unchanged(parts: Sequence[ShardCredits], number: int, out: Mapping[Client, str]) -> tuple[Client, ...]:
    """Who returned every layer as it was sent."""
    shards = [set(part.unchanged[number]) for part in parts if number in part.unchanged]
    return in_order(set.intersection(*shards) - set(out)) if shards else ()


def _credits(parts: Sequence[Totals], out: Mapping[Client, str], past_weight: float) -> dict[Client, float]:
    """
    >>> _credits([{"a": (2, 1), "b": (1, 0)}, {"a": (-4, 0)}], {"b": "not finite"}, 0.5)
    {'a': -2.5}
    """
    clients = [client for client in parts[0] if client not in out]
    return {
        client: discounted_credit(
            sum(part[client][0] for part in parts), sum(part[client][1] for part in parts), past_weight
        )
        for client in clients
    }
