"""Credits from the agreement of each client's ballots with the ballots of the *other* clients in later rounds.

    C_m^t[i, j] = ⟨ballot of i in round t, ballot of j in round t + m⟩       whole numbers, i ≠ j
    w_m^t       = mean_i max(0, mean_j C_m^t[i, j]), as a share of the votes of a ballot
    credit_i^t  = 1/k Σ_{m=1..k} ( w_m^t · mean_j C_m^t[i, j]  −  past_weight · w_m^{t−m} · mean_j C_m^{t−m}[j, i] )
    score_i     = f_i · Σ_t credit_i^t        f from `stats.client_line`

Rounds in which the clients learn little in common weigh little. No client's own ballot is on either side of a
comparison with itself, so nobody raises its score by repeating itself.

Each pair of rounds is compared once, when the later one arrives: as future for the earlier, as past for the later.
Tables of whole numbers add up over parts of a model, and everything else is computed from their sums: parts that were
compared apart give the same credits as the whole.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedcoast.errors import BadFile, Client
from fedcoast.kernels.pair_agreement import pair_agreements
from fedcoast.kernels.threads import ThreadPool
from fedcoast.methods.coast.agreement import RoundAgreement, votes_by_client
from fedcoast.methods.coast.pending import PendingRound
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.clients import client_from_json, client_to_json, in_order
from fedcoast.stats.client_line import AgreementSums, ClientLine, client_line

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_COMPARED = 64  # about how many clients of a later round each ballot is compared with, so that cost stays linear
MOST_ON_A_LINE = 200  # clients among whom a line is looked for; it needs a table of all of them


@dataclass(frozen=True)
class PairTable:
    """The agreement of the ballots of one round with those of a later one.

    number, later  the rounds
    lag            how many observed rounds lie between their starts
    rows, columns  the clients of the earlier and of the later round
    agreement      by layer, row and column; zero for pairs that were not compared
    compared       which pairs were compared: never a client with itself
    votes          how many entries of a ballot vote
    """

    number: int
    later: int
    lag: int
    rows: tuple[Client, ...]
    columns: tuple[Client, ...]
    agreement: Integers
    compared: NDArray[np.bool]
    votes: int

    @property
    def total(self) -> Integers:
        """Over all layers."""
        total: Integers = self.agreement.sum(axis=0)
        return total

    @property
    def weight(self) -> float:
        """How much the clients learn in common from one round to the other: 0 nothing, 1 all the same."""
        ahead = _means(self.total.sum(axis=1), self.compared.sum(axis=1))
        return float(np.maximum(ahead, 0).mean()) / self.votes if ahead.size and self.votes else 0.0

    def over_layers(self) -> "PairTable":
        return replace(self, agreement=self.total[np.newaxis])


def pair_table(earlier: PendingRound, later: PendingRound, lag: int, votes: int, threads: ThreadPool) -> PairTable:
    """Compare the ballots of two rounds."""
    rows, columns = tuple(earlier.signals), tuple(later.signals)
    compared = _compared(rows, columns, later.answered)
    agreement = pair_agreements(
        list(earlier.signals.values()), list(later.signals.values()), compared, later.plane_layout, threads
    )
    return PairTable(earlier.number, later.number, lag, rows, columns, agreement, compared, votes)


def pair_tables(
    waiting: Sequence[PendingRound], newest: PendingRound, votes: int, threads: ThreadPool
) -> tuple[PairTable, ...]:
    """Compare the ballots of all rounds that wait, the oldest first, with those of the newest."""
    lags = range(len(waiting), 0, -1)
    return tuple(pair_table(one, newest, lag, votes, threads) for lag, one in zip(lags, waiting, strict=True))


def _compared(rows: Sequence[Client], columns: Sequence[Client], answered: int) -> NDArray[np.bool]:
    """All pairs of different clients; of a large round about `MOST_COMPARED` columns for each row.

    The choice depends on names and on how many answered alone, so that all parts of a model make the same.
    """
    places = {client: at for at, client in enumerate(columns)}
    different = np.ones((len(rows), len(columns)), bool)
    for at, client in enumerate(rows):
        if client in places:
            different[at, places[client]] = False
    one_in = -(-answered // MOST_COMPARED)
    if one_in <= 1:
        return different
    row, column = _numbers(rows), _numbers(columns)
    mixed = (row[:, np.newaxis] * np.uint64(2654435761) + column * np.uint64(40503)) >> np.uint64(7)
    chosen: NDArray[np.bool] = different & (mixed % np.uint64(one_in) == 0)
    return chosen


def _numbers(clients: Sequence[Client]) -> NDArray[np.uint64]:
    """A number for each name, the same on every machine."""
    return np.array([zlib.crc32(repr(client).encode("utf-8", "surrogatepass")) for client in clients], np.uint64)


def merged(parts: Sequence[PairTable], out: Iterable[Client], out_later: Iterable[Client]) -> PairTable:
    """One table of those of all parts of a model, without the clients that are left out of either round."""
    first, gone, gone_later = parts[0], set(out), set(out_later)
    rows = tuple(client for client in first.rows if client not in gone)
    columns = tuple(client for client in first.columns if client not in gone_later)
    total = sum(_picked(part.total, part, rows, columns) for part in parts)
    compared = _picked(first.compared, first, rows, columns)
    votes = sum(part.votes for part in parts)
    return PairTable(
        first.number, first.later, first.lag, rows, columns, np.asarray(total)[np.newaxis], compared, votes
    )


def _picked(table: NDArray[Any], part: PairTable, rows: Sequence[Client], columns: Sequence[Client]) -> NDArray[Any]:
    at = [part.rows.index(client) for client in rows], [part.columns.index(client) for client in columns]
    return table[np.ix_(*at)]


@dataclass(frozen=True)
class PairCredits:
    """What is known so far; adding a table gives another.

    parts    by round and client what its credit is made of: in all, then by layer where layers are tracked
    lags     for how many later rounds a round was compared
    sums     the agreement of every two clients, in alternate pairs of rounds; None if there are too many clients
    clients  whom the rows and columns of `sums` stand for
    added    how many tables were added
    """

    horizon: int
    past_weight: float
    tracks_layers: bool = False
    parts: Mapping[int, Mapping[Client, Floats]] = field(default_factory=dict)
    lags: Mapping[int, int] = field(default_factory=dict)
    sums: tuple[AgreementSums, AgreementSums] | None = None
    clients: tuple[Client, ...] = ()
    added: int = 0

    def with_round(self, number: int, clients: Iterable[Client], layers: int) -> "PairCredits":
        """Begin a round, without credits."""
        nothing = np.zeros(1 + (layers if self.tracks_layers else 0))
        return replace(
            self, parts={**self.parts, number: dict.fromkeys(clients, nothing)}, lags={**self.lags, number: 0}
        )

    def with_tables(self, newest: PendingRound, tables: Iterable[PairTable]) -> "PairCredits":
        """Begin the newest round, and add what it was compared with."""
        pairs = self.with_round(newest.number, newest.signals, len(newest.plane_layout.sizes))
        for table in tables:
            pairs = pairs.with_table(table)
        return pairs

    def with_table(self, table: PairTable) -> "PairCredits":
        """Both rounds must have begun."""
        weight = table.weight / self.horizon
        stacked = np.concatenate(
            [table.total[np.newaxis], table.agreement if self.tracks_layers else table.agreement[:0]]
        )
        ahead = weight * _means(stacked.sum(axis=2), table.compared.sum(axis=1))
        past = weight * _means(stacked.sum(axis=1), table.compared.sum(axis=0))
        parts = dict(self.parts)
        parts[table.number] = _plus(parts[table.number], table.rows, ahead)
        parts[table.later] = _plus(parts[table.later], table.columns, -self.past_weight * past)
        lags = {**self.lags, table.number: self.lags[table.number] + 1}
        return replace(self._with_sums(table), parts=parts, lags=lags)

    def without(self, number: int) -> "PairCredits":
        """Forget a round whose credit is final."""
        parts, lags = dict(self.parts), dict(self.lags)
        del parts[number], lags[number]
        return replace(self, parts=parts, lags=lags)

    def credits(self, number: int) -> dict[Client, float]:
        """The credits of a round, from the later rounds that it was compared with so far."""
        return {client: float(part[0]) for client, part in self.parts[number].items()}

    def by_layer(self, pending: PendingRound) -> RoundAgreement:
        """The credits of a round by layer, where layers are tracked; the past is subtracted already."""
        if not self.tracks_layers:
            return RoundAgreement(pending.number, {}, {}, {})
        rows = {client: part[1:] for client, part in self.parts[pending.number].items()}
        return RoundAgreement(pending.number, rows, {}, votes_by_client(pending))

    def factors(self, line_weight: float) -> dict[Client, float]:
        """What each client's credits are multiplied by; 1 for everyone where nothing tells the clients apart so."""
        if self.sums is None or not line_weight:
            return {}
        clients, line = self._line(self.sums)
        return dict(zip(clients, line.factors(line_weight).tolist(), strict=True))

    def unordered(self, line_weight: float) -> tuple[tuple[Client, Client], ...]:
        """The pairs of clients whose order the line leaves open."""
        if self.sums is None or not line_weight:
            return ()
        clients, line = self._line(self.sums)
        pairs = np.argwhere(np.triu(line.unordered)).tolist()
        return tuple((clients[one], clients[other]) for one, other in pairs)

    def _line(self, sums: tuple[AgreementSums, AgreementSums]) -> tuple[tuple[Client, ...], ClientLine]:
        clients = in_order(self.clients)  # the same numbers whatever order the clients came in
        order = np.ix_(*[[self.clients.index(client) for client in clients]] * 2)
        halves = [AgreementSums(half.weighted[order], half.weights[order]) for half in sums]
        return clients, client_line(halves)

    def _with_sums(self, table: PairTable) -> "PairCredits":
        weight, new = table.weight, [c for c in (*table.rows, *table.columns) if c not in self.clients]
        clients = (*self.clients, *dict.fromkeys(new))
        sums = self.sums if self.added else (_nothing(0), _nothing(0))
        if sums is None or len(clients) > MOST_ON_A_LINE:
            return replace(self, sums=None, clients=(), added=self.added + 1)
        halves = [_grown(half, len(clients)) for half in sums]
        place = {client: at for at, client in enumerate(clients)}
        at = np.ix_([place[client] for client in table.rows], [place[client] for client in table.columns])
        half = halves[self.added % 2]
        half.weighted[at] += weight * table.total
        half.weights[at] += weight * table.compared
        return replace(self, sums=(halves[0], halves[1]), clients=clients, added=self.added + 1)

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Facts for JSON, and arrays."""
        facts = {
            "clients": [client_to_json(client) for client in self.clients],
            "added": self.added,
            "rounds": [[n, [client_to_json(client) for client in of], self.lags[n]] for n, of in self.parts.items()],
            "sums": self.sums is not None,
        }
        arrays: dict[str, Array] = {f"pairs.{n}": np.array(list(of.values())) for n, of in self.parts.items() if of}
        for at, half in enumerate(self.sums or ()):
            arrays |= {f"pairs.weighted.{at}": half.weighted, f"pairs.weights.{at}": half.weights}
        return facts, arrays

    def restored(
        self, facts: Mapping[str, Any], arrays: Mapping[str, Array], pending: Sequence[PendingRound]
    ) -> "PairCredits":
        """What `state` gave, in an object with the same options. Of layers that it did not track nothing is known."""
        layers = len(pending[0].plane_layout.sizes) if pending else 0
        width = 1 + (layers if self.tracks_layers else 0)
        parts: dict[int, dict[Client, Floats]] = {}
        for number, clients, _ in facts["rounds"]:
            rows = arrays[f"pairs.{number}"] if clients else np.zeros((0, 1))
            if rows.ndim != 2 or len(rows) != len(clients) or rows.dtype != np.float64:
                raise BadFile(f"round {number} of the state holds credits of {rows.dtype} {rows.shape}; it was altered")
            known = np.zeros((len(clients), width))
            shared = min(width, rows.shape[1])
            known[:, :shared] = rows[:, :shared]
            parts[number] = {client_from_json(client): row for client, row in zip(clients, known, strict=True)}
        if {one.number: set(one.signals) for one in pending} != {number: set(of) for number, of in parts.items()}:
            raise BadFile("the state's pending rounds are not those that it holds credits of; it was altered")
        clients = tuple(client_from_json(client) for client in facts["clients"])
        sums = None
        if facts["sums"]:
            halves = [AgreementSums(arrays[f"pairs.weighted.{at}"], arrays[f"pairs.weights.{at}"]) for at in (0, 1)]
            if any(array.shape != (len(clients),) * 2 for half in halves for array in (half.weighted, half.weights)):
                raise BadFile("the state's sums of agreement are not of its clients; it was altered")
            sums = halves[0], halves[1]
        lags = {number: int(lag) for number, _, lag in facts["rounds"]}
        return replace(self, parts=parts, lags=lags, sums=sums, clients=clients, added=int(facts["added"]))


def _means(sums: Integers, counts: Integers) -> Floats:
    return np.asarray(sums / np.maximum(counts, 1), np.float64)


def _plus(parts: Mapping[Client, Floats], clients: Sequence[Client], added: Floats) -> dict[Client, Floats]:
    """Add the credits in `added`: a row for the total and each layer, a column for each client."""
    return {**parts, **{client: parts[client] + added[:, at] for at, client in enumerate(clients)}}


def _nothing(clients: int) -> AgreementSums:
    return AgreementSums(np.zeros((clients, clients)), np.zeros((clients, clients)))


def _grown(sums: AgreementSums, clients: int) -> AgreementSums:
    """A copy with room for more clients."""
    grown = _nothing(clients)
    known = len(sums.weights)
    grown.weighted[:known, :known], grown.weights[:known, :known] = sums.weighted, sums.weights
    return grown
