"""CGSV: a moving average of the cosine between a client's clipped update and the common update.

    update   u_i = Γ·Δ_i / (‖Δ_i‖ + 1e-7),  Δ_i = θ_i^t − Θ^{t−1}
    common   u_N = Σ_i a_i·u_i,  a the data weights in the first round and the reputations later
    credit   φ_i = cos(u_i, u_N) (`game="cosine"`), or the Shapley value of v(S) = cos(u_S, u_N) (`game="exact"`)
    score    r_i ← α·r_i + (1−α)·φ_i from r = 0, at least 1e-3, then divided by Σ_j r_j

Paper: Xu, Lyu, Ma, Miao, Foo, Low, "Gradient-Driven Rewards to Guarantee Fairness in Collaborative Machine
Learning", NeurIPS 2021; order of the steps as in the authors' code.
Needs: the clients' uploads; no validation data, no full participation. "exact" needs at most 15 clients in a round.
Cost: O(rounds · clients · parameters), every upload read twice; "exact" holds a round's uploads and values
2^N coalitions.
Deviations: it looks, and leaves training as it is (the authors train with u_N and send back sparsified rewards;
their sparsification is not part of this method). Partial participation is ours: an absent client keeps its
reputation, those present share again what they had together, a newcomer enters with an equal share. The
score is the last reputation and no sum of credits; the floor hides how far below zero a client is, credits do not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fedcoast.errors import BadSetting, Client
from fedcoast.kernels.directions import accumulate, chunks, cosine, cosine_game, gram, norm
from fedcoast.methods.configured import ConfiguredAssessor, LayersConfig
from fedcoast.methods.layer_selection import choose
from fedcoast.methods.ledger import Credits
from fedcoast.methods.option_checks import check_momentum, is_number
from fedcoast.methods.options import option
from fedcoast.methods.updates import pick, relative_weights
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.clients import client_from_json, client_to_json, in_order
from fedcoast.rounds.round_view import RoundView

Game = Literal["cosine", "exact"]
Reputation = dict[Client, float]  # in units of an equal share: 1 is as good as the mean

SMALLEST_NORM = 1e-7
MOST_EXACT = 15


@dataclass(frozen=True, kw_only=True)
class CGSVConfig(LayersConfig):
    """How updates are clipped and reputations follow."""

    clip_norm: float = option(0.5, "The length that all updates are scaled to.", "The paper's Γ.")
    momentum: float = option(
        0.95, "How much of its reputation a client keeps from round to round, in [0, 1).", "The paper's α."
    )
    floor: float = option(1e-3, "The least a reputation may be before they are divided by their sum.")
    game: Game = option(
        "cosine", "cosine (the authors' approximation in linear time), or exact (the Shapley value itself)."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_number(self.clip_norm) or self.clip_norm <= 0:
            raise BadSetting(f"clip_norm must be a positive number, the length of all updates; got {self.clip_norm!r}")
        check_momentum(self.momentum, "a reputation")
        if not is_number(self.floor) or self.floor <= 0:
            raise BadSetting(f"floor must be a positive number, below which no reputation falls; got {self.floor!r}")


class CGSV(ConfiguredAssessor[CGSVConfig]):
    """The reputation of the last round, all of them together 1. Options are those of `CGSVConfig`."""

    method = "cgsv"

    def _initial_state(self) -> Reputation:
        return {}

    def _step(self, view: RoundView, state: Reputation) -> tuple[Credits, Reputation]:
        if self.config.game == "exact" and len(view.clients) > MOST_EXACT:
            raise BadSetting(
                f"round {view.number} has {len(view.clients)} clients, and game='exact' values every coalition"
                f" of at most {MOST_EXACT}; use game='cosine'"
            )
        chosen = choose(self.config.layers, view.schema)
        start = pick(view.start, chosen)
        weights = _weights(view, state)
        common = [np.zeros(layer.shape) for layer in start] if self.config.game == "cosine" else []
        lengths, factors, models = {}, {}, []
        for client, model in view.uploads():
            local = pick(model, chosen)
            lengths[client] = norm(chunks(local, start))
            factors[client] = self.config.clip_norm / (lengths[client] + SMALLEST_NORM)
            if self.config.game == "exact":
                models.append(local)
            else:
                accumulate(common, chunks(local, start), weights[client] * factors[client])
        if self.config.game == "exact":
            credits = _shapley(start, models, factors, weights)
        else:
            whole = norm(chunks(common))
            credits = {
                client: cosine(chunks(pick(model, chosen), start), chunks(common), lengths[client], whole)
                for client, model in view.reread(factors)
            }
        return ({view.number: credits} if credits else {}), {**state, **self._updated(credits, state)}

    def _updated(self, credits: Mapping[Client, float], known: Reputation) -> Reputation:
        """The reputation of the clients of a round that gave these credits."""
        reputation = {client: known.get(client, 1.0) for client in credits}
        together = sum(reputation.values())
        before = {client: own / together if known else 0.0 for client, own in reputation.items()}
        after = {
            c: max(self.config.floor, self.config.momentum * before[c] + (1 - self.config.momentum) * credits[c])
            for c in credits
        }
        total = sum(after.values())
        return {client: together * own / total for client, own in after.items()}

    def _scores(self, sums: dict[Client, float]) -> dict[Client, float]:
        known: Reputation = self._state
        total = sum(known[client] for client in in_order(known))
        return {client: known[client] / total if client in known else 0.0 for client in sums}

    def _dump_state(self, state: Reputation) -> tuple[dict[str, Any], dict[str, Array]]:
        return {"standing": [[client_to_json(c), state[c]] for c in in_order(state)]}, {}

    def _load_state(self, facts: dict[str, Any], arrays: dict[str, Array]) -> Reputation:
        return {client_from_json(client): float(own) for client, own in facts["standing"]}


def _weights(view: RoundView, known: Reputation) -> dict[Client, float]:
    """a, up to a factor that no cosine sees: how much each client counts in the common update."""
    if not known:
        return relative_weights(view)
    return {client: known.get(client, 1.0) for client in view.clients}


def _shapley(
    start: Sequence[Array],
    models: Sequence[Sequence[Array]],
    factors: Mapping[Client, float],
    weights: Mapping[Client, float],
) -> dict[Client, float]:
    if not models:
        return {}
    scale = np.array(list(factors.values()))
    products = gram([chunks(local, start) for local in models]) * scale[:, None] * scale[None, :]
    values = cosine_game(products, [weights[client] for client in factors])
    return {client: float(value) for client, value in zip(factors, values, strict=True)}
