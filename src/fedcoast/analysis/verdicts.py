"""One verdict per client, by the same rule everywhere.

| verdict | when |
|---|---|
| idle | the upload equalled the model it was sent in more than half of the client's counted rounds |
| helps | the whole range of the score lies above 0, the score of a client that does nothing |
| hurts | the whole range lies below 0 |
| cannot tell | everything else: the range holds 0, or there is no range |

Ranges hold for all clients at once: with the stated confidence not one of them is wrong. They know the luck of the
rounds and, by `METHOD_MARGIN`, the error of the method itself (`analysis.uncertainty`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from fedcoast.analysis.disagreement import UpdateAgreement
from fedcoast.analysis.uncertainty import Interval, Uncertainty
from fedcoast.errors import Client
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.registry import config_of
from fedcoast.methods.text import printable

Verdict = Literal["helps", "hurts", "idle", "cannot tell"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
MOST = 0.5  # of a client's counted rounds; more unchanged uploads than this make it idle
MOST_PAIRS = 3  # that a sentence names
FEW_VOTES = 30  # credits no larger than this come from so few votes that ties are likely


def verdict(interval: Interval | None, unchanged: float = 0.0) -> Verdict:
    """The verdict on one client, by the range of its score and the share of its rounds with an unchanged upload.

    >>> verdict((2.0, 9.0)), verdict((-9.0, -2.0)), verdict((-1.0, 9.0)), verdict(None), verdict((0.0, 0.0), 1.0)
    ('helps', 'hurts', 'cannot tell', 'cannot tell', 'idle')
    """
    if unchanged > MOST:
        return "idle"
    if interval is None:
        return "cannot tell"
    return "helps" if interval[0] > 0 else "hurts" if interval[1] < 0 else "cannot tell"


def verdicts(assessment: Assessment, uncertainty: Uncertainty | None) -> dict[Client, Verdict]:
    """The verdict on every client. Where zero does not mean doing nothing, only idle clients get a verdict."""
    return verdicts_by_range(assessment, {} if uncertainty is None else uncertainty.joint_intervals)


def verdicts_by_range(assessment: Assessment, ranges: Mapping[Client, Interval | None]) -> dict[Client, Verdict]:
    """The same, where the joint ranges are known (`analysis.uncertainty.joint_ranges`)."""
    shares, known = unchanged_shares(assessment), ranges if assessment.zero_is_idle else {}
    return {client: verdict(known.get(client), shares[client]) for client in assessment.clients}


def unchanged_shares(assessment: Assessment) -> dict[Client, float]:
    """The share of each client's counted rounds in which it returned the model that it was sent."""
    counts = dict.fromkeys(assessment.clients, 0)
    rounds = dict.fromkeys(assessment.clients, 0)
    for number in assessment.counted:
        returned = set(assessment.unchanged.get(number, ()))
        for client in assessment.credits[number]:
            rounds[client] += 1
            counts[client] += client in returned
    return {client: counts[client] / rounds[client] if rounds[client] else 0.0 for client in rounds}


def idle_clients(assessment: Assessment) -> tuple[Client, ...]:
    return tuple(client for client, share in unchanged_shares(assessment).items() if share > MOST)


def too_early(assessment: Assessment, uncertainty: Uncertainty | None) -> str:
    """Why nothing can be concluded yet, in one sentence; empty where something can."""
    if not assessment.credits:
        waiting = f" Rounds so far: {len(assessment.pending)}." if assessment.pending else ""
        return f"Too early to say anything: no round has been scored yet.{waiting}"
    if uncertainty is None or not uncertainty.rounds_needed or uncertainty.rounds >= uncertainty.rounds_needed:
        return ""
    scored = "1 round is scored" if uncertainty.rounds == 1 else f"{uncertainty.rounds} rounds are scored"
    return (
        f"Too early to say who helps: {scored}, and ranges need"
        f" {uncertainty.rounds_needed}. The order below may be luck."
    )


