"""CoAst: a client's round is worth how well it agrees with where the global model moves in the next k rounds.

    ballot   Δ̃_i^t = signs of the largest r of θ_i^t − Θ^{t−1}, tensor by tensor, zero elsewhere
    drift    U^(t,k) = Θ^{t+k} − Θ^t
    credit   p̂_i^t = Σ_h sgn(x_i^t[h]) · sgn(U^(t,k)[h]),  x the `target`; the default is the ballot
    score    p̂_i = Σ_t p̂_i^t

That is the paper's idea. Who agrees with where the model goes may only go on where it came from, so by default half of
the agreement with the k rounds before t is taken off, and only the first and the last layers are asked:

    credit   p̂_i^t − past · Σ_h sgn(x_i^t[h]) · sgn(Θ^{t−1} − Θ^{t−1−k})[h]

Paper: Wu, Zhang, Li, Xu, Zhong, "CoAst: Validation-Free Contribution Assessment for Federated Learning based
on Cross-Round Valuation", ACM MM 2024, sections 4.2 and 4.3.
Needs: the clients' uploads and the global models; no validation data, no full participation.
Cost: about one pass over each upload; holds `horizon` rounds, two bits for each parameter and client.
Deviations: `past` and the choice of layers are ours (docs/default.md has why). The paper contradicts itself on what is
compared with the drift, on r, and on whether training changes; docs/paper-notes.md has each reading. `CoAst.votes()` is
the paper's idea, `CoAst.paper()` its text, `CoAst.research_code()` the public code.
"""

import logging
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Self

from fedcoast.errors import BadSetting, Client
from fedcoast.kernels.aggregation import Step
from fedcoast.kernels.bit_planes import PlaneLayout, Planes, Row, agreements
from fedcoast.kernels.movement import movement_planes
from fedcoast.kernels.threads import ThreadPool, threads_for
from fedcoast.kernels.vote_counts import count, lead, tally
from fedcoast.methods.base import Assessor, Uploads
from fedcoast.methods.coast.pending import PendingRound, PendingStore, PendingWriter
from fedcoast.methods.coast.signals import SignalExtractor, Small, Target, too_small
from fedcoast.methods.layer_selection import Layers, choose, describe
from fedcoast.methods.ledger import Credits
from fedcoast.methods.option_checks import check_count, check_word, is_number
from fedcoast.rounds.arrays import Array, arithmetic, copied
from fedcoast.rounds.round import Policy, Round
from fedcoast.rounds.schema import LayerSpec, ModelSchema

Drift = Literal["movement", "votes"]
Baseline = Literal["idle", "none"]
Tail = Literal["drop", "truncate"]

_log = logging.getLogger("fedcoast")

THREADS_PAY = 1 << 18  # entries of a model from which on starting threads is worth it


