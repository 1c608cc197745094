"""What several methods read from a round: the chosen layers, and the weights of the aggregation."""

from collections.abc import Collection, Iterable
from math import frexp

from fedcoast.errors import Client
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.round_view import RoundView
from fedcoast.rounds.schema import LayerSpec


def pick(model: dict[str, Array], entries: Iterable[LayerSpec]) -> list[Array]:
    return [model[entry.name] for entry in entries]


def relative_weights(view: RoundView) -> dict[Client, float]:
    """What each client's upload counts for in the aggregation, up to a factor; alike where the round does not say.

    The factor is a power of two that brings the largest near 1, so that who else is there changes no bit of a
    direction.
    """
    if view.weights is None:
        return dict.fromkeys(view.clients, 1.0)
    scale = 2.0 ** -min(1000, frexp(max(view.weights.values(), default=0.0))[1])
    return {client: weight * scale for client, weight in view.weights.items()}


def shares(view: RoundView, clients: Collection[Client]) -> dict[Client, float]:
    """What these clients' uploads count for in the aggregation, together 1; alike where the round does not say."""
    weights = relative_weights(view)
    total = sum(weights[client] for client in clients)
    return {client: weights[client] / total if total else 1 / len(clients) for client in clients}
