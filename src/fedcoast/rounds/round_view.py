"""A round as a method or a recorder reads it: the models, the usable uploads one at a time, and who was left out."""

import logging
from collections.abc import Collection, Iterator
from functools import cached_property

from fedcoast.errors import BadUpload, Client, FedcoastError, SpoiltRound, blame
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.clients import as_client
from fedcoast.rounds.round import Policy, Round
from fedcoast.rounds.schema import ModelSchema
from fedcoast.rounds.unchanged import StartComparison

Uploads = Iterator[tuple[Client, dict[str, Array]]]

_log = logging.getLogger(__name__)


class RoundView:
    """One round, read in the layout of `schema`.

    quarantined  who was left out, with the reason; complete once all uploads are read
    unchanged    who returned the model that was sent, where `compare_with_start` asks for it; complete likewise
    """

    def __init__(self, fl_round: Round, schema: ModelSchema, policy: Policy, compare_with_start: bool = False) -> None:
        self.fl_round, self.schema = fl_round, schema
        self.quarantined: dict[Client, str] = dict(fl_round.quarantined)
        self.unchanged: list[Client] = []
        self._policy = policy
        self._keys = {as_client(key): key for key in fl_round.local}
        self._comparison = StartComparison(fl_round.start, schema) if compare_with_start else None

    @property
    def number(self) -> int:
        return self.fl_round.number

    @property
    def clients(self) -> tuple[Client, ...]:
        """Who answered, usably or not."""
        return self.fl_round.clients

    @property
    def ballot_keep(self) -> float | None:
        return self.fl_round.ballot_keep

    @cached_property
    def weights(self) -> dict[Client, float] | None:
        """The weights of the aggregation, if known."""
        weights = self.fl_round.weights
        return None if weights is None else {as_client(client): float(weight) for client, weight in weights.items()}

    @cached_property
    def start(self) -> dict[str, Array]:
        """The global model before the round."""
        return self.fl_round.read_start(self.schema)

    @cached_property
    def end(self) -> dict[str, Array]:
        """The global model after the round. If it is not finite, the error names those that may have spoilt it."""
        try:
            return self.fl_round.read_end(self.schema)
        except SpoiltRound as error:
            raise SpoiltRound(f"{error}{blame(self._bad_uploads())}") from error

    def _bad_uploads(self) -> dict[Client, str]:
        reasons: dict[Client, str] = {}
        for client in self.clients:
            if client not in self.fl_round.quarantined:
                try:
                    self._read(client)
                except BadUpload as error:
                    reasons[client] = error.reason
        return reasons

    def uploads(self) -> Uploads:
        """The uploads that can be used, one client at a time, in an order that does not depend on their arrival.

        A bad one raises `BadUpload`, or is skipped and quarantined, as the policy says.
        """
        for client in self.clients:
            if client in self.fl_round.quarantined:
                continue
            try:
                model = self._read(client)
            except BadUpload as error:
                if self._policy == "raise":
                    raise
                self.quarantined[client] = error.reason
                _log.warning("quarantined for this round: %s", error)
            else:
                if self._comparison is not None and self._comparison.equals(model):
                    self.unchanged.append(client)
                yield client, model
                del model  # before the next one is loaded

    def reread(self, clients: Collection[Client]) -> Uploads:
        """The uploads of these clients once more, so that a second pass does not need all of them in memory.

        They were readable before. If one cannot be read any more, this raises, and the round can be observed again.
        """
        wanted = set(clients)
        for client in self.clients:
            if client in wanted:
                yield client, self._read(client)

    def _read(self, client: Client) -> dict[str, Array]:
        try:
            return self.schema.read(self.fl_round.local[self._keys[client]], before=self.fl_round.start)
        except FedcoastError as error:
            raise BadUpload(client, f"round {self.number}, {error}") from error
        except Exception as error:  # a lazy mapping may fail in any way, and costs only this client
            raise BadUpload(
                client, f"round {self.number}, the upload cannot be read ({type(error).__name__}: {error})"
            ) from error