class CoAst(Assessor):
    """CoAst as a stream: credits for a round become final `horizon` rounds later.

    keep      the share of each tensor that votes (the paper's r), in (0, 1]
    step      how far a vote moves a parameter (α), or "avg", the mean size of the updates that vote;
              matters for target "pruned" only
    horizon   how many rounds of future a credit needs (k); rounds are counted as they are shown
    past      how much of the agreement with the `horizon` rounds before is taken off, 0 to 1: who only follows gets
              less than who leads. The first `horizon` rounds have no such past, and nothing is taken off them
    target    what is compared with the drift: "ballot" (the votes), "pruned" (sign of start + step·ballot),
              "parameters" (sign of the upload), "update" (sign of the raw update)
    drift     "movement" (where the global model went) or "votes" (the ballots of the coming rounds added up)
    baseline  "idle" takes off what a client that returned the start model would have got, so that 0 means
              "did nothing"; "none" is the plain sum. It changes "pruned" and "parameters" only
    layers    which tensors count: "all", "head", "ends" (the first layer and the head), a pattern or several
              ("fc.*"), or a function of the name
    rounds    which of the valued rounds the scores count: slice(10, None) leaves out a warm-up of ten,
              slice(-50, None) is a sliding window of fifty
    tail      rounds whose future is cut short: "drop" leaves them pending, "truncate" values them with what
              future there is, provisionally; they stay pending
    ulps      movement of at most this many units in the last place (of float32 for half floats) is float rounding
              and counts as none; 4 do for ten clients, a server that adds up N float32 models needs about N/2
    small     a tensor of which `keep` is less than one entry: "one" entry votes, "none", or "raw" (the whole
              tensor is taken unpruned, as the public research code does)
    bad_uploads  "quarantine" (leave the client out of that round, log it, count it) or "raise"

    What changes no score, and is no setting of the answer:

    threads   how many work on a large model; all cores by default
    spill     a folder of its own for what is held until a credit is final; without it all is in memory
    memory    how much is held in memory before `spill` is used: "500MB", or bytes; nothing by default
    """

    method = "coast"
    takes_ballots = True

    def __init__(
        self,
        keep: float = 0.10,
        step: Step = 0.02,
        horizon: int = 2,
        past: float = 0.5,
        target: Target = "ballot",
        drift: Drift = "movement",
        baseline: Baseline = "idle",
        layers: Layers = "ends",
        rounds: slice = slice(None),
        tail: Tail = "drop",
        ulps: float = 4,
        small: Small = "one",
        bad_uploads: Policy = "quarantine",
        threads: int | None = None,
        spill: str | Path | None = None,
        memory: str | int | None = None,
    ) -> None:
        super().__init__(bad_uploads)
        _check_numbers(keep, step, horizon, past, ulps, rounds)
        check_word("target", target, ("ballot", "pruned", "parameters", "update"))
        check_word("drift", drift, ("movement", "votes"))
        check_word("baseline", baseline, ("idle", "none"))
        check_word("tail", tail, ("drop", "truncate"))
        check_word("small", small, ("one", "none", "raw"))
        if small == "raw" and drift == "votes":
            raise BadSetting('small="raw" has no votes to count; use drift="movement"')
        self.keep, self.step, self.horizon, self.past = keep, step, horizon, past
        self.target, self.drift, self.baseline = target, drift, baseline
        self.layers, self.rounds, self.tail = layers, rounds, tail
        self.ulps, self.small = ulps, small
        describe(layers)
        self._threads = threads_for(threads)
        self._keeper = PendingStore(memory, spill)
        self._held: list[PendingRound] = []
        self._before: PendingRound | None = None  # the round before those, or the first start: only its trace is of use
        self._examiner: SignalExtractor | None = None

    @classmethod
    def votes(cls, **changes: Any) -> Self:
        """The paper's idea and no more: a client's votes against where the model goes next, in all layers."""
        return cls(**{"past": 0, "layers": "all", **changes})

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The paper's text, literally: the sign of the uploaded parameters against the votes to come."""
        return cls.votes(**{"target": "parameters", "drift": "votes", "baseline": "none", "small": "none", **changes})

    @classmethod
    def research_code(cls, **changes: Any) -> Self:
        """What the public research code computes: pruned parameters against movement, float rounding included."""
        return cls.votes(**{"target": "pruned", "baseline": "none", "ulps": 0, "small": "raw", **changes})

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "keep": self.keep,
            "step": self.step,
            "horizon": self.horizon,
            "past": self.past,
            "target": self.target,
            "drift": self.drift,
            "baseline": self.baseline,
            "layers": describe(self.layers),
            "rounds": [self.rounds.start, self.rounds.stop],
            "tail": self.tail,
            "ulps": self.ulps,
            "small": self.small,
        }

    @property
    def missed(self) -> tuple[int, int]:
        """Of how many layers the quick selection needed a second pass, and how many it looked at; no score shows it."""
        ballots = None if self._examiner is None else self._examiner.ballots
        return (0, 0) if ballots is None else (ballots.missed, ballots.cast_layers)

    def _take(self, round: Round, schema: ModelSchema, uploads: Uploads) -> Credits:
        chosen = choose(self.layers, schema)
        if self._schema is None and self.layers == "ends" and not schema.ordered:
            _log.warning("the layers of this model stand in no order, so its ends are not known: all layers count")
        if round.ballot_keep is not None:
            self._check_ballots_do(round, chosen)
        plane_layout = PlaneLayout(tuple(entry.size for entry in chosen))
        start = [arithmetic(array) for array in _pick(round.read_start(schema), chosen)]
        end = [arithmetic(array) for array in _pick(round.read_end(schema), chosen)]
        votes = tally(plane_layout.words, len(round.clients)) if self.drift == "votes" else None
        trace = end if votes is None else [votes]
        keeping = self._keeper.begin(round.number, plane_layout, len(round.clients), trace, self._kept)
        try:
            taken = self._examine(keeping, start, trace, chosen, uploads)
            taken = taken.but(followed=self._followed(taken))
            held = [*self._held, taken]
            final = {held[0].number: self._credit(held)} if len(held) > self.horizon else {}
            before = self._before if self._before or not self._needs_before else self._keep_start(taken, start)
        except BaseException:
            keeping.abandon()
            raise
        done, rest = held[: len(final)], held[len(final) :]
        if before is not None and done:  # the round that is done becomes the one before
            before, done = done[0].trace_alone(), [before]
        if self.drift == "movement" and taken.sheaf is None:  # servers reuse the memory of their models
            rest[-1] = taken.but(trace=copied(end, into=done[0].trace if done else []))
        self._before, self._held = before, rest
        for one in done:
            self._keeper.drop(one)
        return final

    @property
    def _kept(self) -> list[PendingRound]:
        return self._held if self._before is None else [self._before, *self._held]

    @property
    def _needs_before(self) -> bool:
        return self.past > 0 and self.drift == "movement"

    def _keep_start(self, first: PendingRound, start: Sequence[Array]) -> PendingRound:
        """The model before the first round, as if a round without clients had ended there."""
        keeping = self._keeper.begin(first.number, first.plane_layout, 0, start, [first])
        try:
            kept = keeping.finish(None, start)
        except BaseException:
            keeping.abandon()
            raise
        return kept if kept.sheaf is not None else kept.but(trace=copied(start))

    def _followed(self, taken: PendingRound) -> dict[Client, Row] | None:
        """How well each claim agrees with where the model came from, if there were rounds enough before."""
        if self.past == 0 or len(self._held) < self.horizon:
            return None
        since = self._before or taken  # of the first of a window no votes count
        with self._hands(taken.plane_layout) as threads:
            return _against(taken, self._drift([since, *self._held], threads), threads)

    def _examine(
        self,
        keeping: PendingWriter,
        start: Sequence[Array],
        trace: Sequence[Array],
        chosen: Sequence[LayerSpec],
        uploads: Uploads,
    ) -> PendingRound:
        """The claims of all clients; the trace is the model as the caller has it, or the votes, which are counted."""
        plane_layout = keeping.plane_layout
        if self._examiner is None or self._examiner.plane_layout != plane_layout:
            self._examiner = SignalExtractor(plane_layout, self.keep, self.step, self.target, self.small)
        examination = self._examiner.round(start)
        votes = trace[0] if self.drift == "votes" else None
        ballots_count = votes is not None or self.target in ("ballot", "pruned")
        with self._hands(plane_layout) as threads:
            for client, model in uploads:
                local = [arithmetic(array) for array in _pick(model, chosen)]
                ballot = examination.ballot(local, threads) if ballots_count else None
                keeping.add(client, examination.claim(local, ballot, threads))
                if votes is not None and ballot is not None:
                    count(votes, ballot)
                del model, local  # before the next one is loaded
        return keeping.finish(examination.idle if self.baseline == "idle" else None, trace)

    def _hands(self, plane_layout: PlaneLayout) -> ThreadPool:
        return ThreadPool(self._threads if sum(plane_layout.sizes) >= THREADS_PAY else 1)

    def _check_ballots_do(self, round: Round, chosen: Sequence[LayerSpec]) -> None:
        wholly = self.target not in ("ballot", "pruned") or round.ballot_keep != self.keep
        sizes = self.target == "pruned" and self.step == "avg"
        raw = self.small == "raw" and any(too_small(entry.size, self.keep) for entry in chosen)
        if wholly or sizes or raw:
            raise BadSetting(
                f"round {round.number} holds ballots of keep={round.ballot_keep} only; CoAst with keep={self.keep},"
                f" target={self.target!r}, step={self.step!r}, small={self.small!r} needs the whole uploads."
                f" Use keep={round.ballot_keep}, target 'ballot' or 'pruned', a step that is a number and small 'one'"
            )

    def _credit(self, held: Sequence[PendingRound]) -> dict[Client, float]:
        """The credits of the first of these rounds, from those after it."""
        followed = held[0].followed or {}
        return {
            client: self._worth(int(row.sum()), int(followed[client].sum()) if followed else 0)
            for client, row in self._agreements(held).items()
        }

    def _worth(self, led: int, followed: int) -> float:
        """Rounded once, at the end: parts of a model can be valued apart and added up without a trace."""
        return float(led - Fraction(self.past) * followed) if self.past else led

    def _agreements(self, held: Sequence[PendingRound]) -> dict[Client, Row]:
        """How well each claim of the first of these rounds agrees with where the model went, layer by layer."""
        with self._hands(held[0].plane_layout) as threads:
            return _against(held[0], self._drift(held, threads), threads)

    def _drift(self, held: Sequence[PendingRound], threads: ThreadPool) -> Planes:
        """Where the model went after the first of these rounds."""
        if self.drift == "votes":
            return lead([one.votes for one in held[1:]])
        extents = [one.extent for one in held]
        return movement_planes([one.trace for one in held], self.ulps, held[0].plane_layout, threads, extents)

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
        facts, arrays = self._keeper.state(self._kept)
        return {**facts, "before": self._before is not None}, arrays

    def _saved(self) -> None:
        self._keeper.saved(self._kept)

    def _restore(self, facts: dict[str, Any], arrays: dict[str, Array]) -> None:
        held = self._keeper.restore(facts, arrays)
        self._before, self._held = (held[0], held[1:]) if facts["before"] else (None, held)


