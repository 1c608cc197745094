"""FedCE's novelty: how much a client's update differs in direction from those of the others.

    others   O_i = Σ_{j ≠ i} w_j·Δ_j,  w the scores of the round before among those present, alike at first
    credit   φ_i^t = 1 − cos(Δ_i, O_i)
    score    max(ε, 1 − mean over its rounds of cos(Δ_i, O_i)), divided by the sum over all clients; ε = 10⁻⁶

Paper: Jiang, Roth, Li, Yang, Zhao, Nath, Xu, Dou, Xu, "Fair Federated Medical Image Segmentation via Client
Contribution Estimation", CVPR 2023 (arXiv 2303.16520), the part in gradient space; computed as NVIDIA FLARE 2.9 does.
Needs: the clients' uploads; no validation data, no full participation.
Cost: O(rounds · clients · parameters); every upload is read twice, one float64 model is held.
Deviations: FedCE multiplies or adds the error of a model without the client on the client's own validation data, which
a server does not have; this is the half that needs none. It looks, and leaves training as it is. A client that sends
noise is novel: a score here says "different", not "good". Absent clients keep their mean. The score is
no sum of credits.
"""

from typing import Any

import numpy as np

from fedcoast.errors import Client
from fedcoast.kernels.directions import accumulate, chunks, cosine
from fedcoast.methods.base import Uploads
from fedcoast.methods.configured import ConfiguredAssessor, LayersConfig
from fedcoast.methods.layer_selection import choose
from fedcoast.methods.ledger import Credits
from fedcoast.methods.updates import again, pick
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.clients import client_from_json, client_to_json, in_order
from fedcoast.rounds.round import Round
from fedcoast.rounds.schema import ModelSchema

EPSILON = 1e-6


class FedCENovelty(ConfiguredAssessor[LayersConfig]):
    """The share of a client's novelty, all of them together 1."""

    method = "fedce-novelty"

    def __init__(self, config: LayersConfig | None = None, **options: Any) -> None:
        super().__init__(config, **options)
        self._cosines: dict[Client, tuple[float, int]] = {}  # the mean, and of how many rounds

    def _take(self, fl_round: Round, schema: ModelSchema, uploads: Uploads) -> Credits:
        chosen = choose(self.config.layers, schema)
        start = pick(fl_round.read_start(schema), chosen)
        novelty = {client: _novelty(mean) for client, (mean, _) in self._cosines.items()}
        total = [np.zeros(layer.shape) for layer in start]
        weights: dict[Client, float] = {}
        for client, model in uploads:
            weights[client] = novelty.get(client, 1.0)  # up to a factor, which changes no direction
            accumulate(total, chunks(pick(model, chosen), start), weights[client])
        found: dict[Client, float] = {}
        for client, model in again(fl_round, schema, list(weights)):
            own = pick(model, chosen)
            others = (whole - weights[client] * part for whole, part in _both(total, own, start))
            found[client] = 0.0 if len(weights) == 1 else cosine(chunks(own, start), others)
        moved = {}
        for client, near in found.items():
            mean, count = self._cosines.get(client, (0.0, 0))
            moved[client] = (mean + (near - mean) / (count + 1), count + 1)
        self._cosines = {**self._cosines, **moved}
        return {fl_round.number: {client: 1 - near for client, near in found.items()}} if found else {}

    def _scores(self, sums: dict[Client, float]) -> dict[Client, float]:
        novelty = {client: _novelty(self._cosines[client][0]) for client in in_order(self._cosines)}
        total = sum(novelty.values())
        return {client: novelty[client] / total if client in novelty else 0.0 for client in sums}

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        return {"cosines": [[client_to_json(c), *self._cosines[c]] for c in in_order(self._cosines)]}, {}

    def _restore(self, facts: dict[str, Any], arrays: dict[str, Array]) -> None:
        self._cosines = {
            client_from_json(client): (float(mean), int(count)) for client, mean, count in facts["cosines"]
        }


def _novelty(mean: float) -> float:
    return max(EPSILON, 1 - mean)


def _both(total: Any, own: Any, start: Any) -> Any:
    return zip(chunks(total), chunks(own, start), strict=True)
