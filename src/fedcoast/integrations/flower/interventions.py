"""Acting on scores: an operator's function may drop or down-weight clients from some round on. Off by default.

From then on assessment and training depend on each other. A client that is weighed down moves the model less, the
model moves elsewhere, and everyone's later credits, its own first, are measured against that other path: a wrong early
score can prove itself right. Scores are no longer those of the federation as it was, and two runs with different
actions cannot be compared. Wait for final credits of many rounds, act rarely, keep a recording, tell the clients.
"""

import logging
import math
from collections.abc import Callable, Mapping

from flwr.app import Message, MetricRecord, RecordDict

from fedcoast.errors import BadSetting
from fedcoast.integrations.flower.identity import ResolvedReplies
from fedcoast.methods.assessment import Assessment

Factors = Mapping[str, float]
Act = Callable[[int, Mapping[str, Assessment]], Factors]
"""(number of the round about to be aggregated, assessments so far by method) → factor of each client's weight.

A method that cannot answer yet is not among the assessments."""

_log = logging.getLogger("fedcoast")


def warn(act: Act) -> None:
    if not callable(act):
        raise BadSetting(f"act is a function of the round number and the assessments; got {act!r}")
    _log.warning(
        "acting on scores is on: from the first action, assessment and training depend on each other, and scores are no"
        " longer those of the federation as it was (docs/flower.md, “Acting on scores”)"
    )


def drop_negative(after: int, method: str = "coast") -> Act:
    """From round `after` on, leave out whoever's score is below zero: whose updates the later rounds undo."""
    if isinstance(after, bool) or not isinstance(after, int) or after < 1:
        raise BadSetting(f"after must be the number of a round, at least 1; got {after!r}")

    def act(number: int, assessments: Mapping[str, Assessment]) -> Factors:
        if number < after:
            return {}
        return {str(client): 0.0 for client, score in assessments[method].scores.items() if score < 0}

    return act


def apply(
    act: Act,
    number: int,
    answers: Mapping[str, Assessment],
    roll: ResolvedReplies,
    replies: list[Message],
    weight_key: str,
) -> tuple[list[Message], Factors]:
    """The replies the strategy is to see, and the factors that changed them; all of them, should the function fail."""
    try:
        factors = {client: _factor(client, value) for client, value in act(number, answers).items()}
        nodes = {upload.node_id: factors.get(client, 1.0) for client, upload in roll.clients.items()}
        kept = [reply for reply in replies if nodes.get(reply.metadata.src_node_id) != 0.0 or reply.has_error()]
        contents = [_weighed(reply, nodes.get(reply.metadata.src_node_id, 1.0), weight_key) for reply in kept]
    except Exception as error:
        _log.warning("round %d: no action was taken (%s: %s)", number, type(error).__name__, error, exc_info=error)
        return replies, {}
    for reply, content in zip(kept, contents, strict=True):
        if content is not None:
            reply.content = content
    acted = {client: factor for client, factor in factors.items() if client in roll.clients and factor != 1.0}
    if acted:
        _log.warning("round %d: acted on scores, weights times %s", number, acted)
    return kept, acted


def _factor(client: object, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise BadSetting(f"the factor of client {client!r} must be a number ≥ 0, and 0 drops it; got {value!r}")
    return float(value)


def _weighed(reply: Message, factor: float, weight_key: str) -> RecordDict | None:
    """The reply's content with another weight, or None where nothing changes."""
    if factor == 1.0 or reply.has_error():
        return None
    changed = dict(reply.content.items())
    for key, record in reply.content.items():
        weight = record.get(weight_key) if isinstance(record, MetricRecord) else None
        if isinstance(record, MetricRecord) and isinstance(weight, int | float):
            changed[key] = MetricRecord({**record, weight_key: weight * factor})
            return RecordDict(changed)
    raise BadSetting(
        f"node {reply.metadata.src_node_id} sent no {weight_key!r}, so its weight cannot be changed; 0 would drop it"
    )