def blind_spots(
    assessment: Assessment, uncertainty: Uncertainty | None, update_agreement: UpdateAgreement | None = None
) -> list[str]:
    """Warnings that apply to this answer.

    `update_agreement` was measured from the uploads (`analysis.disagreement`), if they were checked.
    """
    found = update_agreement.sentences() if update_agreement is not None and assessment.credits else []
    scores = list(assessment.scores.values())
    if len(scores) == 1:
        found.append("There is one client. Scores compare clients, so its score says little.")
    if len(scores) > 1 and len(set(scores)) == 1:
        found.append(
            "All clients tie. On small models the votes can be too few to tell anybody apart; let a larger share of"
            " each layer vote (keep=1.0)."
        )
    elif _counts_votes(assessment) and 0 < _largest_credit(assessment) <= FEW_VOTES:
        found.append(
            f"No credit of a round exceeds {_largest_credit(assessment):.0f}: very few votes count in this model, and"
            " ties are likely. Let a larger share of each layer vote (keep=1.0)."
        )
    if len(scores) > 1 and assessment.zero_is_idle and assessment.credits and max(scores) < 0:
        found.append(
            "Every client scores below zero. Check that clients send their models, not differences or gradients."
        )
    if assessment.unordered and not too_early(assessment, uncertainty):
        found.append(_unordered_sentence(assessment))
    if not assessment.zero_is_idle and assessment.credits:
        found.append(f"A score of zero does not mean doing nothing in {assessment.method}, so it has no verdicts.")
    if uncertainty is not None and uncertainty.note and not too_early(assessment, uncertainty):
        found.append(f"{uncertainty.note[0].upper()}{uncertainty.note[1:]}.")
    return found


def _unordered_sentence(assessment: Assessment) -> str:
    pairs = assessment.unordered
    clients = {client for pair in pairs for client in pair}
    if len(clients) > 2 and len(pairs) == len(clients) * (len(clients) - 1) // 2:
        return (
            "The clients differ in the direction of their updates, and neither end is clearly better:"
            " so they are not put in order, however far apart their scores are."
        )
    named = ", ".join(f"{printable(one)} and {printable(other)}" for one, other in pairs[:MOST_PAIRS])
    more = f", and {len(pairs) - MOST_PAIRS} more pairs" if len(pairs) > MOST_PAIRS else ""
    return f"The method cannot tell the order of clients whose updates differ in the same way: {named}{more}."


def verdicts_to_json(
    assessment: Assessment, uncertainty: Uncertainty | None, update_agreement: UpdateAgreement | None = None
) -> dict[str, Any]:
    """What people are shown beside the scores, for programs; lists are in the order of the answer's clients.

    Without `update_agreement` there are no "warnings": nobody looked at the uploads.
    """
    by_client = verdicts(assessment, uncertainty)
    known = uncertainty is not None and not uncertainty.note
    ranges = uncertainty.joint_intervals if uncertainty and known else {}
    ranks = uncertainty.rank_intervals if uncertainty and known else {}
    return {
        "level": uncertainty.level if uncertainty else None,
        "too_early": too_early(assessment, uncertainty),
        "verdicts": [by_client[client] for client in assessment.clients],
        "ranges": [_listed(ranges.get(client)) for client in assessment.clients],
        "rank_ranges": [_listed(ranks.get(client)) for client in assessment.clients],
        **({} if update_agreement is None else {"warnings": blind_spots(assessment, uncertainty, update_agreement)}),
    }


def _listed(span: Sequence[float] | None) -> list[float] | None:
    return None if span is None else [*span]


def _counts_votes(assessment: Assessment) -> bool:
    """Whether a credit is a count of votes, so that a small one comes from few votes."""
    config = config_of(assessment.method, assessment.settings)
    return assessment.zero_is_idle and config is not None and config.counts_votes


def _largest_credit(assessment: Assessment) -> float:
    return max((abs(credit) for of in assessment.credits.values() for credit in of.values()), default=0.0)
