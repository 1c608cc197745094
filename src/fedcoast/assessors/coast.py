"""CoAst: a client's round is worth how well it agrees with where the global model moves in the next k rounds.

    ballot   Δ̃_i^t = signs of the largest r of θ_i^t − Θ^{t−1}, tensor by tensor, zero elsewhere
    drift    U^(t,k) = Θ^{t+k} − Θ^t
    credit   p̂_i^t = Σ_h sgn(x_i^t[h]) · sgn(U^(t,k)[h]),  x the `target`; the default is the ballot
    score    p̂_i = Σ_t p̂_i^t

Paper: Wu, Zhang, Li, Xu, Zhong, "CoAst: Validation-Free Contribution Assessment for Federated Learning based
on Cross-Round Valuation", ACM MM 2024, sections 4.2 and 4.3.
Needs: the clients' uploads and the global models; no validation data, no full participation.
Cost: a partial sort of each tensor and client, O(rounds · clients · parameters); holds `horizon` rounds.
Deviations: the paper contradicts itself on what is compared with the drift, on r, and on whether training
changes; docs/paper-notes.md has each reading. `CoAst.paper()` is the text, `CoAst.research_code()` the public code.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fedcoast.assessors.assessor import Assessor, Uploads
from fedcoast.assessors.layers import Layers, choose, describe
from fedcoast.assessors.ledger import Credits
from fedcoast.errors import BadSetting, Client
from fedcoast.formulas.aggregation import Step, adaptive_step
from fedcoast.formulas.drift import agreement, movement, vote_drift, votes
from fedcoast.formulas.selection import quick_ballot
from fedcoast.formulas.ternary import Floats, Signs, signs
from fedcoast.rounds.arrays import Array, arithmetic
from fedcoast.rounds.clients import client_from_json, client_to_json
from fedcoast.rounds.layout import Entry, Layout
from fedcoast.rounds.round import Policy, Round

Target = Literal["ballot", "pruned", "parameters", "update"]
Drift = Literal["movement", "votes"]
Baseline = Literal["idle", "none"]
Tail = Literal["drop", "truncate"]
Small = Literal["one", "none", "raw"]


@dataclass(frozen=True)
class _Held:
    """What one round leaves behind until its future is known; lists run over the chosen layers."""

    number: int
    claims: dict[Client, list[Signs]]
    trace: list[Array]  # Θ^t, or the round's votes


class CoAst(Assessor):
    """CoAst as a stream: credits for a round become final `horizon` rounds later.

    keep      the share of each tensor that votes (the paper's r), in (0, 1]
    step      how far a vote moves a parameter (α), or "avg", the mean size of the updates that vote;
              matters for target "pruned" only
    horizon   how many rounds of future a credit needs (k); rounds are counted as they are shown
    target    what is compared with the drift: "ballot" (the votes), "pruned" (sign of start + step·ballot),
              "parameters" (sign of the upload), "update" (sign of the raw update)
    drift     "movement" (where the global model went) or "votes" (the ballots of the coming rounds added up)
    baseline  "idle" takes off what a client that returned the start model would have got, so that 0 means
              "did nothing"; "none" is the plain sum. It changes "pruned" and "parameters" only
    layers    which tensors count: "all", "head", a pattern or several ("fc.*"), or a function of the name
    rounds    which of the valued rounds the scores count: slice(10, None) leaves out a warm-up of ten,
              slice(-50, None) is a sliding window of fifty
    tail      rounds whose future is cut short: "drop" leaves them pending, "truncate" values them with what
              future there is, provisionally; they stay pending
    ulps      movement of at most this many units in the last place (of float32 for half floats) is float rounding
              and counts as none; 4 do for ten clients, a server that adds up N float32 models needs about N/2
    small     a tensor of which `keep` is less than one entry: "one" entry votes, "none", or "raw" (the whole
              tensor is taken unpruned, as the public research code does)
    bad_uploads  "quarantine" (leave the client out of that round, log it, count it) or "raise"
    """

    method = "coast"
    takes_ballots = True

    def __init__(
        self,
        keep: float = 0.10,
        step: Step = 0.02,
        horizon: int = 2,
        target: Target = "ballot",
        drift: Drift = "movement",
        baseline: Baseline = "idle",
        layers: Layers = "all",
        rounds: slice = slice(None),
        tail: Tail = "drop",
        ulps: float = 4,
        small: Small = "one",
        bad_uploads: Policy = "quarantine",
    ) -> None:
        super().__init__(bad_uploads)
        _check_numbers(keep, step, horizon, ulps, rounds)
        _check_word("target", target, ("ballot", "pruned", "parameters", "update"))
        _check_word("drift", drift, ("movement", "votes"))
        _check_word("baseline", baseline, ("idle", "none"))
        _check_word("tail", tail, ("drop", "truncate"))
        _check_word("small", small, ("one", "none", "raw"))
        if small == "raw" and drift == "votes":
            raise BadSetting('small="raw" has no votes to count; use drift="movement"')
        self.keep, self.step, self.horizon = keep, step, horizon
        self.target, self.drift, self.baseline = target, drift, baseline
        self.layers, self.rounds, self.tail = layers, rounds, tail
        self.ulps, self.small = ulps, small
        describe(layers)
        self._held: list[_Held] = []

    @classmethod
    def paper(cls, **changes: Any) -> "CoAst":
        """The paper's text, literally: the sign of the uploaded parameters against the votes to come."""
        return cls(**{"target": "parameters", "drift": "votes", "baseline": "none", "small": "none", **changes})

    @classmethod
    def research_code(cls, **changes: Any) -> "CoAst":
        """What the public research code computes: pruned parameters against movement, float rounding included."""
        return cls(**{"target": "pruned", "baseline": "none", "ulps": 0, "small": "raw", **changes})

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "keep": self.keep,
            "step": self.step,
            "horizon": self.horizon,
            "target": self.target,
            "drift": self.drift,
            "baseline": self.baseline,
            "layers": describe(self.layers),
            "rounds": [self.rounds.start, self.rounds.stop],
            "tail": self.tail,
            "ulps": self.ulps,
            "small": self.small,
        }

    def _take(self, round: Round, layout: Layout, uploads: Uploads) -> Credits:
        chosen = choose(self.layers, layout)
        if round.pruned is not None:
            self._check_ballots_do(round, chosen)
        start = [arithmetic(array) for array in _pick(round.read_start(layout), chosen)]
        end = _pick(round.read_end(layout), chosen)
        claims: dict[Client, list[Signs]] = {}
        ballots: list[list[Signs]] = []
        for client, model in uploads:
            local = [arithmetic(array) for array in _pick(model, chosen)]
            both = [self._examine(before, after) for before, after in zip(start, local, strict=True)]
            claims[client] = [claim for claim, _ in both]
            if self.drift == "votes":
                ballots.append([votes_cast for _, votes_cast in both])
            del model, local  # before the next one is loaded
        if self.drift == "movement":
            trace: list[Array] = [arithmetic(array).copy() for array in end]
        else:
            silence = [np.zeros(array.size, dtype=np.int8) for array in start]
            trace = [votes(of_layer) for of_layer in zip(silence, *ballots, strict=True)]
        held = [*self._held, _Held(round.number, claims, trace)]
        final = {held[0].number: self._credit(held)} if len(held) > self.horizon else {}
        self._held = held[len(final) :]
        return final

    def _check_ballots_do(self, round: Round, chosen: Sequence[Entry]) -> None:
        wholly = self.target not in ("ballot", "pruned") or round.pruned != self.keep
        sizes = self.target == "pruned" and self.step == "avg"
        raw = self.small == "raw" and any(self._too_small(entry.size) for entry in chosen)
        if wholly or sizes or raw:
            raise BadSetting(
                f"round {round.number} holds ballots of keep={round.pruned} only; CoAst with keep={self.keep},"
                f" target={self.target!r}, step={self.step!r}, small={self.small!r} needs the whole uploads."
                f" Use keep={round.pruned}, target 'ballot' or 'pruned', a step that is a number and small 'one'"
            )

    def _examine(self, start: Floats, local: Floats) -> tuple[Signs, Signs]:
        """The claim of one tensor (signs of the target, less those of an idle client) and its ballot."""
        with np.errstate(over="ignore"):  # the difference of two huge numbers is infinite, and its sign right
            update = local - start
        too_small = self._too_small(update.size)
        if too_small and self.small == "none":
            cast = np.zeros(update.size, dtype=np.int8)
        else:
            cast = signs(update) if too_small and self.small == "raw" else quick_ballot(update, self.keep)
        if self.target == "ballot":
            return cast, cast
        if self.target == "update":
            return signs(update), cast
        if self.target == "parameters" or (too_small and self.small == "raw"):
            claim = signs(local)
        else:
            step = adaptive_step(update, self.keep) if self.step == "avg" else self.step
            with np.errstate(over="ignore"):
                claim = signs(start.ravel() + (step * cast).astype(start.dtype))
        return (claim - signs(start) if self.baseline == "idle" else claim), cast

    def _too_small(self, size: int) -> bool:
        return int(size * self.keep) == 0

    def _credit(self, held: Sequence[_Held]) -> dict[Client, float]:
        """The credits of the first of these rounds, from those after it."""
        by_layer: Iterable[Sequence[Any]] = zip(*(round.trace for round in held), strict=True)
        if self.drift == "movement":
            drift = [movement(models, self.ulps) for models in by_layer]
        else:
            drift = [vote_drift(of_layer[1:]) for of_layer in by_layer]
        return {
            client: sum(agreement(claim, way) for claim, way in zip(claims, drift, strict=True))
            for client, claims in held[0].claims.items()
        }

    def _credits(self) -> Credits:
        credits = super()._credits()
        if self.tail == "truncate":
            for index in range(len(self._held) - 1):
                credits[self._held[index].number] = self._credit(self._held[index:])
        return credits

    def _counted(self, credits: Credits) -> Credits:
        return {number: credits[number] for number in list(credits)[self.rounds]}

    def _pending(self) -> tuple[int, ...]:
        return tuple(held.number for held in self._held)

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        arrays: dict[str, Array] = {}
        pending = []
        for place, held in enumerate(self._held):
            pending.append({"number": held.number, "clients": [client_to_json(c) for c in held.claims]})
            for layer, array in enumerate(held.trace):
                arrays[f"{place}.trace.{layer}"] = array
            for seat, claims in enumerate(held.claims.values()):
                for layer, claim in enumerate(claims):
                    arrays[f"{place}.claim.{seat}.{layer}"] = claim
        return {"pending": pending}, arrays

    def _restore(self, facts: dict[str, Any], arrays: dict[str, Array]) -> None:
        held = []
        for place, round in enumerate(facts["pending"]):
            layers = range(sum(name.startswith(f"{place}.trace.") for name in arrays))
            claims = {
                client_from_json(client): [arrays[f"{place}.claim.{seat}.{layer}"] for layer in layers]
                for seat, client in enumerate(round["clients"])
            }
            trace = [arrays[f"{place}.trace.{layer}"] for layer in layers]
            held.append(_Held(round["number"], claims, trace))
        self._held = held


