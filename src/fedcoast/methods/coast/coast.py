"""CoAst: a client's round is worth how well it agrees with where the federation goes in the next k rounds.

    ballot   Δ̃_i^t = signs of the largest r of θ_i^t − Θ^{t−1}, tensor by tensor, zero elsewhere

By default ballots are compared with the ballots of the *other* clients in the next round, less a share of their
agreement with those of the round before: clients that merely repeat the recent direction are discounted. Where clients
differ in one direction, the end that leads is favoured. `pair_credits` and `stats.client_line` have the formulas.

The paper compares with the global model instead (`reference="movement"`):

    movement U^(t,k) = Θ^{t+k} − Θ^t
    credit   p̂_i^t = Σ_h sgn(x_i^t[h]) · sgn(U^(t,k)[h]),  x the `signal`; the default is the ballot
    score    p̂_i = Σ_t p̂_i^t

Paper: Wu, Zhang, Li, Xu, Zhong, "CoAst: Validation-Free Contribution Assessment for Federated Learning based
on Cross-Round Valuation", ACM MM 2024, sections 4.2 and 4.3.
Needs: the clients' uploads, for `reference="movement"` the global models too; no validation data, no full attendance.
Cost: about one pass over each upload; holds `horizon` rounds, two bits for each parameter and client.
Deviations: the comparison with other clients, `past_weight` and `line_weight` are ours (docs/default.md says why).
`CoAst.votes()` is the paper's idea, `CoAst.paper()` its text, `CoAst.research_code()` its code (docs/paper-notes.md).
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from fedcoast.errors import BadFile, Client
from fedcoast.kernels.ballots import Floats
from fedcoast.kernels.bit_planes import PlaneLayout, Row
from fedcoast.kernels.threads import ThreadPool, threads_for
from fedcoast.kernels.vote_counts import tally
from fedcoast.methods.base import Uploads
from fedcoast.methods.coast.agreement import (
    LayerTotals,
    RoundAgreement,
    past_agreement,
    round_agreement,
)
from fedcoast.methods.coast.config import PAPER_OPTIONS, CoAstConfig, Resources
from fedcoast.methods.coast.pair_credits import PairCredits, PairTable, pair_tables
from fedcoast.methods.coast.pending import PendingRound, PendingStore, PendingWriter
from fedcoast.methods.coast.signals import SignalExtractor, check_ballots_suffice
from fedcoast.methods.configured import ConfiguredAssessor
from fedcoast.methods.layer_credits import LayerCredits
from fedcoast.methods.layer_selection import choose
from fedcoast.methods.ledger import Credits
from fedcoast.rounds.arrays import Array, arithmetic, copied
from fedcoast.rounds.round import Round
from fedcoast.rounds.schema import LayerSpec, ModelSchema

_log = logging.getLogger(__name__)

PARALLEL_FROM = 1 << 18  # entries of a model from which on starting threads is worth it


class CoAst(ConfiguredAssessor[CoAstConfig]):
    """CoAst as a stream: credits for a round become final `horizon` rounds later.

    Options are those of `CoAstConfig`: `CoAst(horizon=2, keep=0.2)`. What costs resources but changes no score is
    apart (see `Resources`): `num_threads`, `spill_dir`, `memory_limit` and `track_layers`.
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
        super().__init__(config, **options)
        self.resources = Resources(
            num_threads=num_threads, spill_dir=spill_dir, memory_limit=memory_limit, track_layers=track_layers
        )
        self.finalized: tuple[RoundAgreement, ...] = ()
        """What made credits final in the last observed round: at most one."""
        self.pair_tables: tuple[PairTable, ...] = ()
        """What the last observed round's ballots were compared with, if with ballots."""
        self._num_threads = threads_for(num_threads)
        self._store = PendingStore(memory_limit, spill_dir)
        self._waiting: list[PendingRound] = []
        self._previous: PendingRound | None = None  # the round before those, or the first start, for its reference only
        self._extractor: SignalExtractor | None = None
        self._layer_totals = LayerTotals(self.config) if track_layers else None
        self._pairs = PairCredits(self.config.horizon, self.config.past_weight, track_layers)

    @classmethod
    def votes(cls, **changes: Any) -> Self:
        """The paper's idea and no more: a client's votes against where the model goes next, in all layers."""
        return cls(**{**PAPER_OPTIONS, **changes})

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
    def repeated_selections(self) -> tuple[int, int]:
        """In how many layers the fast selection needed a second pass, and how many it looked at; no score shows it."""
        return (0, 0) if self._extractor is None else self._extractor.repeated_selections

    def _take(self, fl_round: Round, schema: ModelSchema, uploads: Uploads) -> Credits:
        chosen = choose(self.config.layers, schema)
        if self._schema is None and self.config.layers == "first+head" and not schema.ordered:
            _log.warning("The layers of this model have no order, so first and head are unknown: all layers count")
        if fl_round.ballot_keep is not None:
            check_ballots_suffice(fl_round, chosen, self.config)
        layout = PlaneLayout(tuple(entry.size for entry in chosen))
        start = [arithmetic(array) for array in _pick(fl_round.read_start(schema), chosen)]
        end = [arithmetic(array) for array in _pick(fl_round.read_end(schema), chosen)]
        if self.config.reference == "others":  # the model after was read to refuse a round that is not whole
            return self._compare_with_others(fl_round, layout, start, chosen, uploads)
        return self._compare_with_reference(fl_round, layout, start, end, chosen, uploads)

    def _compare_with_others(
        self,
        fl_round: Round,
        layout: PlaneLayout,
        start: Sequence[Array],
        chosen: Sequence[LayerSpec],
        uploads: Uploads,
    ) -> Credits:
        with self._store.writer(fl_round.number, layout, len(fl_round.clients), [], self._in_store) as writer:
            newest = self._signals(writer, start, [], chosen, uploads)
            newest = newest.replace(answered=len(fl_round.clients) + len(fl_round.quarantined))
            votes = sum(self._extractor.votes) if self._extractor is not None else 0
            with self._thread_pool(layout) as threads:
                tables = pair_tables(self._waiting, newest, votes, threads)
            pairs = self._pairs.with_tables(newest, tables)
        waiting = [*self._waiting, newest]
        done, waiting = waiting[: -self.config.horizon], waiting[-self.config.horizon :]
        credits = {one.number: pairs.credits(one.number) for one in done}
        self._settle(pairs.by_layer(one) for one in done)
        for one in done:
            pairs = pairs.without(one.number)
            self._store.drop(one)
        self._waiting, self._pairs, self.pair_tables = waiting, pairs, tables
        return credits

    def _settle(self, finalized: Iterable[RoundAgreement]) -> None:
        """Keep what made credits final, and count its layers."""
        self.finalized = tuple(finalized)
        if self._layer_totals is not None:
            for agreement in self.finalized:
                self._layer_totals.add(agreement)

    def _compare_with_reference(
        self,
        fl_round: Round,
        layout: PlaneLayout,
        start: Sequence[Array],
        end: Sequence[Array],
        chosen: Sequence[LayerSpec],
        uploads: Uploads,
    ) -> Credits:
        by_votes = self.config.reference == "votes"
        reference = [tally(layout.words, len(fl_round.clients))] if by_votes else end
        with self._store.writer(fl_round.number, layout, len(fl_round.clients), reference, self._in_store) as writer:
            newest = self._signals(writer, start, reference, chosen, uploads)
            newest = newest.replace(past_agreement=self._past_agreement(newest))
            waiting = [*self._waiting, newest]
            finalized = (self._agreement(waiting),) if len(waiting) > self.config.horizon else ()
            previous = self._previous or (self._store.keep_model(newest, start) if self._needs_previous else None)
        done, waiting = waiting[: len(finalized)], waiting[len(finalized) :]
        if previous is not None and done:  # the valued round becomes the previous one
            previous, done = done[0].reference_alone(), [previous]
        if not by_votes and newest.spill_file is None:  # servers reuse the memory of their models
            waiting[-1] = newest.replace(reference=copied(end, into=done[0].reference if done else []))
        self._previous, self._waiting = previous, waiting
        self._settle(finalized)
        for one in done:
            self._store.drop(one)
        return {agreement.number: agreement.credits(self.config.past_weight) for agreement in finalized}

    @property
    def _in_store(self) -> list[PendingRound]:
        return self._waiting if self._previous is None else [self._previous, *self._waiting]

    @property
    def _needs_previous(self) -> bool:
        return self.config.past_weight > 0 and self.config.reference == "movement"

    def _signals(
        self,
        writer: PendingWriter,
        start: Sequence[Array],
        reference: Sequence[Array],
        chosen: Sequence[LayerSpec],
        uploads: Uploads,
    ) -> PendingRound:
        """The signals of all clients; a `reference` of votes is counted here."""
        layout = writer.plane_layout
        if self._extractor is None or self._extractor.plane_layout != layout:
            self._extractor = SignalExtractor(layout, self.config)
        votes = reference[0] if self.config.reference == "votes" else None
        models = _arithmetic(uploads, chosen)
        with self._thread_pool(layout) as threads:
            signals = self._extractor.for_round(start)
            for client, signal in signals.of(models, threads, votes):
                writer.add(client, signal)
        return writer.finish(signals.idle if self.config.baseline == "idle" else None, reference)

    def _thread_pool(self, layout: PlaneLayout) -> ThreadPool:
        return ThreadPool(self._num_threads if sum(layout.sizes) >= PARALLEL_FROM else 1)

    def _past_agreement(self, newest: PendingRound) -> dict[Client, Row] | None:
        """How well each signal agrees with the rounds before, if there are enough of them."""
        if self.config.past_weight == 0 or len(self._waiting) < self.config.horizon:
            return None
        first = self._previous or newest  # the votes of the first round of a window do not count
        with self._thread_pool(newest.plane_layout) as threads:
            return past_agreement(newest, [first, *self._waiting], self.config, threads)

    def _agreement(self, window: Sequence[PendingRound]) -> RoundAgreement:
        with self._thread_pool(window[0].plane_layout) as threads:
            return round_agreement(window, self.config, threads, with_votes=self._layer_totals is not None)

    def provisional(self) -> tuple[RoundAgreement, ...]:
        """The agreement of rounds that are valued with an incomplete future; none unless the options say so."""
        if self.config.incomplete_rounds == "drop":
            return ()
        if self.config.reference == "others":
            return tuple(self._pairs.by_layer(one) for one in self._waiting[:-1])
        return tuple(self._agreement(self._waiting[place:]) for place in range(len(self._waiting) - 1))

    def _credits(self) -> Credits:
        provisional, weight = {one.number: one for one in self.provisional()}, self.config.past_weight
        if self.config.reference == "others":
            return super()._credits() | {number: self._pairs.credits(number) for number in provisional}
        return super()._credits() | {number: one.credits(weight) for number, one in provisional.items()}

    def _factors(self) -> dict[Client, float]:
        return self._pairs.factors(self.config.line_weight)

    def _unordered(self) -> tuple[tuple[Client, Client], ...]:
        return self._pairs.unordered(self.config.line_weight)

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
        ).scaled(self._factors())

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        facts, arrays = self._store.state(self._in_store)
        facts["before"] = self._previous is not None
        if self.config.reference == "others":
            facts["pairs"], pairs = self._pairs.state()
            arrays |= pairs
        return facts, arrays

    def _saved(self) -> None:
        self._store.saved(self._in_store)

    def _restore(self, facts: dict[str, Any], arrays: dict[str, Array]) -> None:
        others = self.config.reference == "others"
        pairs = PairCredits(self.config.horizon, self.config.past_weight, self.resources.track_layers)
        rounds = self._store.restore(facts, arrays)
        pairs = pairs.restored(facts["pairs"], arrays, rounds) if others else pairs
        if not others and any(not one.reference for one in rounds):
            raise BadFile("the state holds neither models nor votes to compare with; it was altered")
        self._previous, self._waiting = (rounds[0], rounds[1:]) if facts["before"] else (None, rounds)
        self._pairs, self.finalized, self.pair_tables = pairs, (), ()
        self._layer_totals = None if self._layer_totals is None else LayerTotals(self.config)


def _arithmetic(uploads: Uploads, chosen: Sequence[LayerSpec]) -> Iterator[tuple[Client, list[Floats]]]:
    for client, model in uploads:
        yield client, [arithmetic(array) for array in _pick(model, chosen)]
        del model  # before the next one is loaded


def _pick(model: dict[str, Array], entries: Iterable[LayerSpec]) -> list[Array]:
    return [model[entry.name] for entry in entries]
