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
from pathlib import Path
from typing import Any, Self

from fedcoast.errors import BadSetting, Client
from fedcoast.kernels.bit_planes import PlaneLayout, Planes, Row
from fedcoast.kernels.movement import movement_planes
from fedcoast.kernels.threads import ThreadPool, threads_for
from fedcoast.kernels.vote_counts import count, majority_sign, tally
from fedcoast.methods.base import Assessor, Uploads
from fedcoast.methods.coast.agreement import LayerTotals, RoundAgreement, agreement_by_client, votes_by_client
from fedcoast.methods.coast.config import CoAstConfig, Resources
from fedcoast.methods.coast.pending import PendingRound, PendingStore, PendingWriter
from fedcoast.methods.coast.signals import SignalExtractor, too_small
from fedcoast.methods.layer_credits import LayerCredits
from fedcoast.methods.layer_selection import choose
from fedcoast.methods.ledger import Credits
from fedcoast.rounds.arrays import Array, arithmetic, copied
from fedcoast.rounds.round import Round
from fedcoast.rounds.schema import LayerSpec, ModelSchema

_log = logging.getLogger(__name__)

PARALLEL_FROM = 1 << 18  # entries of a model from which on starting threads is worth it


class CoAst(Assessor):
    """CoAst as a stream: credits for a round become final `horizon` rounds later.

    Options are those of `CoAstConfig`, as keywords or as a configuration: `CoAst(horizon=5, past_weight=1)`,
    `CoAst(config)`. What costs resources but changes no score is apart (see `Resources`): `num_threads`, `spill_dir`,
    `memory_limit` and `track_layers`.
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
        track_layers: bool = False,
        **options: Any,
    ) -> None:
        if not isinstance(config, CoAstConfig | None):
            raise BadSetting(
                f"options of CoAst are keywords, such as CoAst(keep=0.10), or a CoAstConfig; got {config!r}"
            )
        self.config = CoAstConfig(**options) if config is None else replace(config, **options)
        super().__init__(self.config.bad_uploads)
        self.resources = Resources(
            num_threads=num_threads, spill_dir=spill_dir, memory_limit=memory_limit, track_layers=track_layers
        )
        self.finalized: tuple[RoundAgreement, ...] = ()
        """What made credits final in the last observed round: at most one."""
        self._num_threads = threads_for(num_threads)
        self._store = PendingStore(memory_limit, spill_dir)
        self._waiting: list[PendingRound] = []
        self._previous: PendingRound | None = None  # the round before those, or the first start, for its reference only
        self._extractor: SignalExtractor | None = None
        self._layer_totals = LayerTotals(self.config) if track_layers else None

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
    def zero_is_idle(self) -> bool:
        return self.config.zero_is_idle

    @property
    def dependence_span(self) -> int:
        return self.config.dependence_span

    @property
    def repeated_selections(self) -> tuple[int, int]:
        """In how many layers the fast selection needed a second pass, and how many it looked at; no score shows it."""
        ballots = None if self._extractor is None else self._extractor.ballots
        return (0, 0) if ballots is None else (ballots.missed, ballots.cast_layers)

    def _take(self, round: Round, schema: ModelSchema, uploads: Uploads) -> Credits:
        chosen = choose(self.config.layers, schema)
        if self._schema is None and self.config.layers == "first+head" and not schema.ordered:
            _log.warning("The layers of this model have no order, so first and head are unknown: all layers count")
        if round.ballot_keep is not None:
            self._check_ballots_suffice(round, chosen)
        layout = PlaneLayout(tuple(entry.size for entry in chosen))
        start = [arithmetic(array) for array in _pick(round.read_start(schema), chosen)]
        end = [arithmetic(array) for array in _pick(round.read_end(schema), chosen)]
        by_votes = self.config.reference == "votes"
        reference = [tally(layout.words, len(round.clients))] if by_votes else end
        with self._store.writer(round.number, layout, len(round.clients), reference, self._in_store) as writer:
            newest = self._signals(writer, start, reference, chosen, uploads)
            newest = newest.replace(past_agreement=self._past_agreement(newest))
            waiting = [*self._waiting, newest]
            finalized = (self._agreement(waiting),) if len(waiting) > self.config.horizon else ()
            previous = self._previous or (self._keep_start(newest, start) if self._needs_previous else None)
        done, waiting = waiting[: len(finalized)], waiting[len(finalized) :]
        if previous is not None and done:  # the valued round becomes the previous one
            previous, done = done[0].reference_alone(), [previous]
        if not by_votes and newest.spill_file is None:  # servers reuse the memory of their models
            waiting[-1] = newest.replace(reference=copied(end, into=done[0].reference if done else []))
        self._previous, self._waiting, self.finalized = previous, waiting, finalized
        for one in done:
            self._store.drop(one)
        if self._layer_totals is not None:
            for agreement in finalized:
                self._layer_totals.add(agreement)
        return {agreement.number: agreement.credits(self.config.past_weight) for agreement in finalized}

    @property
    def _in_store(self) -> list[PendingRound]:
        return self._waiting if self._previous is None else [self._previous, *self._waiting]

    @property
    def _needs_previous(self) -> bool:
        return self.config.past_weight > 0 and self.config.reference == "movement"

    def _keep_start(self, first: PendingRound, start: Sequence[Array]) -> PendingRound:
        """The model before the first round, as if a round without clients had ended there."""
        with self._store.writer(first.number, first.plane_layout, 0, start, [first]) as writer:
            kept = writer.finish(None, start)
        return kept if kept.spill_file is not None else kept.replace(reference=copied(start))

    def _signals(
        self,
        writer: PendingWriter,
        start: Sequence[Array],
        reference: Sequence[Array],
        chosen: Sequence[LayerSpec],
        uploads: Uploads,
    ) -> PendingRound:
        """The signals of all clients; a `reference` of votes is counted here."""
        config, layout = self.config, writer.plane_layout
        if self._extractor is None or self._extractor.plane_layout != layout:
            self._extractor = SignalExtractor(layout, config)
        extractor = self._extractor.for_round(start)
        votes = reference[0] if config.reference == "votes" else None
        needs_ballot = votes is not None or config.signal in ("ballot", "pruned")
        with self._thread_pool(layout) as threads:
            for client, model in uploads:
                local = [arithmetic(array) for array in _pick(model, chosen)]
                ballot = extractor.ballot(local, threads) if needs_ballot else None
                writer.add(client, extractor.signal(local, ballot, threads))
                if votes is not None and ballot is not None:
                    count(votes, ballot)
                del model, local  # before the next one is loaded
        return writer.finish(extractor.idle if config.baseline == "idle" else None, reference)

    def _thread_pool(self, layout: PlaneLayout) -> ThreadPool:
        return ThreadPool(self._num_threads if sum(layout.sizes) >= PARALLEL_FROM else 1)

    def _check_ballots_suffice(self, round: Round, chosen: Sequence[LayerSpec]) -> None:
        config = self.config
        whole = config.signal not in ("ballot", "pruned") or round.ballot_keep != config.keep
        sizes = config.signal == "pruned" and config.step == "avg"
        raw = config.tiny_layers == "raw" and any(too_small(entry.size, config.keep) for entry in chosen)
        if whole or sizes or raw:
            raise BadSetting(
                f"round {round.number} holds ballots of keep={round.ballot_keep} only; CoAst with keep={config.keep},"
                f" signal={config.signal!r}, step={config.step!r}, tiny_layers={config.tiny_layers!r} needs"
                f" the whole uploads. Use keep={round.ballot_keep}, signal 'ballot' or 'pruned', a step that is a"
                " number and tiny_layers 'one'"
            )

    def _past_agreement(self, newest: PendingRound) -> dict[Client, Row] | None:
        """How well each signal agrees with the rounds before, if there are enough of them."""
        if self.config.past_weight == 0 or len(self._waiting) < self.config.horizon:
            return None
        first = self._previous or newest  # the votes of the first round of a window do not count
        with self._thread_pool(newest.plane_layout) as threads:
            return agreement_by_client(newest, self._reference([first, *self._waiting], threads), threads)

    def _agreement(self, window: Sequence[PendingRound]) -> RoundAgreement:
        """The agreement of the first of these rounds with those after it."""
        first = window[0]
        with self._thread_pool(first.plane_layout) as threads:
            ahead = agreement_by_client(first, self._reference(window, threads), threads)
        votes = {} if self._layer_totals is None else votes_by_client(first)
        return RoundAgreement(first.number, ahead, first.past_agreement or {}, votes)

    def _reference(self, window: Sequence[PendingRound], threads: ThreadPool) -> Planes:
        """Which way every entry went after the first of these rounds."""
        if self.config.reference == "votes":
            return majority_sign([one.votes for one in window[1:]])
        extents, tolerance = [one.extent for one in window], self.config.ulp_tolerance
        return movement_planes([one.reference for one in window], tolerance, window[0].plane_layout, threads, extents)

    def provisional(self) -> tuple[RoundAgreement, ...]:
        """The agreement of rounds that are valued with an incomplete future; none unless the options say so."""
        if self.config.incomplete_rounds == "drop":
            return ()
        return tuple(self._agreement(self._waiting[place:]) for place in range(len(self._waiting) - 1))

    def _credits(self) -> Credits:
        weight = self.config.past_weight
        return super()._credits() | {agreement.number: agreement.credits(weight) for agreement in self.provisional()}

    def _counted_rounds(self, valued: tuple[int, ...]) -> tuple[int, ...] | None:
        return self.config.counted(valued)

    def _pending(self) -> tuple[int, ...]:
        return tuple(one.number for one in self._waiting)

    def _by_layer(self) -> LayerCredits | None:
        if self._layer_totals is None or self._schema is None:
            return None
        names = tuple(entry.name for entry in choose(self.config.layers, self._schema))
        provisional = self.provisional()
        valued = (*self._ledger.credits, *(agreement.number for agreement in provisional))
        counted = self.config.counted(valued)
        return self._layer_totals.credits(
            names, self._ledger.clients, valued if counted is None else counted, provisional
        )

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        facts, arrays = self._store.state(self._in_store)
        return {**facts, "before": self._previous is not None}, arrays

    def _saved(self) -> None:
        self._store.saved(self._in_store)

    def _restore(self, facts: dict[str, Any], arrays: dict[str, Array]) -> None:
        rounds = self._store.restore(facts, arrays)
        self._previous, self._waiting = (rounds[0], rounds[1:]) if facts["before"] else (None, rounds)
        self.finalized = ()
        self._layer_totals = None if self._layer_totals is None else LayerTotals(self.config)


def _pick(model: dict[str, Array], entries: Iterable[LayerSpec]) -> list[Array]:
    return [model[entry.name] for entry in entries]
