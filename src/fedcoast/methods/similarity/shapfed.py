"""ShapFed: the cosine of a client's update of the classifier head with the common one, averaged over the classes.

    rows     g_{i,c} = the row of class c of the head's update, weight and bias together
    common   G_c = Σ_i a_i·g_{i,c},  a_i = 1/N at first
    credit   γ_i^t = mean over the classes c of cos(g_{i,c}, G_c)
    score    γ_i ← μ·γ_i + (1−μ)·γ_i^t, in its first round γ_i^t itself;  a_i = max(0, γ_i) / Σ_j max(0, γ_j)

Paper: Tastan, Fares, Aremu, Horváth, Nandakumar, "Redefining Contributions: Shapley-Driven Federated Learning", IJCAI
2024 (CSSV); momentum and weights as in the authors' code.
Needs: a classifier, and the uploads of its head; no validation data, no full participation.
Cost: O(rounds · clients · parameters of the head).
Deviations: it looks, and leaves training as it is (the authors aggregate and personalise by a). Their shares
γ_i/Σγ turn negative with γ; ours stop at 0, alike if all do. A class that nobody trained is left out. Partial
participation is ours: an absent client keeps γ, a newcomer counts as the mean of the others. The score is the
moving average and no sum of credits.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fedcoast.errors import Client
from fedcoast.kernels.directions import Doubles, row_cosines
from fedcoast.methods.classifier_head import classifier_head, head_update
from fedcoast.methods.configured import ConfiguredAssessor, HeadAverageConfig
from fedcoast.methods.ledger import Credits
from fedcoast.methods.options import option
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.clients import client_from_json, client_to_json, in_order
from fedcoast.rounds.round_view import RoundView

Averages = dict[Client, float]
Weighting = Literal["reputation", "uniform"]


@dataclass(frozen=True, kw_only=True)
class ShapFedConfig(HeadAverageConfig):
    """How fast scores follow, and which clients count in the common update."""

    weighting: Weighting = option(
        "reputation", "How much a client counts in the common update: by reputation (as the authors do), or uniform."
    )


class ShapFed(ConfiguredAssessor[ShapFedConfig]):
    """The moving average of a client's class-wise agreement, in [−1, 1]. Options are those of `ShapFedConfig`."""

    method = "shapfed"

    def _initial_state(self) -> Averages:
        return {}

    def _step(self, view: RoundView, state: Averages) -> tuple[Credits, Averages]:
        head, start = classifier_head("ShapFed", self.config.layers, view.schema), view.start
        updates = {client: head_update(model, start, head) for client, model in view.uploads()}
        table = class_cosines(updates, self._weights(updates, state))
        trained = np.array([update.any(axis=1) for update in updates.values()]).any(axis=0)
        credits = {
            client: float(cosines[trained].mean()) if trained.any() else 0.0 for client, cosines in table.items()
        }
        moved = {
            client: self.config.momentum * state[client] + (1 - self.config.momentum) * credit
            if client in state
            else credit
            for client, credit in credits.items()
        }
        return ({view.number: credits} if credits else {}), {**state, **moved}

    def _weights(self, clients: Collection[Client], known: Averages) -> dict[Client, float]:
        averages = [max(0.0, known[client]) for client in clients if client in known]
        if self.config.weighting == "uniform" or not sum(averages):
            return dict.fromkeys(clients, 1 / max(1, len(clients)))
        mean = sum(averages) / len(averages)
        counts = {client: max(0.0, known.get(client, mean)) for client in clients}
        return {client: count / sum(counts.values()) for client, count in counts.items()}

    def _scores(self, sums: dict[Client, float]) -> dict[Client, float]:
        return {client: self._state.get(client, 0.0) for client in sums}

    def _dump_state(self, state: Averages) -> tuple[dict[str, Any], dict[str, Array]]:
        return {"standing": [[client_to_json(c), state[c]] for c in in_order(state)]}, {}

    def _load_state(self, facts: dict[str, Any], arrays: dict[str, Array]) -> Averages:
        return {client_from_json(client): float(own) for client, own in facts["standing"]}


def class_cosines(updates: Mapping[Client, Doubles], weights: Mapping[Client, float]) -> dict[Client, Doubles]:
    """cos(g_{i,c}, G_c) for every client and class; the updates are matrices with a row for each class."""
    common: Any = sum(weights[client] * rows for client, rows in updates.items())
    return {client: row_cosines(rows, common) for client, rows in updates.items()}
