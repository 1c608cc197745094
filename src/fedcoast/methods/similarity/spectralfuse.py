"""SpectralFuse: the entropy of a client's last layer and its agreement class by class, merged by a filter.

    entropy    e_i: of the last layer's update, smoothed by μ, as a share of the round's clients (SpectralFed)
    alignment  c_i: the mean over the classes of (1 + cos(g_{i,c}, G_c)) / 2, G = Σ x_i·g_i, smoothed and shared alike
    noise      v = 1 − r + 10⁻³,  r ← 0.9·r + 0.1·Spearman(measurement, x), one for e and one for c
    score      x_i: the state of a scalar Kalman filter with the measurements e_i and c_i, Q = 10⁻⁴, P = 1 at first

Paper: Ukaye, Abdu-Aguye, Nandakumar et al., "Data-Free Contribution Estimation in Federated Learning using Gradient von
Neumann Entropy", arXiv 2604.22562, 2026; constants as in the authors' code.
Needs: a classifier head with a row for each class; no validation data, no full participation.
Cost: O(rounds · clients · (parameters of the head + its singular values)).
Deviations: it looks, and leaves training as it is (the authors aggregate by x). They start x with a little noise, ours
starts with equal shares, so that the same rounds give the same scores. A newcomer starts with an equal share of its
first round and P = 1. The score is a state and no sum of credits; the credit of a round is how far x moved.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedcoast.errors import Client
from fedcoast.kernels.directions import Doubles, row_cosines
from fedcoast.kernels.spectra import fuse, spectral_entropy
from fedcoast.methods.classifier_head import classifier_head, head_update
from fedcoast.methods.configured import ConfiguredAssessor, HeadAverageConfig
from fedcoast.methods.ledger import Credits
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.clients import client_from_json, client_to_json, in_order
from fedcoast.rounds.round_view import RoundView
from fedcoast.stats.ranking import spearman

PROCESS_NOISE, FIRST_VARIANCE = 1e-4, 1.0
RANK_MEMORY, LEAST_NOISE = 0.9, 1e-3

ClientFilter = tuple[float, float, float, float]  # entropy, alignment, x, P


@dataclass(frozen=True)
class FilterState:
    """The filter of each client, and how well entropy and alignment agreed with x in ranks."""

    clients: Mapping[Client, ClientFilter] = field(default_factory=dict)
    agreement: tuple[float, float] = (0.0, 0.0)


class SpectralFuse(ConfiguredAssessor[HeadAverageConfig]):
    """The state of the filter, about 1 together. Options are those of `HeadAverageConfig`."""

    method = "spectralfuse"

    def _initial_state(self) -> FilterState:
        return FilterState()

    def _step(self, view: RoundView, state: FilterState) -> tuple[Credits, FilterState]:
        head = classifier_head("SpectralFuse", self.config.layers, view.schema)
        start = view.start
        updates = {client: head_update(model, start, head) for client, model in view.uploads()}
        if not updates:
            return {}, state
        columns = int(np.prod(head[0].shape[1:]))
        entropy = np.array([spectral_entropy(rows[:, :columns]) for rows in updates.values()])
        before = [state.clients.get(client) for client in updates]
        shares = np.array([1 / len(updates) if earlier is None else earlier[2] for earlier in before])
        alignment = alignments(updates, dict(zip(updates, shares, strict=True)))
        smooth = [
            (now, near) if earlier is None else (self._smoothed(earlier[0], now), self._smoothed(earlier[1], near))
            for earlier, now, near in zip(before, entropy, alignment, strict=True)
        ]
        first, second = (_shares(np.array(column)) for column in zip(*smooth, strict=True))
        agreement = (
            _rank_agreement(state.agreement[0], first, shares),
            _rank_agreement(state.agreement[1], second, shares),
        )
        variance = np.array([FIRST_VARIANCE if earlier is None else earlier[3] for earlier in before]) + PROCESS_NOISE
        noise = (1 - agreement[0] + LEAST_NOISE, 1 - agreement[1] + LEAST_NOISE)
        moved, variance = fuse(shares, variance, first, second, noise)
        now_known = {
            client: (float(smooth[place][0]), float(smooth[place][1]), float(moved[place]), float(variance[place]))
            for place, client in enumerate(updates)
        }
        credits = dict(zip(updates, (moved - shares).tolist(), strict=True))
        return {view.number: credits}, FilterState({**state.clients, **now_known}, agreement)

    def _smoothed(self, before: float, now: float) -> float:
        return self.config.momentum * before + (1 - self.config.momentum) * float(now)

    def _scores(self, sums: dict[Client, float]) -> dict[Client, float]:
        known = self._state.clients
        return {client: known[client][2] if client in known else 0.0 for client in sums}

    def _dump_state(self, state: FilterState) -> tuple[dict[str, Any], dict[str, Array]]:
        clients = [[client_to_json(c), list(state.clients[c])] for c in in_order(state.clients)]
        return {"standing": clients, "agreement": list(state.agreement)}, {}

    def _load_state(self, facts: dict[str, Any], arrays: dict[str, Array]) -> FilterState:
        first, second = map(float, facts["agreement"])
        clients: dict[Client, ClientFilter] = {}
        for client, (entropy, alignment, share, variance) in facts["standing"]:
            clients[client_from_json(client)] = (float(entropy), float(alignment), float(share), float(variance))
        return FilterState(clients, (first, second))


def _rank_agreement(before: float, measured: Doubles, shares: Doubles) -> float:
    """A moving average of the rank correlation with the shares."""
    rho = spearman(measured.tolist(), shares.tolist())
    return RANK_MEMORY * before + (1 - RANK_MEMORY) * (0.0 if np.isnan(rho) else rho)


def alignments(updates: Mapping[Client, Doubles], weights: Mapping[Client, float]) -> Doubles:
    """The mean over the classes of (1 + cos) / 2 with the common update; the updates have a row for each class."""
    common: Any = sum(weights[client] * rows for client, rows in updates.items())
    return np.array([float((1 + row_cosines(rows, common)).mean() / 2) for rows in updates.values()])


def _shares(values: Doubles) -> Doubles:
    total = float(values.sum())
    return values / total if total else np.full(len(values), 1 / len(values))
