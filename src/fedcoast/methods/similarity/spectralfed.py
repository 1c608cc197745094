"""SpectralFed: how many directions a client's update of the last layer uses.

    credit   S_i^t = −Σ_j p_j·ln p_j / ln rank,  p_j = σ_j² / Σ σ²,  σ the singular values of the last layer's update
    moving   E_i ← μ·E_i + (1−μ)·S_i^t, in its first round S_i^t itself
    score    E_i / Σ_j E_j

Paper: Ukaye, Abdu-Aguye, Nandakumar et al., "Data-Free Contribution Estimation in Federated Learning using Gradient von
Neumann Entropy", arXiv 2604.22562, 2026; μ and the normalisation by rank as in the authors' code.
Needs: a last layer with two or more dimensions; no validation data, no full participation.
Cost: O(rounds · clients · singular values of the last layer).
Deviations: it looks, and leaves training as it is (the authors aggregate by the shares). The bias is left out, as in
their code. An update of rank 0 or 1 is worth 0, where theirs divides by ln 1. An absent client keeps E. The score is a
share of moving averages and no sum of credits: a client that uses many directions for noise scores well.
"""

from typing import Any

import numpy as np

from fedcoast.errors import BadSetting, Client
from fedcoast.kernels.directions import LARGEST
from fedcoast.kernels.spectra import spectral_entropy
from fedcoast.methods.configured import ConfiguredAssessor, HeadAverageConfig
from fedcoast.methods.layer_selection import Layers, choose, describe
from fedcoast.methods.ledger import Credits
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.clients import client_from_json, client_to_json, in_order
from fedcoast.rounds.round_view import RoundView
from fedcoast.rounds.schema import ModelSchema

Entropies = dict[Client, float]


class SpectralFed(ConfiguredAssessor[HeadAverageConfig]):
    """The share of a client's smoothed entropy, all of them together 1. Options are those of `HeadAverageConfig`."""

    method = "spectralfed"

    def _initial_state(self) -> Entropies:
        return {}

    def _step(self, view: RoundView, state: Entropies) -> tuple[Credits, Entropies]:
        name = _matrix(self.config.layers, view.schema)
        start = view.start[name].astype(np.float64)
        credits = {}
        for client, model in view.uploads():
            with np.errstate(over="ignore"):
                update = np.clip(model[name].astype(np.float64) - start, -LARGEST, LARGEST)
            credits[client] = spectral_entropy(update.reshape(len(update), -1))
        moved = {
            client: self.config.momentum * state.get(client, credit) + (1 - self.config.momentum) * credit
            for client, credit in credits.items()
        }
        return ({view.number: credits} if credits else {}), {**state, **moved}

    def _scores(self, sums: dict[Client, float]) -> dict[Client, float]:
        total = sum(self._state[client] for client in in_order(self._state))
        if not total:
            return dict.fromkeys(sums, 0.0)
        return {client: self._state.get(client, 0.0) / total for client in sums}

    def _dump_state(self, state: Entropies) -> tuple[dict[str, Any], dict[str, Array]]:
        return {"entropy": [[client_to_json(c), state[c]] for c in in_order(state)]}, {}

    def _load_state(self, facts: dict[str, Any], arrays: dict[str, Array]) -> Entropies:
        return {client_from_json(client): float(own) for client, own in facts["entropy"]}


def _matrix(layers: Layers, schema: ModelSchema) -> str:
    """The last of the chosen layers that is a matrix."""
    matrices = [layer.name for layer in choose(layers, schema) if len(layer.shape) >= 2]
    if not matrices:
        raise BadSetting(
            f"SpectralFed needs a last layer with two or more dimensions; layers={describe(layers)!r} chose none."
            " Name it (layers='fc.*')"
        )
    return matrices[-1]
