"""Verdicts as numbers, for the metrics of a federation that trains: loggers take nothing else."""

from collections.abc import Mapping

from fedcoast.analysis.uncertainty import joint_ranges
from fedcoast.analysis.verdicts import Verdict, verdicts_by_range
from fedcoast.errors import Client
from fedcoast.methods.assessment import Assessment

CODES: Mapping[Verdict, int] = {"helps": 1, "cannot tell": 0, "hurts": -1, "idle": -2}  # below zero is never paid
STALE = 50  # verdicts are worked out again when one round in so many is new: after every round up to the hundredth


class RunningVerdicts:
    """The verdicts of the latest answer; long trainings keep them for a few rounds, since ranges cost time."""

    def __init__(self) -> None:
        self._codes: dict[Client, int] = {}
        self._has_verdicts = False
        self._at = 0  # scored rounds, when the verdicts were last worked out

    def codes(self, answer: Assessment) -> dict[Client, int]:
        """A number for each client; empty where the method has no verdicts.

        >>> riders = {n: ("bob",) for n in range(6)}
        >>> credits = {n: {"ann": 2.0, "bob": 0.0} for n in range(6)}
        >>> scores, seen = {"ann": 12.0, "bob": 0.0}, {"ann": 6, "bob": 6}
        >>> answer = Assessment("mine", scores, credits, rounds_scored=seen, zero_is_idle=True, unchanged=riders)
        >>> RunningVerdicts().codes(answer)
        {'ann': 1, 'bob': -2}
        """
        scored = len(answer.credits)
        if not scored:
            self._codes, self._has_verdicts = {}, answer.zero_is_idle
        elif scored < self._at or scored - self._at >= max(1, self._at // STALE):
            found = verdicts_by_range(answer, joint_ranges(answer))
            self._has_verdicts = answer.zero_is_idle or "idle" in found.values()
            self._codes = {client: CODES[verdict] for client, verdict in found.items()}
            self._at = scored
        unknown = CODES["cannot tell"]  # of a client that is new since
        return {client: self._codes.get(client, unknown) for client in answer.clients} if self._has_verdicts else {}
