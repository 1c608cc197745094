"""What CoAst knows between rounds. It is never changed: a step makes another one."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fedcoast.methods.coast.agreement import LayerTotals, RoundAgreement
from fedcoast.methods.coast.config import CoAstConfig
from fedcoast.methods.coast.pair_credits import PairCredits, PairTable
from fedcoast.methods.coast.pending import PendingRound


@dataclass(frozen=True, eq=False)
class CoAstState:
    """
    pairs         credits from comparisons with other clients
    layer_totals  sums by layer, where layers are tracked
    pending       the rounds whose credit is not final, the oldest first
    previous      the round before those, or the first start, for its reference only
    finalized     what made credits final in the last round: at most one
    pair_tables   what the last round's ballots were compared with, if with ballots
    """

    pairs: PairCredits
    layer_totals: LayerTotals | None
    pending: tuple[PendingRound, ...] = ()
    previous: PendingRound | None = None
    finalized: tuple[RoundAgreement, ...] = ()
    pair_tables: tuple[PairTable, ...] = ()

    @classmethod
    def initial(cls, config: CoAstConfig, track_layers: bool) -> "CoAstState":
        pairs = PairCredits(config.horizon, config.past_weight, track_layers)
        return cls(pairs, LayerTotals.for_config(config) if track_layers else None)

    @property
    def in_store(self) -> tuple[PendingRound, ...]:
        """The rounds that are held in memory or in files."""
        return self.pending if self.previous is None else (self.previous, *self.pending)

    def with_final(self, agreements: Iterable[RoundAgreement]) -> "CoAstState":
        """The state after these rounds' credits became final; their layers count from now on."""
        finalized, totals = tuple(agreements), self.layer_totals
        for agreement in finalized:
            totals = None if totals is None else totals.with_round(agreement)
        return replace(self, finalized=finalized, layer_totals=totals)
