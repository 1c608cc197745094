"""CoAst: a client's round is worth how well it agrees with where the global model moves in the next k rounds.

    ballot   Δ̃_i^t = signs of the largest r of θ_i^t − Θ^{t−1}, tensor by tensor, zero elsewhere
    movement U^(t,k) = Θ^{t+k} − Θ^t
    credit   p̂_i^t = Σ_h sgn(x_i^t[h]) · sgn(U^(t,k)[h]),  x the `signal`; the default is the ballot
    score    p̂_i = Σ_t p̂_i^t

That is the paper's idea. A client may agree with the coming movement merely by repeating the recent one. So by default
half of the agreement with the k rounds before t is subtracted, and only the first layer and the head count:

    credit   p̂_i^t − past_weight · Σ_h sgn(x_i^t[h]) · sgn(Θ^{t−1} − Θ^{t−1−k})[h]

Paper: Wu, Zhang, Li, Xu, Zhong, "CoAst: Validation-Free Contribution Assessment for Federated Learning based
on Cross-Round Valuation", ACM MM 2024, sections 4.2 and 4.3.
Needs: the clients' uploads and the global models; no validation data, no full participation.
Cost: about one pass over each upload; holds `horizon` rounds, two bits for each parameter and client.
Deviations: `past_weight` and the choice of layers are ours (docs/default.md has why). The paper contradicts itself on
what is compared with the movement, on r, and on whether training changes; docs/paper-notes.md has each reading.
`CoAst.votes()` is the paper's idea, `CoAst.paper()` its text, `CoAst.research_code()` the public code.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from fedcoast.errors import BadSetting, Client
from fedcoast.kernels.bit_planes import PlaneLayout, Planes, Row, agreements
from fedcoast.kernels.movement import movement_planes
from fedcoast.kernels.threads import ThreadPool, threads_for
from fedcoast.kernels.vote_counts import count, lead, tally
from fedcoast.methods.base import Assessor, Uploads
from fedcoast.methods.coast.config import CoAstConfig, Resources
from fedcoast.methods.coast.pending import PendingRound, PendingStore, PendingWriter
from fedcoast.methods.coast.signals import SignalExtractor, too_small
from fedcoast.methods.layer_selection import choose
from fedcoast.methods.ledger import Credits
from fedcoast.rounds.arrays import Array, arithmetic, copied
from fedcoast.rounds.round import Round
from fedcoast.rounds.schema import LayerSpec, ModelSchema

_log = logging.getLogger("fedcoast")

THREADS_PAY = 1 << 18  # entries of a model from which on starting threads is worth it


class CoAst(Assessor):
    """CoAst as a stream: credits for a round become final `horizon` rounds later.

    Options are those of `CoAstConfig`, as keywords or as a configuration: `CoAst(horizon=5, past_weight=1)`,
    `CoAst(config)`. What costs resources but changes no score is apart: `num_threads`, `spill_dir` and `memory_limit`
    (see `Resources`).
    """

    method = "coast"
    takes_ballots = True

    def __init__(
        self,
        config: CoAstConfig | None = None,
        *,
        num_threads: int | None = None,
        spill_dir: str | Path | None = None,
        memory_limit: str | int | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(config, CoAstConfig | None):
            raise BadSetting(
                f"options of CoAst are keywords, such as CoAst(keep=0.10), or a CoAstConfig; got {config!r}"
            )
        self.config = CoAstConfig(**options) if config is None else replace(config, **options)
        super().__init__(self.config.bad_uploads)
        self.resources = Resources(num_threads=num_threads, spill_dir=spill_dir, memory_limit=memory_limit)
        self._threads = threads_for(num_threads)
        self._keeper = PendingStore(memory_limit, spill_dir)
        self._held: list[PendingRound] = []
        self._before: PendingRound | None = None  # the round before those, or the first start: only its trace is of use
        self._examiner: SignalExtractor | None = None

    @classmethod
    def votes(cls, **changes: Any) -> Self:
        """The paper's idea and no more: a client's votes against where the model goes next, in all layers."""
        return cls(**{"past_weight": 0, "layers": "all", **changes})

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The paper's text, literally: the sign of the uploaded parameters against the votes to come."""
        literal = {"signal": "parameters", "reference": "votes", "baseline": "none", "tiny_layers": "none"}
        return cls.votes(**{**literal, **changes})

    @classmethod
    def research_code(cls, **changes: Any) -> Self:
        """What the public research code computes: pruned parameters against movement, float rounding included."""
        public = {"signal": "pruned", "baseline": "none", "ulp_tolerance": 0, "tiny_layers": "raw"}
        return cls.votes(**{**public, **changes})

    @property
    def settings(self) -> dict[str, Any]:
        return self.config.to_json()

    @property
    def missed(self) -> tuple[int, int]:
        """Of how many layers the quick selection needed a second pass, and how many it looked at; no score shows it."""
        ballots = None if self._examiner is None else self._examiner.ballots
        return (0, 0) if ballots is None else (ballots.missed, ballots.cast_layers)

    def _take(self, round: Round, schema: ModelSchema, uploads: Uploads) -> Credits:
        chosen = choose(self.config.layers, schema)
        if self._schema is None and self.config.layers == "first+head" and not schema.ordered:
            _log.warning("the layers of this model stand in no order, so its ends are not known: all layers count")
        if round.ballot_keep is not None:
            self._check_ballots_do(round, chosen)
        plane_layout = PlaneLayout(tuple(entry.size for entry in chosen))
        start = [arithmetic(array) for array in _pick(round.read_start(schema), chosen)]
        end = [arithmetic(array) for array in _pick(round.read_end(schema), chosen)]
        votes = tally(plane_layout.words, len(round.clients)) if self.config.reference == "votes" else None
        trace = end if votes is None else [votes]
        keeping = self._keeper.begin(round.number, plane_layout, len(round.clients), trace, self._kept)
        try:
            taken = self._examine(keeping, start, trace, chosen, uploads)
            taken = taken.but(followed=self._followed(taken))
            held = [*self._held, taken]
            final = {held[0].number: self._credit(held)} if len(held) > self.config.horizon else {}
            before = self._before if self._before or not self._needs_before else self._keep_start(taken, start)
        except BaseException:
            keeping.abandon()
            raise
        done, rest = held[: len(final)], held[len(final) :]
        if before is not None and done:  # the round that is done becomes the one before
            before, done = done[0].trace_alone(), [before]
        if self.config.reference == "movement" and taken.sheaf is None:  # servers reuse the memory of their models
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
        return self.config.past_weight > 0 and self.config.reference == "movement"

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
        if self.config.past_weight == 0 or len(self._held) < self.config.horizon:
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
            self._examiner = SignalExtractor(plane_layout, self.config)
        examination = self._examiner.round(start)
        votes = trace[0] if self.config.reference == "votes" else None
        ballots_count = votes is not None or self.config.signal in ("ballot", "pruned")
        with self._hands(plane_layout) as threads:
            for client, model in uploads:
                local = [arithmetic(array) for array in _pick(model, chosen)]
                ballot = examination.ballot(local, threads) if ballots_count else None
                keeping.add(client, examination.claim(local, ballot, threads))
                if votes is not None and ballot is not None:
                    count(votes, ballot)
                del model, local  # before the next one is loaded
        return keeping.finish(examination.idle if self.config.baseline == "idle" else None, trace)

    def _hands(self, plane_layout: PlaneLayout) -> ThreadPool:
        return ThreadPool(self._threads if sum(plane_layout.sizes) >= THREADS_PAY else 1)

    def _check_ballots_do(self, round: Round, chosen: Sequence[LayerSpec]) -> None:
        config = self.config
        wholly = config.signal not in ("ballot", "pruned") or round.ballot_keep != config.keep
        sizes = config.signal == "pruned" and config.step == "avg"
        raw = config.tiny_layers == "raw" and any(too_small(entry.size, config.keep) for entry in chosen)
        if wholly or sizes or raw:
            raise BadSetting(
                f"round {round.number} holds ballots of keep={round.ballot_keep} only; CoAst with keep={config.keep},"
                f" signal={config.signal!r}, step={config.step!r}, tiny_layers={config.tiny_layers!r} needs"
                f" the whole uploads. Use keep={round.ballot_keep}, signal 'ballot' or 'pruned', a step that is a"
                " number and tiny_layers 'one'"
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
        return float(led - Fraction(self.config.past_weight) * followed) if self.config.past_weight else led

    def _agreements(self, held: Sequence[PendingRound]) -> dict[Client, Row]:
        """How well each claim of the first of these rounds agrees with where the model went, layer by layer."""
        with self._hands(held[0].plane_layout) as threads:
            return _against(held[0], self._drift(held, threads), threads)

    def _drift(self, held: Sequence[PendingRound], threads: ThreadPool) -> Planes:
        """Where the model went after the first of these rounds."""
        if self.config.reference == "votes":
            return lead([one.votes for one in held[1:]])
        extents = [one.extent for one in held]
        tolerance = self.config.ulp_tolerance
        return movement_planes([one.trace for one in held], tolerance, held[0].plane_layout, threads, extents)

    def _credits(self) -> Credits:
        credits = super()._credits()
        if self.config.incomplete_rounds == "truncate":
            for index in range(len(self._held) - 1):
                credits[self._held[index].number] = self._credit(self._held[index:])
        return credits

    def _counted(self, credits: Credits) -> Credits:
        return {number: credits[number] for number in list(credits)[self.config.score_rounds]}

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