def _against(of: PendingRound, drift: Planes, threads: ThreadPool) -> dict[Client, Row]:
    """The agreement of a round's claims with a drift, above that of who did nothing, layer by layer: it is additive."""
    idle = 0 if of.idle is None else agreements(of.idle, drift, of.plane_layout)
    rows = threads.map(lambda claim: agreements(claim, drift, of.plane_layout) - idle, of.claims.values())
    return dict(zip(of.claims, rows, strict=True))


def _pick(model: dict[str, Array], entries: Iterable[LayerSpec]) -> list[Array]:
    return [model[entry.name] for entry in entries]


def _check_numbers(keep: float, step: Step, horizon: int, past: float, ulps: float, rounds: slice) -> None:
    if not is_number(keep) or not 0 < keep <= 1:
        hint = f" (did you mean {keep / 100:.2f}?)" if is_number(keep) and 1 < keep <= 100 else ""
        raise BadSetting(f"keep must lie in (0, 1], the share of each layer that votes; got {keep!r}{hint}")
    if not (isinstance(step, str) and step == "avg") and not (is_number(step) and float(step) > 0):
        raise BadSetting(f"step must be a positive number, how far a vote moves a parameter, or 'avg'; got {step!r}")
    check_count("horizon", horizon, 1, "the rounds of future")
    if not is_number(past) or not 0 <= past <= 1:
        raise BadSetting(
            f"past must lie in [0, 1], the share of the agreement with earlier rounds that is taken off; got {past!r}"
        )
    if not is_number(ulps) or ulps < 0:
        raise BadSetting(f"ulps must be a number of at least 0; got {ulps!r}")
    numbers = (rounds.start, rounds.stop, rounds.step) if isinstance(rounds, slice) else ("none",)
    if not all(number is None or type(number) is int for number in numbers) or rounds.step not in (None, 1):
        raise BadSetting(f"rounds must be a slice such as slice(10, None), in steps of one; got {rounds!r}")
