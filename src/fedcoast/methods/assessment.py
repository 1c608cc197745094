"""The answer: what each client contributed, in total and round by round."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedcoast.errors import Client
from fedcoast.methods.layer_credits import LayerCredits
from fedcoast.methods.notebook import as_axes, as_frame, as_html
from fedcoast.methods.text import as_text
from fedcoast.rounds.clients import in_order
from fedcoast.stats.participation_adjustment import adjusted_mean, connected
from fedcoast.stats.ranking import paper_ranks, spearman

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Assessment:
    """Scores, everything they were computed from, and what readers need to know about the method.

    method           its name in `METHODS`
    scores           each client's score
    credits          each valued round's credit of everyone who took part in it
    pending          rounds whose credit is not final, because their future is not known yet
    rounds_scored    in how many counted rounds each client has a credit; 0 where it was only in other rounds
    quarantined      whose upload was left out, in which round and why
    settings         every option of the method that can change a score
    counted_rounds   the valued rounds that the scores count; None for all. Use `counted`
    zero_is_idle     whether a client that returns the start model scores 0
    dependence_span  how many rounds apart two credits may be that depend on the same movement; 0 where none do
    unchanged        who returned the model it was sent, in which round
    unscaled_credits  the credits before each client's are multiplied by its factor (`stats.client_line`), which later
                     rounds may change; None where the method has no factors. Not in JSON or CSV
    unordered        pairs of clients whose order the method cannot tell, however many rounds there are. Not in CSV
    by_layer         from which layers the scores came, if the method was asked to track them; not in JSON or CSV
    """

    method: str
    scores: Mapping[Client, float]
    credits: Mapping[int, Mapping[Client, float]] = field(default_factory=dict)
    pending: tuple[int, ...] = ()
    rounds_scored: Mapping[Client, int] = field(default_factory=dict)
    quarantined: Mapping[int, Mapping[Client, str]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    counted_rounds: tuple[int, ...] | None = None
    zero_is_idle: bool = False
    dependence_span: int = 0
    unchanged: Mapping[int, tuple[Client, ...]] = field(default_factory=dict)
    by_layer: LayerCredits | None = field(default=None, compare=False, repr=False)
    unscaled_credits: Mapping[int, Mapping[Client, float]] | None = field(default=None, compare=False, repr=False)
    unordered: tuple[tuple[Client, Client], ...] = ()

    @property
    def clients(self) -> tuple[Client, ...]:
        return in_order(self.scores)

    @property
    def counted(self) -> tuple[int, ...]:
        """The valued rounds that the scores count: an option may skip a warm-up, or all but the last rounds."""
        return tuple(self.credits) if self.counted_rounds is None else self.counted_rounds

    @property
    def lasting_credits(self) -> Mapping[int, Mapping[Client, float]]:
        """The credits that never change once their round is final: these are recorded with the rounds."""
        return self.credits if self.unscaled_credits is None else self.unscaled_credits

    @property
    def mean(self) -> dict[Client, float]:
        """The score per round scored. Rounds differ: compare clients of different rounds by `adjusted_mean`."""
        return {
            client: self.scores[client] / self.rounds_scored[client] if self.rounds_scored[client] else float("nan")
            for client in self.clients
        }

    @property
    def has_absences(self) -> bool:
        """Whether any client has no credit in a counted round."""
        return any(len(self.credits[number]) < len(self.scores) for number in self.counted)

    @property
    def additive(self) -> bool:
        """Whether the scores are the sums of the counted credits; those of some methods are moving averages."""
        scores = np.array(list(self.scores.values()), dtype=np.float64)
        table = self.credits_of(tuple(self.scores))
        sums = np.nansum(table, axis=0)
        largest = float(np.nanmax(np.abs(table), initial=0))
        return bool(np.allclose(sums, scores, rtol=1e-9, atol=1e-9 * largest))

    @property
    def needs_adjustment(self) -> bool:
        """Whether to compare clients by `adjusted_mean`: participation varies, and scores are sums."""
        return self.has_absences and self.additive

    @property
    def adjusted_mean(self) -> dict[Client, float]:
        """The credit per round as if every client had been in every counted round (`stats.participation_adjustment`).

        It equals the mean where everyone was; NaN for clients without a credit. It is made of the credits, also where
        scores are not their sums. With `has_disconnected_clients` it compares only clients that are connected.
        """
        return dict(zip(self.clients, adjusted_mean(self.credits_of(self.clients)).tolist(), strict=True))

    @property
    def has_disconnected_clients(self) -> bool:
        """Whether some clients share no rounds, even indirectly; their adjusted means cannot be compared."""
        if not self.has_absences:
            return False
        present = ~np.isnan(self.credits_of(self.clients))
        return len(set(connected(present)[present.any(axis=0)].tolist())) > 1

    def credits_of(self, clients: Sequence[Client]) -> NDArray[np.float64]:
        """The counted credits, a row for each round and a column for each of the clients; NaN where there is none."""
        places, numbers = {client: place for place, client in enumerate(clients)}, self.counted
        table = np.full((len(numbers), len(places)), np.nan)
        for row, number in enumerate(numbers):
            credits_by_place = {
                places[client]: credit for client, credit in self.credits[number].items() if client in places
            }
            table[row, list(credits_by_place)] = list(credits_by_place.values())
        return table

    @property
    def ranks(self) -> dict[Client, int]:
        """1 for the best; tied clients share the worst rank of their tie, as the paper defines it."""
        return dict(zip(self.clients, paper_ranks([self.scores[c] for c in self.clients]), strict=True))

    @property
    def ranking(self) -> tuple[Client, ...]:
        """The clients from the best down."""
        return tuple(sorted(self.clients, key=self.ranks.__getitem__))

    def spearman(self, truth: Mapping[Client, float]) -> float:
        """Rank correlation of the scores with the truth: 1 same order, −1 reversed, NaN if one is constant."""
        return spearman([truth[c] for c in self.clients], [self.scores[c] for c in self.clients])

    def quarantine_count(self, client: Client) -> int:
        """In how many rounds the client's upload was quarantined."""
        return sum(client in names for names in self.quarantined.values())

    def to_json(self) -> str:
        from fedcoast.methods.assessment_files import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> "Assessment":
        from fedcoast.methods.assessment_files import from_json

        return from_json(text)

    def to_csv(self) -> str:
        """One row for each client, best first; a column for each round holds its credit, or why it was quarantined."""
        from fedcoast.methods.assessment_files import to_csv

        return to_csv(self)

    @classmethod
    def from_csv(cls, text: str) -> "Assessment":
        """Read back what `to_csv` wrote. An assessment without clients has no rows, so it cannot come back."""
        from fedcoast.methods.assessment_files import from_csv

        return from_csv(text)

    def table(self, truth: Mapping[Client, float] | None = None) -> "Table":
        """The ranking for a terminal; with a known truth, its ranks beside."""
        from fedcoast.methods.assessment_table import table

        return table(self, truth)

    def __rich__(self) -> "Table":
        return self.table()

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each client; needs pandas, which `fedcoast[plots]` installs."""
        return as_frame(self)

    def plot(self, kind: str = "ranking", **options: Any) -> Any:
        """The axes of a figure: "ranking", "timeline" or "heat_map"; options as in `fedcoast.plotting`."""
        return as_axes(self, kind, options)

    def _repr_html_(self) -> str:
        return as_html(self)

    def __str__(self) -> str:
        return as_text(self)
