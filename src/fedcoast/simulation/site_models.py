"""Small models for tables, in NumPy: their scores, losses and gradients.

    linear   scores = x·Wᵀ + b
    mlp      scores = relu(x·Vᵀ + c)·Wᵀ + b, 16 hidden units

Classification has a score for each class and the mean cross-entropy. Survival has one score, the log of the hazard, and
Cox's partial likelihood (Cox, "Regression Models and Life-Tables", 1972; ties as Breslow has them):

    loss = −1/|E| · Σ_{i ∈ E} ( s_i − log Σ_{j: t_j ≥ t_i} e^{s_j} ),    E the patients whose event was seen

It does not change when a number is added to all scores, so survival has no b.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedcoast.errors import BadSetting
from fedcoast.simulation.datasets.site_table import Task

ModelName = Literal["linear", "mlp"]
Floats = NDArray[np.floating[Any]]
Model = dict[str, NDArray[np.float32]]

HIDDEN = 16


def new_model(name: ModelName, task: Task, columns: int, rng: np.random.Generator) -> Model:
    """Weights uniform in ±1/√inputs, as PyTorch has them; biases start at 0."""
    if name not in ("linear", "mlp"):
        raise BadSetting(f"model must be 'linear' or 'mlp'; got {name!r}")
    outputs = 2 if task == "classification" else 1
    model: Model = {}
    inputs = columns
    if name == "mlp":
        model["hidden.weight"] = _weights(rng, HIDDEN, inputs)
        model["hidden.bias"] = np.zeros(HIDDEN, np.float32)
        inputs = HIDDEN
    model["head.weight"] = _weights(rng, outputs, inputs)
    if task == "classification":
        model["head.bias"] = np.zeros(outputs, np.float32)
    return model


def _weights(rng: np.random.Generator, outputs: int, inputs: int) -> NDArray[np.float32]:
    bound = 1 / np.sqrt(inputs)
    return rng.uniform(-bound, bound, (outputs, inputs)).astype(np.float32)


def scores(model: Model, features: Floats) -> Floats:
    """One row a patient, one column an output."""
    return _forward(model, features)[1]


def gradient(model: Model, features: Floats, outcome: NDArray[np.int64], time: Floats | None) -> Model:
    """Of the loss of these patients."""
    inner, answers = _forward(model, features)
    slope = cross_entropy_slope(answers, outcome) if time is None else cox_slope(answers[:, 0], outcome, time)[:, None]
    parts: dict[str, Floats] = {"head.weight": slope.T @ inner}
    if "head.bias" in model:
        parts["head.bias"] = slope.sum(axis=0)
    if "hidden.weight" in model:
        back = (slope @ model["head.weight"]) * (inner > 0)
        parts["hidden.weight"], parts["hidden.bias"] = back.T @ features, back.sum(axis=0)
    return {name: parts[name].astype(np.float32) for name in model}


def _forward(model: Model, features: Floats) -> tuple[Floats, Floats]:
    inner = features
    if "hidden.weight" in model:
        inner = np.maximum(features @ model["hidden.weight"].T + model["hidden.bias"], 0)
    return inner, inner @ model["head.weight"].T + model.get("head.bias", np.float32(0))


def cross_entropy(answers: Floats, outcome: NDArray[np.int64]) -> float:
    """The mean over the patients."""
    return -float(_log_probabilities(answers)[np.arange(len(outcome)), outcome].mean())


def cross_entropy_slope(answers: Floats, outcome: NDArray[np.int64]) -> Floats:
    slope = np.exp(_log_probabilities(answers))
    slope[np.arange(len(outcome)), outcome] -= 1
    return np.asarray(slope / len(outcome))


def _log_probabilities(answers: Floats) -> Floats:
    shifted = answers - answers.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def cox_loss(hazard: Floats, event: NDArray[np.int64], time: Floats) -> float:
    """Minus the partial log-likelihood, the mean over the events; 0 where there are none."""
    if not event.any():
        return 0.0
    top = hazard.max()
    at_risk = _at_risk(np.exp(hazard - top), time)
    return -float((hazard - top - np.log(at_risk))[event == 1].mean())


def cox_slope(hazard: Floats, event: NDArray[np.int64], time: Floats) -> Floats:
    if not event.any():
        return np.zeros_like(hazard)
    weights = np.exp(hazard - hazard.max())
    shares = np.where(event == 1, 1 / _at_risk(weights, time), 0)
    # Patient i is in the risk set of every event at or before its own time.
    order = np.argsort(time, kind="stable")
    sums = np.cumsum(shares[order])
    until = np.searchsorted(time[order], time, side="right")
    return np.asarray((weights * sums[until - 1] - event) / event.sum())


def _at_risk(weights: Floats, time: Floats) -> Floats:
    """For each patient, the sum over those still there at its time: Σ_{j: t_j ≥ t_i} w_j."""
    order = np.argsort(time, kind="stable")
    tails = np.cumsum(weights[order][::-1])[::-1]
    return np.asarray(tails[np.searchsorted(time[order], time, side="left")])


def concordance(hazard: Floats, event: NDArray[np.int64], time: Floats) -> float:
    """Harrell's C: how often, of two patients of whom one is known to die first, that one has the higher hazard."""
    first = (event == 1)[:, None] & (time[:, None] < time[None, :])
    pairs = first.sum()
    if not pairs:
        return 0.5
    right = (hazard[:, None] > hazard[None, :]) + 0.5 * (hazard[:, None] == hazard[None, :])
    return float((right * first).sum() / pairs)
