"""Fixture A: three clients, two tensors of four and two entries, four rounds; small enough to follow by hand."""

import numpy as np

from fedcoast import Round
from fedcoast.kernels.aggregation import pruned_mean

THETA = (0.01, -0.01, 0.50, -0.50, 0.015, -0.30)
UPDATES = [
    [(0.30, -0.10, 0.05, 0.20, 0.10, -0.02),
     (0.25, 0.05, -0.15, 0.10, 0.08, 0.01),
     (-0.20, 0.15, 0.02, -0.05, -0.04, 0.09)],
    [(0.12, -0.20, 0.03, 0.15, 0.06, 0.05),
     (-0.04, -0.18, 0.16, 0.02, -0.03, 0.07),
     (0.10, 0.22, -0.06, -0.14, -0.08, -0.01)],
    [(0.02, -0.09, -0.11, 0.18, 0.07, -0.03),
     (0.14, -0.13, 0.01, 0.12, 0.02, 0.04),
     (-0.17, 0.03, 0.08, -0.10, -0.06, 0.05)],
    [(0.09, -0.04, 0.13, 0.11, -0.01, 0.06),
     (0.06, -0.15, -0.02, 0.17, 0.05, 0.03),
     (-0.08, 0.19, 0.04, -0.12, 0.09, -0.02)],
]  # fmt: skip
CLIENTS = ("c1", "c2", "c3")
LAYERS = {"layer1": slice(0, 4), "layer2": slice(4, 6)}


def as_model(vector):
    vector = np.asarray(vector, dtype=np.float64)
    return {name: vector[part].copy() for name, part in LAYERS.items()}


def as_vector(model):
    return np.concatenate([model[name] for name in LAYERS])


def own(client, updates):
    return updates[client]


def rounds(mode, change=own):
    """The fixture's rounds; `mode` is "inloop" (r=50 %, α=0.02) or "observer" (the plain mean moves the model)."""
    theta = as_model(THETA)
    for number, given in enumerate(UPDATES, start=1):
        drawn = dict(zip(CLIENTS, map(np.array, given), strict=True))
        raw = {client: as_model(change(client, drawn)) for client in CLIENTS}
        local = {client: {name: theta[name] + update[name] for name in LAYERS} for client, update in raw.items()}
        # The differences as a server sees them, local minus start, not the numbers that went in.
        seen = {client: {name: model[name] - theta[name] for name in LAYERS} for client, model in local.items()}
        if mode == "inloop":
            end = {n: pruned_mean(theta[n], [seen[c][n] for c in CLIENTS], keep=0.5, step=0.02) for n in LAYERS}
        else:
            end = {n: theta[n] + sum(seen[c][n] for c in CLIENTS) / 3 for n in LAYERS}
        yield Round(number, start=theta, local=local, end=end)
        theta = end
