"""What several methods read from a round: the chosen layers, the aggregation weights, the uploads a second time."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial
from math import frexp

from fedcoast.errors import Client
from fedcoast.methods.base import Uploads
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.clients import as_client
from fedcoast.rounds.round import LazyModels, Round
from fedcoast.rounds.schema import LayerSpec, ModelSchema


def pick(model: dict[str, Array], entries: Iterable[LayerSpec]) -> list[Array]:
    return [model[entry.name] for entry in entries]


def again(fl_round: Round, schema: ModelSchema, clients: Collection[Client]) -> Uploads:
    """The uploads of these clients once more, one at a time, so that two passes do not need all of them in memory.

    They were readable before, so one that cannot be read now raises; the round can then be observed again.
    """
    if not clients:
        return iter(())
    keys = {as_client(key): key for key in fl_round.local}
    uploads = LazyModels({client: partial(fl_round.local.__getitem__, keys[client]) for client in clients})
    return replace(fl_round, local=uploads, weights=None, quarantined={}).uploads(schema, "raise", {})


def relative_weights(fl_round: Round) -> dict[Client, float]:
    """What each client's upload counts for in the aggregation, up to a factor; alike where the round does not say.

    The factor is a power of two that brings the largest near 1, so that who else is there changes no bit of a
    direction.
    """
    if fl_round.weights is None:
        return dict.fromkeys(fl_round.clients, 1.0)
    weights = {as_client(client): float(weight) for client, weight in fl_round.weights.items()}
    scale = 2.0 ** -min(1000, frexp(max(weights.values(), default=0.0))[1])
    return {client: weight * scale for client, weight in weights.items()}


def shares(fl_round: Round, clients: Collection[Client]) -> dict[Client, float]:
    """What these clients' uploads count for in the aggregation, together 1; alike where the round does not say."""
    weights = relative_weights(fl_round)
    total = sum(weights[client] for client in clients)
    return {client: weights[client] / total if total else 1 / len(clients) for client in clients}