def _pick(model: dict[str, Array], entries: Iterable[Entry]) -> list[Array]:
    return [model[entry.name] for entry in entries]


def _check_word(option: str, value: str, words: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in words:
        raise BadSetting(f"{option} must be one of {', '.join(map(repr, words))}; got {value!r}")


def _check_numbers(keep: float, step: Step, horizon: int, ulps: float, rounds: slice) -> None:
    if not _is_number(keep) or not 0 < keep <= 1:
        hint = f" (did you mean {keep / 100:.2f}?)" if _is_number(keep) and 1 < keep <= 100 else ""
        raise BadSetting(f"keep must lie in (0, 1], the share of each layer that votes; got {keep!r}{hint}")
    if not (isinstance(step, str) and step == "avg") and not (_is_number(step) and float(step) > 0):
        raise BadSetting(f"step must be a positive number, how far a vote moves a parameter, or 'avg'; got {step!r}")
    if isinstance(horizon, bool) or not isinstance(horizon, int) or horizon < 1:
        raise BadSetting(f"horizon must be an integer of at least 1, the rounds of future; got {horizon!r}")
    if not _is_number(ulps) or ulps < 0:
        raise BadSetting(f"ulps must be a number of at least 0; got {ulps!r}")
    numbers = (rounds.start, rounds.stop, rounds.step) if isinstance(rounds, slice) else ("none",)
    if not all(number is None or type(number) is int for number in numbers) or rounds.step not in (None, 1):
        raise BadSetting(f"rounds must be a slice such as slice(10, None), in steps of one; got {rounds!r}")


def _is_number(value: object) -> bool:
    """A finite one; Python's integers know no bound, floats do."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
