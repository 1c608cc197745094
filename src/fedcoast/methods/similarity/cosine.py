"""Plain cosine: the cosine of a client's update with the update of the round, summed over the rounds.

    credit   φ_i^t = cos(Δ_i^t, R^t),  Δ_i^t = θ_i^t − Θ^{t−1}
    R^t      the mean update Σ_j w_j Δ_j^t (`reference="mean"`), or Θ^t − Θ^{t−1} (`reference="movement"`)
    score    φ_i = Σ_t φ_i^t

Paper: none of its own; the simplest of the similarity family (CGSV without normalisation and memory).
Needs: the clients' uploads; no validation data, no full participation.
Cost: O(rounds · clients · parameters); "mean" reads every upload twice, and holds one float64 model.
Deviations: none. A zero update, or a round that goes nowhere, is worth 0; one client alone 1.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedcoast.kernels.directions import accumulate, chunks, cosine, norm
from fedcoast.methods.configured import ConfiguredAssessor, LayersConfig
from fedcoast.methods.layer_selection import choose
from fedcoast.methods.ledger import Credits
from fedcoast.methods.options import option
from fedcoast.methods.updates import pick, relative_weights
from fedcoast.rounds.round_view import RoundView

Reference = Literal["mean", "movement"]


@dataclass(frozen=True, kw_only=True)
class CosineConfig(LayersConfig):
    """What an update is compared with."""

    reference: Reference = option(
        "mean",
        "What an update is compared with: the mean update of the round, or the movement of the global model.",
        "The mean is weighted as the aggregation was, if the round has weights. A server optimiser may turn the"
        " movement.",
    )


class Cosine(ConfiguredAssessor[CosineConfig]):
    """The sum of cosines. Options are those of `CosineConfig`."""

    method = "cosine"

    def _step(self, view: RoundView, state: None) -> tuple[Credits, None]:
        chosen = choose(self.config.layers, view.schema)
        start = pick(view.start, chosen)
        if self.config.reference == "movement":
            end = pick(view.end, chosen)
            length = norm(chunks(end, start))
            credits = {
                client: cosine(chunks(pick(model, chosen), start), chunks(end, start), other=length)
                for client, model in view.uploads()
            }
            return {view.number: credits}, state
        weights, clients = relative_weights(view), []
        mean = [np.zeros(layer.shape) for layer in start]
        for client, model in view.uploads():
            accumulate(mean, chunks(pick(model, chosen), start), weights[client])
            clients.append(client)
        length = norm(chunks(mean))
        credits = {
            client: cosine(chunks(pick(model, chosen), start), chunks(mean), other=length)
            for client, model in view.reread(clients)
        }
        return {view.number: credits}, state
