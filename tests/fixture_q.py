"""Fixture Q: three clients that each walk half way to an optimum of their own; a utility knows the true one."""

import numpy as np

from fedcoast import Round

OPTIMA = {"c1": (1.0, 0.0, 2.0, -1.0), "c2": (0.8, 0.2, 1.5, -0.5), "c3": (-1.0, 1.0, 0.0, 1.0)}
CLIENTS = tuple(OPTIMA)
TRUE = np.array([1.0, 0.0, 1.8, -0.8])
SAMPLES = {"u": (1, 1, 1), "n": (4, 3, 1)}


def as_model(vector):
    vector = np.asarray(vector, dtype=np.float64)
    return {"weight": vector[:2].reshape(2, 1).copy(), "bias": vector[2:].copy()}


def as_vector(model):
    return np.concatenate([np.ravel(model["weight"]), model["bias"]])


class Quadratic:
    """−½‖θ − θ*‖², and the gradient of its negative; counts how often it was asked."""

    def __init__(self):
        self.calls = 0

    def __call__(self, model):
        self.calls += 1
        return -0.5 * float(np.sum((as_vector(model) - TRUE) ** 2))

    def gradient(self, model):
        return as_model(as_vector(model) - TRUE)


def train(theta, clients):
    return {client: theta + 0.5 * (np.array(OPTIMA[client]) - theta) for client in clients}


def rounds(weights="u", idle=(), count=3):
    """The fixture's rounds; `idle` clients send back what they got."""
    samples = dict(zip(CLIENTS, SAMPLES[weights], strict=True))
    theta = np.zeros(4)
    for number in range(1, count + 1):
        local = train(theta, CLIENTS) | dict.fromkeys(idle, theta)
        end = sum(samples[c] * local[c] for c in CLIENTS) / sum(samples.values())
        models = {client: as_model(vector) for client, vector in local.items()}
        yield Round(number, start=as_model(theta), local=models, end=as_model(end), weights=samples)
        theta = end


def retrained(weights, coalition):
    """The model that three rounds of these clients alone make."""
    samples = dict(zip(CLIENTS, SAMPLES[weights], strict=True))
    theta = np.zeros(4)
    for _ in range(3):
        if coalition:
            local = train(theta, coalition)
            theta = sum(samples[c] * local[c] for c in coalition) / sum(samples[c] for c in coalition)
    return as_model(theta)
