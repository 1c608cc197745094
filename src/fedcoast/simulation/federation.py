"""Train a federation and yield the rounds that a production server would see."""

from collections.abc import Iterator
from math import ceil

from fedcoast.errors import BadSetting, Client, require

require("torch", extra="lab")  # so that a missing PyTorch is answered with the line that installs it

from torch import nn

from fedcoast.rounds import Round
from fedcoast.simulation.attacks.attackers import Attackers
from fedcoast.simulation.datasets import Dataset
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federated_data import CLIENTS, FederatedData, prepare, stream
from fedcoast.simulation.server import Server
from fedcoast.simulation.training import new_model
from fedcoast.simulation.worker_pool import Arrays, WorkerPool, worker_pool


class Federation:
    """An experiment and its data. Iterating trains; each round is yielded once it is aggregated and evaluated.

    `dataset` replaces the data that the experiment names.
    `only` names the clients that train; the data of the others stay unused, and nothing else changes.
    `resume` continues after a round; the following rounds are those of an uninterrupted run.
    """

    def __init__(
        self,
        experiment: Experiment,
        workers: int = 1,
        device: str = "cpu",
        dataset: Dataset | None = None,
        only: frozenset[int] | None = None,
    ) -> None:
        if workers < 1:
            raise BadSetting(f"workers must be at least 1; got {workers}")
        self.experiment = experiment
        everyone = range(experiment.clients)
        self._clients = list(everyone) if only is None else sorted(only)
        if not self._clients or not set(self._clients) <= set(everyone):
            raise BadSetting(f"only must name some of the clients 0 to {len(everyone) - 1}; got {self._clients}")
        self.data: FederatedData = prepare(experiment, dataset)
        self._workers, self._device = workers, device
        model = new_model(experiment, self.data)
        self.buffers = frozenset(name for name, _ in model.named_buffers())
        self.server = Server(experiment, self.buffers)
        self._model: Arrays = {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}
        self._number = 0
        trained = frozenset(name for name, _ in model.named_parameters())
        self.attackers = None if experiment.attack is None else Attackers(experiment, trained)
        self._normalised = any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in model.modules())

    @property
    def ground_truth(self) -> dict[Client, float] | None:
        """The true scores of the clients; None where the setting has no true order, or a client attacks."""
        if self.experiment.attack is not None:
            return None
        scores = self.data.setting.ground_truth(self.experiment.clients)
        return None if scores is None else dict(enumerate(scores))

    def resume(self, number: int, model: Arrays) -> None:
        """Continue after round `number`, which ended with this model."""
        self._number, self._model = number, {name: model[name] for name in self._model}

    def __iter__(self) -> Iterator[Round]:
        with worker_pool(self.experiment, self.data, self._workers, self._device) as pool:
            while self._number < self.experiment.rounds:
                yield self._round(pool, self._number + 1)

    def _round(self, pool: WorkerPool, number: int) -> Round:
        start, clients = self._model, self._drawn(number)
        local = pool.train(start, clients, number)
        weights = {client: self._weight(client) for client in clients}
        if self.attackers is not None:
            local, weights = self.attackers.forge(number, start, local, weights)
        end = self.server.aggregate(start, local, weights)
        if self._normalised and self.experiment.aggregation in ("pruned", "sparse"):
            end = self._with_fresh_statistics(pool, end, clients, number, weights)
        self._number, self._model = number, end
        fl_round = Round(
            number=number,
            start=start,
            local=local,
            end=end,
            weights=weights,
            buffers=self.buffers,
            metrics=pool.evaluate(end),
        )
        if self.attackers is not None:
            self.attackers.remember(fl_round)
        return fl_round

    def _drawn(self, number: int) -> list[int]:
        count = max(1, ceil(self.experiment.participation * len(self._clients) - 1e-9))
        drawn = stream(self.experiment.seed, CLIENTS, number).choice(self._clients, count, replace=False)
        return sorted(drawn.tolist())

    def _weight(self, client: int) -> float:
        uniform = self.experiment.weighting == "uniform" or self.experiment.aggregation in ("pruned", "sparse")
        return 1.0 if uniform else float(len(self.data.client_indices[client]))

    def _with_fresh_statistics(
        self, pool: WorkerPool, end: Arrays, clients: list[int], number: int, weights: dict[int, float]
    ) -> Arrays:
        # The uploads' batch-norm statistics belong to weights that pruning discarded. The clients measure them again
        # under the pruned weights, and the server averages them.
        own = {client: weights[client] for client in clients}
        measured = self.server.aggregate(end, pool.refresh(end, clients, number), own)
        return {name: measured[name] if name in self.buffers else end[name] for name in end}


def federate(experiment: Experiment, workers: int = 1, device: str = "cpu") -> Iterator[Round]:
    """Train the experiment's federation and yield its rounds.

    With more than one worker, clients train in processes of their own: call it from under
    `if __name__ == "__main__":`.
    """
    return iter(Federation(experiment, workers, device))
