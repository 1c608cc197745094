"""A federation of real sites: FedAvg over hospitals, and its value without some of them.

    v(S) = −loss of the model that the sites in S train alone, same first model, same batches
    φ    = the Shapley value of v

The loss is that of the test patients: each patient with the same weight ("pooled"), or each site ("by site"). The two
differ for small sites: "pooled" hardly counts them, "by site" counts them fully.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedcoast.errors import BadSetting, Client
from fedcoast.methods.coalition.games import members, shapley
from fedcoast.rounds import Round
from fedcoast.simulation.datasets.site_table import Indices, SiteTable
from fedcoast.simulation.site_models import (
    Model,
    ModelName,
    concordance,
    cox_loss,
    cross_entropy,
    gradient,
    new_model,
    scores,
)

LossAverage = Literal["pooled", "by site"]

SPLIT, FIRST_MODEL, BATCHES = range(3)


@dataclass(frozen=True)
class SiteExperiment:
    """How the sites train. The same experiment gives the same rounds.

    model          "linear" or "mlp"
    local_epochs   passes of a site over its own patients in each round
    learning_rate  of plain gradient descent, by batches of `batch` patients
    test_share     of each site's patients, drawn by the seed and never trained on
    """

    model: ModelName = "mlp"
    rounds: int = 20
    local_epochs: int = 1
    batch: int = 16
    learning_rate: float = 0.1
    test_share: float = 1 / 3
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("rounds", "local_epochs", "batch"):
            if type(value := getattr(self, name)) is not int or value < 1:
                raise BadSetting(f"{name} must be an integer of at least 1; got {value!r}")
        if not 0 < self.learning_rate < float("inf"):
            raise BadSetting(f"learning_rate must be a positive number; got {self.learning_rate!r}")
        if not 0 < self.test_share < 1:
            raise BadSetting(f"test_share must lie in (0, 1); got {self.test_share!r}")


class SiteFederation:
    """Iterating trains from the first round on; `only` names the sites that take part, all by default."""

    def __init__(self, table: SiteTable, experiment: SiteExperiment, only: frozenset[str] | None = None) -> None:
        if only is not None and not (only and only <= set(table.sites)):
            raise BadSetting(f"only must name some of {', '.join(table.sites)}; got {sorted(only)}")
        self.table, self.experiment = table, experiment
        self._clients = [number for number, name in enumerate(table.sites) if only is None or name in only]
        self._train, self.test_rows = _split(table, experiment)
        pooled = table.features[np.concatenate(self._train)]
        spread = pooled.std(axis=0)
        # Scaled by all training patients, whoever takes part: what differs between coalitions is who trains.
        self._features = ((table.features - pooled.mean(axis=0)) / np.where(spread > 0, spread, 1)).astype(np.float32)

    def first_model(self) -> Model:
        rng = _stream(self.experiment.seed, FIRST_MODEL)
        return new_model(self.experiment.model, self.table.task, len(self.table.columns), rng)

    def __iter__(self) -> Iterator[Round]:
        model = self.first_model()
        for number in range(1, self.experiment.rounds + 1):
            local = {client: self._trained(model, client, number) for client in self._clients}
            weights = {client: float(len(self._train[client])) for client in self._clients}
            end = _weighted_mean(local, weights)
            names = self.table.sites
            yield Round(
                number=number,
                start=model,
                local={names[client]: upload for client, upload in local.items()},
                end=end,
                weights={names[client]: weight for client, weight in weights.items()},
                metrics=self.evaluate(end),
            )
            model = end

    def last_model(self) -> Model:
        *_, last = self
        return {name: np.asarray(array) for name, array in last.end.items()}

    def evaluate(self, model: Model) -> dict[str, float]:
        """The model on the test patients: the loss, pooled and by site, and what people quote."""
        rows = np.concatenate(self.test_rows)
        answers, outcome = scores(model, self._features[rows]), self.table.outcome[rows]
        by_site = float(np.mean([self._loss(model, own) for own in self.test_rows]))
        losses = {"test loss": self._loss(model, rows), "test loss by site": by_site}
        if self.table.time is None:
            return {**losses, "test accuracy": float((answers.argmax(axis=1) == outcome).mean())}
        return {**losses, "concordance": concordance(answers[:, 0], outcome, self.table.time[rows])}

    def _loss(self, model: Model, rows: Indices) -> float:
        answers = scores(model, self._features[rows])
        if self.table.time is None:
            return cross_entropy(answers, self.table.outcome[rows])
        return cox_loss(answers[:, 0], self.table.outcome[rows], self.table.time[rows])

    def _trained(self, model: Model, client: int, number: int) -> Model:
        model = {name: array.copy() for name, array in model.items()}
        rng = _stream(self.experiment.seed, BATCHES, number, client)
        own, rate = self._train[client], np.float32(self.experiment.learning_rate)
        for _ in range(self.experiment.local_epochs):
            order = rng.permutation(own)
            for at in range(0, len(order), self.experiment.batch):
                rows = order[at : at + self.experiment.batch]
                time = None if self.table.time is None else self.table.time[rows]
                for name, slope in gradient(model, self._features[rows], self.table.outcome[rows], time).items():
                    model[name] -= rate * slope
        return model


def retraining_shapley(table: SiteTable, experiment: SiteExperiment) -> dict[LossAverage, dict[Client, float]]:
    """What each site is worth to the training, by 2^N trainings; for both averages of the loss."""
    count = len(table.sites)
    losses: dict[LossAverage, list[float]] = {"pooled": [], "by site": []}
    for coalition in range(2**count):
        only = frozenset(table.sites[client] for client in members(coalition))
        federation = SiteFederation(table, experiment, only or None)
        metrics = federation.evaluate(federation.last_model() if only else federation.first_model())
        losses["pooled"].append(-metrics["test loss"])
        losses["by site"].append(-metrics["test loss by site"])
    return {
        average: dict(zip(table.sites, shapley(np.array(v)).tolist(), strict=True)) for average, v in losses.items()
    }


def _split(table: SiteTable, experiment: SiteExperiment) -> tuple[list[Indices], list[Indices]]:
    """Each site's patients to train on, and to test on; both with the same share of each outcome."""
    train, test = [], []
    for site in range(len(table.sites)):
        rng = _stream(experiment.seed, SPLIT, site)
        rows = table.rows_of(site)
        tested: list[Any] = []
        for outcome in np.unique(table.outcome[rows]):
            own = rng.permutation(rows[table.outcome[rows] == outcome])
            tested.append(own[: round(experiment.test_share * len(own))])
        test.append(np.sort(np.concatenate(tested)))
        train.append(np.setdiff1d(rows, test[-1]))
    return train, test


def _weighted_mean(local: dict[int, Model], weights: dict[int, float]) -> Model:
    total = sum(weights.values())
    names = next(iter(local.values()))
    means: dict[str, NDArray[Any]] = {
        name: sum((weights[client] / total * local[client][name] for client in local), start=np.zeros(()))
        for name in names
    }
    return {name: array.astype(np.float32) for name, array in means.items()}


def _stream(seed: int, *path: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=path))
