"""CoAst: a client's round is worth how well it agrees with where the federation goes in the next k rounds.

    ballot   Δ̃_i^t = signs of the largest r of θ_i^t − Θ^{t−1}, tensor by tensor, zero elsewhere

By default ballots are compared with the ballots of the *other* clients in the next round, less a share of their
agreement with those of the round before: clients that merely repeat the recent direction are discounted. Where clients
lie along a line, its better end is favoured. `pair_credits` and `stats.client_line` have the formulas.

The paper compares with the global model instead (`reference="movement"`):

    movement U^(t,k) = Θ^{t+k} − Θ^t
    credit   p̂_i^t = Σ_h sgn(x_i^t[h]) · sgn(U^(t,k)[h]),  x the `signal`; the default is the ballot
    score    p̂_i = Σ_t p̂_i^t

Paper: Wu, Zhang, Li, Xu, Zhong, "CoAst: Validation-Free Contribution Assessment for Federated Learning based
on Cross-Round Valuation", ACM MM 2024, sections 4.2 and 4.3.
Needs: the clients' uploads, for `reference="movement"` the global models too; no validation data, no full attendance.
Cost: about one pass over each upload; holds `horizon` rounds, two bits for each parameter and client.
Deviations: the comparison with other clients, `past_weight` and `line_weight` are ours (docs/default.md says why).
`CoAst.votes()` is the paper's idea, `CoAst.paper()` its text (docs/paper-notes.md).
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from fedcoast.errors import BadFile, Client
from fedcoast.kernels.ballots import Floats
from fedcoast.kernels.bit_planes import PlaneLayout, Row
from fedcoast.kernels.threads import ThreadPool, threads_for
from fedcoast.kernels.vote_counts import no_votes
from fedcoast.methods.coast.agreement import LayerTotals, RoundAgreement, past_agreement, round_agreement
from fedcoast.methods.coast.config import PAPER_OPTIONS, CoAstConfig, Resources
from fedcoast.methods.coast.pair_credits import PairTable, pair_tables
from fedcoast.methods.coast.pending import PendingRound, PendingStore, PendingWriter
from fedcoast.methods.coast.signals import SignalExtractor, check_ballots_suffice
from fedcoast.methods.coast.state import CoAstState
from fedcoast.methods.configured import ConfiguredAssessor
from fedcoast.methods.layer_credits import LayerCredits
from fedcoast.methods.layer_selection import choose
from fedcoast.methods.ledger import Credits
from fedcoast.methods.updates import pick
from fedcoast.rounds.arrays import Array, arithmetic, copied
from fedcoast.rounds.round_view import RoundView, Uploads
from fedcoast.rounds.schema import LayerSpec

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
        self.resources = Resources(
            num_threads=num_threads, spill_dir=spill_dir, memory_limit=memory_limit, track_layers=track_layers
        )
        super().__init__(config, **options)
        self._num_threads = threads_for(num_threads)
        self._store = PendingStore(memory_limit, spill_dir)
        self._extractor: SignalExtractor | None = None

    @classmethod
    def votes(cls, **changes: Any) -> Self:
        """The paper's idea and no more: a client's votes against where the model goes next, in all layers."""
        return cls(**{**PAPER_OPTIONS, **changes})

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The paper's text, literally: the sign of the uploaded parameters against the votes to come."""
        literal = {"signal": "parameters", "reference": "votes", "baseline": "none", "tiny_layers": "none"}
        return cls.votes(**{**literal, **changes})

    @property
    def settings(self) -> dict[str, Any]:
        return self.config.to_json()

    @property
    def finalized(self) -> tuple[RoundAgreement, ...]:
        """What made credits final in the last observed round: at most one."""
        state: CoAstState = self._state
        return state.finalized

    @property
    def pair_tables(self) -> tuple[PairTable, ...]:
        """What the last observed round's ballots were compared with, if with ballots."""
        state: CoAstState = self._state
        return state.pair_tables

    @property
    def repeated_selections(self) -> tuple[int, int]:
        """In how many layers the fast selection needed a second pass, and how many it looked at; no score shows it."""
        return (0, 0) if self._extractor is None else self._extractor.repeated_selections

    def _initial_state(self) -> CoAstState:
        return CoAstState.initial(self.config, self.resources.track_layers)

    def _step(self, view: RoundView, state: CoAstState) -> tuple[Credits, CoAstState]:
        chosen = choose(self.config.layers, view.schema)
        if self._schema is None and self.config.layers == "first+head" and not view.schema.ordered:
            _log.warning("The layers of this model have no order, so first and head are unknown: all layers count")
        if view.ballot_keep is not None:
            check_ballots_suffice(view, chosen, self.config)
        start = [arithmetic(array) for array in pick(view.start, chosen)]
        end = [arithmetic(array) for array in pick(view.end, chosen)]
        if self.config.reference == "others":  # the model after was read to refuse a round that is not whole
            return self._compare_with_others(view, state, start, chosen)
        return self._compare_with_reference(view, state, start, end, chosen)

    def _compare_with_others(
        self, view: RoundView, state: CoAstState, start: Sequence[Array], chosen: Sequence[LayerSpec]
    ) -> tuple[Credits, CoAstState]:
        layout = _layout(chosen)
        with self._store.writer(view.number, layout, len(view.clients), [], state.in_store) as writer:
            newest = self._signals(writer, view, start, [], chosen)
            newest = newest.replace(answered=len(view.clients) + len(view.fl_round.quarantined))
            votes = sum(self._extractor.votes) if self._extractor is not None else 0
            with self._thread_pool(layout) as threads:
                tables = pair_tables(state.pending, newest, votes, threads)
            pairs = state.pairs.with_tables(newest, tables)
        pending = (*state.pending, newest)
        done, pending = pending[: -self.config.horizon], pending[-self.config.horizon :]
        credits = {one.number: pairs.credits(one.number) for one in done}
        state = state.with_final(pairs.by_layer(one) for one in done)
        for one in done:
            pairs = pairs.without(one.number)
        return credits, replace(state, pending=pending, pairs=pairs, pair_tables=tables)

    def _compare_with_reference(
        self,
        view: RoundView,
        state: CoAstState,
        start: Sequence[Array],
        end: Sequence[Array],
        chosen: Sequence[LayerSpec],
    ) -> tuple[Credits, CoAstState]:
        layout = _layout(chosen)
        reference = [no_votes(layout.words, len(view.clients))] if self.config.reference == "votes" else end
        with self._store.writer(view.number, layout, len(view.clients), reference, state.in_store) as writer:
            newest = self._signals(writer, view, start, reference, chosen)
            newest = newest.replace(past_agreement=self._past_agreement(newest, state))
            pending = (*state.pending, newest)
            finalized = (self._agreement(pending),) if len(pending) > self.config.horizon else ()
            previous = state.previous or (self._store.keep_model(newest, start) if self._needs_previous else None)
        if previous is not None and finalized:  # the valued round becomes the previous one
            previous = pending[0].reference_alone()
        credits = {agreement.number: agreement.credits(self.config.past_weight) for agreement in finalized}
        state = state.with_final(finalized)
        return credits, replace(state, pending=pending[len(finalized) :], previous=previous)

    def _commit(self, state: CoAstState) -> None:
        """Drop the rounds that are done with. Servers reuse the memory of their models: the newest one is copied."""
        models = {id(one.reference) for one in state.in_store}
        done = [one for one in self._state.in_store if id(one.reference) not in models]
        if self.config.reference == "movement" and state.pending and state.pending[-1].spill_file is None:
            newest = state.pending[-1]
            own = newest.replace(reference=copied(newest.reference, into=done[0].reference if done else []))
            state = replace(state, pending=(*state.pending[:-1], own))
        self._state = state
        for one in done:
            self._store.drop(one)

    def _resume(self, state: CoAstState) -> None:
        self._store.resume_with(state.in_store)
        self._state = state

    @property
    def _needs_previous(self) -> bool:
        return self.config.past_weight > 0 and self.config.reference == "movement"

    def _signals(
        self,
        writer: PendingWriter,
        view: RoundView,
        start: Sequence[Array],
        reference: Sequence[Array],
        chosen: Sequence[LayerSpec],
    ) -> PendingRound:
        """The signals of all clients; a `reference` of votes is counted here."""
        layout = writer.plane_layout
        if self._extractor is None or self._extractor.plane_layout != layout:
            self._extractor = SignalExtractor(layout, self.config)
        votes = reference[0] if self.config.reference == "votes" else None
        models = _arithmetic(view.uploads(), chosen)
        with self._thread_pool(layout) as threads:
            signals = self._extractor.for_round(start)
            for client, signal in signals.of(models, threads, votes):
                writer.add(client, signal)
        return writer.finish(signals.idle if self.config.baseline == "idle" else None, reference)

    def _thread_pool(self, layout: PlaneLayout) -> ThreadPool:
        return ThreadPool(self._num_threads if sum(layout.sizes) >= PARALLEL_FROM else 1)

    def _past_agreement(self, newest: PendingRound, state: CoAstState) -> dict[Client, Row] | None:
        """How well each signal agrees with the rounds before, if there are enough of them."""
        if self.config.past_weight == 0 or len(state.pending) < self.config.horizon:
            return None
        first = state.previous or newest  # the votes of the first round of a window do not count
        with self._thread_pool(newest.plane_layout) as threads:
            return past_agreement(newest, [first, *state.pending], self.config, threads)

    def _agreement(self, window: Sequence[PendingRound]) -> RoundAgreement:
        with self._thread_pool(window[0].plane_layout) as threads:
            return round_agreement(window, self.config, threads, with_votes=self.resources.track_layers)

    def provisional(self) -> tuple[RoundAgreement, ...]:
        """The agreement of rounds that are valued with an incomplete future; none unless the options say so."""
        pending: tuple[PendingRound, ...] = self._state.pending
        if self.config.incomplete_rounds == "drop":
            return ()
        if self.config.reference == "others":
            return tuple(self._state.pairs.by_layer(one) for one in pending[:-1])
        return tuple(self._agreement(pending[place:]) for place in range(len(pending) - 1))

    def _credits(self) -> Credits:
        provisional, weight = {one.number: one for one in self.provisional()}, self.config.past_weight
        if self.config.reference == "others":
            return super()._credits() | {number: self._state.pairs.credits(number) for number in provisional}
        return super()._credits() | {number: one.credits(weight) for number, one in provisional.items()}

    def _factors(self) -> dict[Client, float]:
        return self._state.pairs.factors(self.config.line_weight)  # type: ignore[no-any-return]

    def _unordered(self) -> tuple[tuple[Client, Client], ...]:
        return self._state.pairs.unordered(self.config.line_weight)  # type: ignore[no-any-return]

    def _counted_rounds(self, valued: tuple[int, ...]) -> tuple[int, ...] | None:
        return self.config.counted(valued)

    def _pending(self) -> tuple[int, ...]:
        return tuple(one.number for one in self._state.pending)

    def _by_layer(self) -> LayerCredits | None:
        totals: LayerTotals | None = self._state.layer_totals
        if totals is None or self._schema is None:
            return None
        names = tuple(entry.name for entry in choose(self.config.layers, self._schema))
        provisional = self.provisional()
        valued = (*self._ledger.credits, *(agreement.number for agreement in provisional))
        counted = self.config.counted(valued)
        credits = totals.credits(names, self._ledger.clients, valued if counted is None else counted, provisional)
        return credits.scaled(self._factors())

    def _dump_state(self, state: CoAstState) -> tuple[dict[str, Any], dict[str, Array]]:
        facts, arrays = self._store.state(state.in_store)
        facts["before"] = state.previous is not None
        if self.config.reference == "others":
            facts["pairs"], pairs = state.pairs.state()
            arrays |= pairs
        return facts, arrays

    def _saved(self) -> None:
        self._store.saved(self._state.in_store)

    def _load_state(self, facts: dict[str, Any], arrays: dict[str, Array]) -> CoAstState:
        initial, rounds = self._initial_state(), tuple(self._store.restored(facts, arrays))
        if self.config.reference == "others":
            initial = replace(initial, pairs=initial.pairs.restored(facts["pairs"], arrays, rounds))
        elif any(not one.reference for one in rounds):
            raise BadFile("the state holds neither models nor votes to compare with; it was altered")
        previous, pending = (rounds[0], rounds[1:]) if facts["before"] else (None, rounds)
        return replace(initial, previous=previous, pending=pending)


def _arithmetic(uploads: Uploads, chosen: Sequence[LayerSpec]) -> Iterator[tuple[Client, list[Floats]]]:
    for client, model in uploads:
        yield client, [arithmetic(array) for array in pick(model, chosen)]
        del model  # before the next one is loaded


def _layout(chosen: Sequence[LayerSpec]) -> PlaneLayout:
    return PlaneLayout(tuple(entry.size for entry in chosen))
