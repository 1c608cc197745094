"""Small random federations, as rounds: deterministic by seed, with ties, zeros and clients of different worth."""

from dataclasses import replace

import numpy as np

from fedcoast import Round
from fedcoast.rounds.arrays import read

LAYERS = {"hidden.weight": (4, 5), "hidden.bias": (5,), "scale": (), "head.weight": (3, 4), "head.bias": (3,)}
CLIENTS = ("ann", "bob", "cid")


def draw(rng, layers=LAYERS, dtype=np.float32, coarse=None):
    """One model; `coarse` rounds every entry to a multiple, so that ties and zeros are common."""
    model = {}
    for name, shape in layers.items():
        values = rng.normal(size=shape)
        model[name] = np.asarray(np.round(values / coarse) * coarse if coarse else values, dtype=dtype)
    return model


def add(model, update):
    return {name: np.asarray(array + update[name], dtype=array.dtype) for name, array in model.items()}


def mean(models):
    models = list(models)
    return {
        name: np.asarray(np.mean([model[name] for model in models], axis=0, dtype=np.float64), dtype=array.dtype)
        for name, array in models[0].items()
    }


def federation(seed=0, rounds=6, clients=CLIENTS, layers=LAYERS, dtype=np.float32, present=None, coarse=None, first=1):
    """FedAvg towards a common direction, which client i follows the less the larger i is.

    `present(number, client)` says who answers; a round in which nobody would answer is answered by the first client.
    """
    rng = np.random.default_rng(seed)
    start = draw(rng, layers, dtype, coarse)
    way = draw(rng, layers, np.float64)
    shown = []
    for number in range(first, first + rounds):
        local = {}
        for place, client in enumerate(clients):
            noise = draw(rng, layers, np.float64)
            update = {name: 0.3 * way[name] + 0.4 * place * noise[name] for name in layers}
            if coarse:
                update = {name: np.round(array / coarse) * coarse for name, array in update.items()}
            if present is None or present(number, client):
                local[client] = add(start, update)
        local = local or {clients[0]: dict(start)}
        end = mean(local.values())
        shown.append(Round(number, start=start, local=local, end=end))
        start = end
    return shown


def at_odds_with_a_rider(rounds=14, seed=0):
    """Four clients whose updates never agree, and one that returns the model it was sent."""
    rng = np.random.default_rng(seed)
    layers = {"hidden.weight": (20, 20), "head.weight": (20, 10)}
    start, made = draw(rng, layers), []
    for number in range(1, rounds + 1):
        local = {client: add(start, draw(rng, layers)) for client in "abcd"}
        end = mean(local.values())
        made.append(Round(number, start=start, local={**local, "rider": start}, end=end))
        start = end
    return made


def show(assessor, rounds):
    for fl_round in rounds:
        assessor.observe(fl_round)
    return assessor.assessment()


def without(fl_round, *clients):
    """The same round, in which these clients did not answer."""
    return replace(fl_round, local={client: model for client, model in fl_round.local.items() if client not in clients})


def with_upload(fl_round, client, model):
    """The same round, in which a client uploaded something else."""
    return replace(fl_round, local={**fl_round.local, client: model})


def bits(model):
    """A model in a form that is equal when every kind, shape and bit is."""
    read_all = {name: read(value) for name, value in model.items()}
    return {
        name: (kind, array.shape, np.ascontiguousarray(array).tobytes()) for name, (array, kind) in read_all.items()
    }


def round_bits(fl_round):
    """Everything a round says, in a form that is equal when every bit is."""
    return (
        fl_round.number,
        bits(fl_round.start),
        {client: bits(fl_round.local[client]) for client in fl_round.clients},
        bits(fl_round.end),
        None if fl_round.weights is None else {client: float(fl_round.weights[client]) for client in fl_round.clients},
        fl_round.quarantined,
        fl_round.metrics,
    )
