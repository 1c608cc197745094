"""The server of a federation: how uploads become the next global model."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedcoast.errors import BadFile
from fedcoast.kernels.aggregation import mean, pruned_mean, sparse_mean
from fedcoast.rounds.arrays import Array
from fedcoast.simulation.experiment import Experiment

Arrays = dict[str, Array]

MOMENTUM = 0.9
SECOND_MOMENT = 0.99
SMALLEST_STEP = 1e-3


class Server:
    """Aggregates by the experiment's rule; remembers what a server optimiser must.

    Trained entries follow the rule; float buffers (batch-norm statistics) are averaged, integer counters take the
    maximum. FedAvgM and FedAdam follow Reddi et al., "Adaptive Federated Optimization", ICLR 2021 (β₁ 0.9,
    β₂ 0.99, τ 1e-3, no bias correction), with the mean update as gradient.
    """

    def __init__(self, experiment: Experiment, buffers: frozenset[str]) -> None:
        self._experiment, self._buffers = experiment, buffers
        self._moments: dict[str, Array] = {}

    def aggregate(self, start: Arrays, local: Mapping[int, Arrays], weights: Mapping[int, float]) -> Arrays:
        """The global model after the round."""
        models, shares = list(local.values()), [weights[client] for client in local]
        return {name: self._entry(name, start[name], [model[name] for model in models], shares) for name in start}

    def _entry(self, name: str, start: Array, tensors: Sequence[Array], shares: Sequence[float]) -> Array:
        if not np.issubdtype(start.dtype, np.floating):
            return np.asarray(np.maximum.reduce(list(tensors)))
        if name in self._buffers:
            return mean(tensors, shares)
        rule = self._experiment.aggregation
        if rule == "pruned":
            updates = [tensor - start for tensor in tensors]
            return pruned_mean(start, updates, self._experiment.keep, self._experiment.step)
        if rule == "sparse":
            return sparse_mean(start, tensors, self._experiment.keep)
        merged = mean(tensors, shares)
        return merged if rule == "fedavg" else self._optimise(name, start, merged - start)

    def _optimise(self, name: str, start: Array, update: Array) -> Array:
        rate = self._experiment.server_rate
        if self._experiment.aggregation == "fedavgm":
            first = MOMENTUM * self._moment(f"{name}/1", start) + update
            self._moments[f"{name}/1"] = first
            return np.asarray(start + rate * first, dtype=start.dtype)
        first = MOMENTUM * self._moment(f"{name}/1", start) + (1 - MOMENTUM) * update
        second = SECOND_MOMENT * self._moment(f"{name}/2", start) + (1 - SECOND_MOMENT) * update**2
        self._moments.update({f"{name}/1": first, f"{name}/2": second})
        return np.asarray(start + rate * first / (np.sqrt(second) + SMALLEST_STEP), dtype=start.dtype)

    def _moment(self, key: str, like: Array) -> Array:
        return self._moments.get(key, np.zeros_like(like))

    def state(self) -> dict[str, Array]:
        """What must survive the process."""
        return dict(self._moments)

    def restore(self, moments: Mapping[str, Any]) -> None:
        if self._experiment.aggregation not in ("fedavgm", "fedadam") and moments:
            raise BadFile(f"{self._experiment.aggregation} has no server state; got {len(moments)} arrays")
        self._moments = dict(moments)
