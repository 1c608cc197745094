"""Interventions: an operator's function may drop or down-weight clients from some round on. Off by default.

From the first intervention on, assessment and training depend on each other. A client with less weight moves the model
less, the model takes another path, and all later credits, that client's first, are measured against the other path. A
wrong early score can confirm itself. Scores no longer describe the federation as it was, and two runs with different
interventions cannot be compared. Wait for final credits of many rounds, intervene rarely, keep a recording, and tell
the clients.
"""

import math
from collections.abc import Callable, Mapping

from flwr.app import Message, MetricRecord, RecordDict

from fedcoast.errors import BadSetting
from fedcoast.integrations.flower.identity import ResolvedReplies
from fedcoast.integrations.named_log import NamedLog
from fedcoast.methods.assessment import Assessment

Factors = Mapping[str, float]
Intervention = Callable[[int, Mapping[str, Assessment]], Factors]
"""(number of the round about to be aggregated, assessments so far by method) → factor of each client's weight.

A method without an answer yet is not among the assessments."""

_log = NamedLog(__name__)


def warn(intervene: Intervention) -> None:
    if not callable(intervene):
        raise BadSetting(f"intervene must be a function of the round number and the assessments; got {intervene!r}")
    _log.warning(
        "interventions are on: from the first one, assessment and training depend on each other, and scores no longer"
        " describe the federation as it was (docs/flower.md, “Interventions”)"
    )


def drop_negative(after: int, method: str = "coast") -> Intervention:
    """From round `after` on, drop every client whose score is below zero: later rounds undo its updates."""
    if isinstance(after, bool) or not isinstance(after, int) or after < 1:
        raise BadSetting(f"after must be the number of a round, at least 1; got {after!r}")

    def intervene(number: int, assessments: Mapping[str, Assessment]) -> Factors:
        if number < after:
            return {}
        return {str(client): 0.0 for client, score in assessments[method].scores.items() if score < 0}

    return intervene


def apply(
    intervene: Intervention,
    number: int,
    answers: Mapping[str, Assessment],
    resolution: ResolvedReplies,
    replies: list[Message],
    weight_key: str,
) -> tuple[list[Message], Factors]:
    """The replies for the strategy, and the factors that changed them; all unchanged if the function fails."""
    try:
        factors = {client: _factor(client, value) for client, value in intervene(number, answers).items()}
        nodes = {upload.node_id: factors.get(client, 1.0) for client, upload in resolution.uploads.items()}
        remaining = [reply for reply in replies if nodes.get(reply.metadata.src_node_id) != 0.0 or reply.has_error()]
        contents = [_reweighted(reply, nodes.get(reply.metadata.src_node_id, 1.0), weight_key) for reply in remaining]
    except Exception as error:
        _log.warning("round %d: no intervention (%s: %s)", number, type(error).__name__, error, exc_info=error)
        return replies, {}
    for reply, content in zip(remaining, contents, strict=True):
        if content is not None:
            reply.content = content
    changes = {client: factor for client, factor in factors.items() if client in resolution.uploads and factor != 1.0}
    if changes:
        _log.warning("round %d: intervention, weights multiplied by %s", number, changes)
    return remaining, changes


def _factor(client: object, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise BadSetting(f"the factor of client {client!r} must be a number ≥ 0, and 0 drops it; got {value!r}")
    return float(value)


def _reweighted(reply: Message, factor: float, weight_key: str) -> RecordDict | None:
    """The reply's content with another weight, or None where nothing changes."""
    if factor == 1.0 or reply.has_error():
        return None
    records = dict(reply.content.items())
    for key, record in reply.content.items():
        weight = record.get(weight_key) if isinstance(record, MetricRecord) else None
        if isinstance(record, MetricRecord) and isinstance(weight, int | float):
            records[key] = MetricRecord({**record, weight_key: weight * factor})
            return RecordDict(records)
    raise BadSetting(
        f"node {reply.metadata.src_node_id} sent no {weight_key!r}, so its weight cannot be changed; 0 would drop it"
    )
