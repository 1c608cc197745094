"""A federation of four clients that is trained in no time: rounds, and a utility whose optimum is known."""

from collections.abc import Mapping

import numpy as np

from fedcoast.errors import Client
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.round import Round

_SHAPES = {"body.weight": (8, 6), "body.bias": (8,), "head.weight": (4, 8), "head.bias": (4,)}
_BUFFERS = {"norm.running_mean": np.zeros(8, dtype=np.float32), "norm.num_batches_tracked": np.array(0)}
_NOISE: dict[Client, float] = {
    "north": 0.2,
    "south": 1.0,
    7: 3.0,
}  # how far each client is off the way; "idle" does not move
_SAMPLES: dict[Client, int] = {"north": 40, "south": 30, 7: 20, "idle": 10}
_STEP = 0.1


class Quadratic:
    """U(θ) = −½·‖θ − θ*‖², with the gradient θ − θ* of the loss −U."""

    name = "quadratic"

    def __init__(self, best: Mapping[str, Array]) -> None:
        self.best = {name: np.asarray(array, dtype=np.float64) for name, array in best.items()}

    def __call__(self, model: Mapping[str, Array], /) -> float:
        return -0.5 * sum(float(((model[name] - best) ** 2).sum()) for name, best in self.best.items())

    def gradient(self, model: Mapping[str, Array], /) -> dict[str, Array]:
        return {name: model[name] - best for name, best in self.best.items()}


def toy_utility() -> Quadratic:
    """What the clients of `toy_rounds` try to maximise, some better than others."""
    return Quadratic(_best())


def toy_rounds(count: int = 5) -> list[Round]:
    """FedAvg by the amount of data; a classifier of four classes, with weights and buffers, float32.

    >>> toy_rounds()[0].clients
    (7, 'idle', 'north', 'south')
    """
    rng, best = np.random.default_rng(0), _best()
    theta = {name: rng.normal(size=shape).astype(np.float32) for name, shape in _SHAPES.items()}
    rounds = []
    for number in range(1, count + 1):
        local: dict[Client, dict[str, Array]] = {"idle": theta | _BUFFERS}
        for client, noise in _NOISE.items():
            off = {name: noise * rng.normal(size=shape) for name, shape in _SHAPES.items()}
            moved = {name: theta[name] + _STEP * (best[name] - theta[name] + off[name]) for name in _SHAPES}
            local[client] = {name: array.astype(np.float32) for name, array in moved.items()} | _BUFFERS
        local = {client: _copied(local[client]) for client in _SAMPLES}
        end = {name: _mean({c: model[name] for c, model in local.items()}) for name in _SHAPES}
        start, after = _copied(theta | _BUFFERS), _copied(end | _BUFFERS)
        rounds.append(Round(number, start=start, local=local, end=after, weights=_SAMPLES))
        theta = end
    return rounds


def _best() -> dict[str, Array]:
    rng = np.random.default_rng(1)
    return {name: 2 * rng.normal(size=shape) for name, shape in _SHAPES.items()}


def _mean(tensors: Mapping[Client, Array]) -> Array:
    total = sum(_SAMPLES[client] * tensor.astype(np.float64) for client, tensor in tensors.items())
    return np.asarray(total / sum(_SAMPLES.values()), dtype=np.float32)


def _copied(model: Mapping[str, Array]) -> dict[str, Array]:
    return {name: array.copy() for name, array in model.items()}
