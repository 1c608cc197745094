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
from fedcoast.methods.configured import ConfiguredAssessor, LayersConfig
from fedcoast.methods.layer_selection import choose
from fedcoast.methods.ledger import Credits
from fedcoast.methods.updates import pick
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.clients import client_from_json, client_to_json, in_order
from fedcoast.rounds.round_view import RoundView

EPSILON = 1e-6

MeanCosines = dict[Client, tuple[float, int]]  # the mean, and of how many rounds


class FedCENovelty(ConfiguredAssessor[LayersConfig]):
    """The share of a client's novelty, all of them together 1."""

    method = "fedce-novelty"

    def _initial_state(self) -> MeanCosines:
        return {}

    def _step(self, view: RoundView, state: MeanCosines) -> tuple[Credits, MeanCosines]:
        chosen = choose(self.config.layers, view.schema)
        start = pick(view.start, chosen)
        novelty = {client: _novelty(mean) for client, (mean, _) in state.items()}
        total = [np.zeros(layer.shape) for layer in start]
        weights: dict[Client, float] = {}
        for client, model in view.uploads():
            weights[client] = novelty.get(client, 1.0)  # up to a factor, which changes no direction
            accumulate(total, chunks(pick(model, chosen), start), weights[client])
        found: dict[Client, float] = {}
        for client, model in view.reread(weights):
            own = pick(model, chosen)
            others = (whole - weights[client] * part for whole, part in _both(total, own, start))
            found[client] = 0.0 if len(weights) == 1 else cosine(chunks(own, start), others)
        moved = {}
        for client, near in found.items():
            mean, count = state.get(client, (0.0, 0))
            moved[client] = (mean + (near - mean) / (count + 1), count + 1)
        credits = {client: 1 - near for client, near in found.items()}
        return ({view.number: credits} if credits else {}), {**state, **moved}

    def _scores(self, sums: dict[Client, float]) -> dict[Client, float]:
        novelty = {client: _novelty(self._state[client][0]) for client in in_order(self._state)}
        total = sum(novelty.values())
        return {client: novelty[client] / total if client in novelty else 0.0 for client in sums}

    def _dump_state(self, state: MeanCosines) -> tuple[dict[str, Any], dict[str, Array]]:
        return {"cosines": [[client_to_json(c), *state[c]] for c in in_order(state)]}, {}

    def _load_state(self, facts: dict[str, Any], arrays: dict[str, Array]) -> MeanCosines:
        return {client_from_json(client): (float(mean), int(count)) for client, mean, count in facts["cosines"]}


def _novelty(mean: float) -> float:
    return max(EPSILON, 1 - mean)


def _both(total: Any, own: Any, start: Any) -> Any:
    return zip(chunks(total), chunks(own, start), strict=True)
