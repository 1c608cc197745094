"""A worker's task: the credits of one shard, by the same assessor that one machine would use."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from glob import escape
from pathlib import Path

from fedcoast.errors import BadFile, BadRound, Client, FedcoastError
from fedcoast.integrations.ray.shards import Shard
from fedcoast.methods.coast.coast import CoAst
from fedcoast.methods.coast.config import CoAstConfig
from fedcoast.methods.coast.pair_credits import PairTable
from fedcoast.rounds.round import Round
from fedcoast.rounds.schema import ModelSchema
from fedcoast.storage.replay import replay

Reasons = dict[int, dict[Client, str]]
Totals = dict[Client, tuple[int, int]]
"""Each client's agreement with the rounds after and before (`RoundAgreement.totals`)."""


@dataclass(frozen=True)
class ShardTask:
    """A shard of a run with everything needed to score it."""

    run: Path
    schema: ModelSchema
    config: CoAstConfig
    """Of CoAst; the shard decides which layers and rounds count."""
    shard: Shard
    out: Mapping[int, Mapping[Client, str]] = field(default_factory=dict)
    """Whose uploads are known to be bad in another shard."""


@dataclass(frozen=True)
class ShardCredits:
    """The results of a shard, by round."""

    agreement: dict[int, Totals]
    """Whole numbers, so that it does not matter how the run was split."""
    tables: dict[tuple[int, int], PairTable]
    """The same by pair of rounds, the earlier of them the shard's, where ballots are compared with ballots."""
    answered: dict[int, tuple[Client, ...]]
    known: Reasons
    """Who was left out before the round was shown."""
    found: Reasons
    """Whose upload is bad in one of the shard's layers."""
    unchanged: dict[int, tuple[Client, ...]]
    """Who returned the shard's layers as they were sent."""


@dataclass(frozen=True)
class ShardFailure:
    """Why a shard cannot be scored, and the round that showed it."""

    number: int
    error: FedcoastError


def score_shard(task: ShardTask) -> ShardCredits | ShardFailure:
    """The credits of a shard. Errors of fedcoast are returned, not raised: a retry would not change them."""
    shard = task.shard
    assessor = CoAst(replace(task.config, layers=[escape(name) for name in shard.chosen]), num_threads=1)
    answered, known, agreement = dict[int, tuple[Client, ...]](), Reasons(), dict[int, Totals]()
    tables: dict[tuple[int, int], PairTable] = {}
    number = shard.rounds[0]
    try:
        for fl_round in _rounds(task.run, shard.shown):
            number = fl_round.number
            shown = fl_round.part(task.schema, shard.layers)
            if assessor.last_round is None and (change := ModelSchema(shard.entries).differs(shown.schema())):
                raise BadRound(f"round {number}: the model changed its layers: {change}; start a new assessor")
            if number in shard.rounds:
                answered[number], known[number] = fl_round.clients, dict(fl_round.quarantined)
            if number in shard.rounds or assessor.config.reference in ("votes", "others"):
                out = {**task.out.get(number, {}), **fl_round.quarantined}
                assessor.observe(replace(shown, quarantined=out))
            else:  # of other rounds only the global model counts, and nobody's upload needs to be read
                nobody = dict.fromkeys((*fl_round.clients, *fl_round.quarantined), "belongs to another shard")
                assessor.observe(replace(shown, local={}, quarantined=nobody))
            agreement |= {valued.number: valued.totals() for valued in assessor.finalized}
            tables |= {(table.number, table.later): table.over_layers() for table in assessor.pair_tables}
    except FedcoastError as error:
        return ShardFailure(number, error)
    agreement |= {valued.number: valued.totals() for valued in assessor.provisional()}
    assessment = assessor.assessment()
    return ShardCredits(
        agreement={n: agreement[n] for n in shard.rounds if n in agreement},
        tables={rounds: table for rounds, table in tables.items() if rounds[0] in shard.rounds},
        answered=answered,
        known=known,
        found={n: _others(assessment.quarantined.get(n, {}), known[n], task.out.get(n, {})) for n in shard.rounds},
        unchanged={n: tuple(assessment.unchanged.get(n, ())) for n in shard.rounds},
    )


def _others(reasons: Mapping[Client, str], *known: Mapping[Client, str]) -> dict[Client, str]:
    return {client: why for client, why in reasons.items() if not any(client in names for names in known)}


def _rounds(run: Path, numbers: tuple[int, ...]) -> Iterator[Round]:
    missing = set(numbers)
    for fl_round in replay(run, after=numbers[0] - 1):
        if fl_round.number in missing:
            missing.remove(fl_round.number)
            yield fl_round
        if not missing:
            return
    raise BadFile(
        f"{run} has lost round {min(missing)} while it was read, or its global model is not finite; in the second case"
        " assess without Ray, which leaves such a round out"
    )
