"""CGSV: a reputation that follows how well a client's update, cut to one length, points where everyone's do.

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
`formulas.similarity.sparsity` and `sparsified` are those). Partial participation is ours: who is absent keeps its
reputation, those present divide anew what they held together, a newcomer enters with an equal share. The
score is the last reputation and no sum of credits; the floor hides how far below zero a client is, credits do not.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from fedcoast.errors import BadSetting, Client
from fedcoast.kernels.directions import accumulate, chunks, cosine, cosine_game, gram, norm
from fedcoast.methods.base import Assessor, Uploads
from fedcoast.methods.layer_selection import Layers, choose, describe
from fedcoast.methods.ledger import Credits
from fedcoast.methods.option_checks import check_word, is_number
from fedcoast.methods.updates import again, pick, relative_weights
from fedcoast.rounds.arrays import Array
from fedcoast.rounds.clients import client_from_json, client_to_json, in_order
from fedcoast.rounds.round import Policy, Round
from fedcoast.rounds.schema import ModelSchema

Game = Literal["cosine", "exact"]

SMALLEST_NORM = 1e-7
MOST_EXACT = 15


class CGSV(Assessor):
    """The reputation of the last round, all of them together 1.

    length  Γ, the length all updates are cut to
    memory  α, how much of its reputation a client keeps from round to round, in [0, 1)
    floor   the least a reputation may be before they are divided by their sum
    game    "cosine", the authors' approximation in linear time, or "exact", the Shapley value itself
    layers  which tensors count: "all", "head", a pattern or several ("fc.*"), or a function of the name
    """

    method = "cgsv"

    def __init__(
        self,
        length: float = 0.5,
        memory: float = 0.95,
        floor: float = 1e-3,
        game: Game = "cosine",
        layers: Layers = "all",
        bad_uploads: Policy = "quarantine",
    ) -> None:
        super().__init__(bad_uploads)
        if not is_number(length) or length <= 0:
            raise BadSetting(f"length must be a positive number, to which updates are cut; got {length!r}")
        if not is_number(memory) or not 0 <= memory < 1:
            raise BadSetting(f"memory must lie in [0, 1), the share of a reputation that is kept; got {memory!r}")
        if not is_number(floor) or floor <= 0:
            raise BadSetting(f"floor must be a positive number, below which no reputation falls; got {floor!r}")
        check_word("game", game, ("cosine", "exact"))
        describe(layers)
        self.length, self.memory, self.floor, self.game, self.layers = length, memory, floor, game, layers
        self._standing: dict[Client, float] = {}  # reputations in units of an equal share: 1 is as good as the mean

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "length": self.length,
            "memory": self.memory,
            "floor": self.floor,
            "game": self.game,
            "layers": describe(self.layers),
        }

    def _take(self, round: Round, schema: ModelSchema, uploads: Uploads) -> Credits:
        if self.game == "exact" and len(round.clients) > MOST_EXACT:
            raise BadSetting(
                f"round {round.number} has {len(round.clients)} clients, and game='exact' values every coalition of at"
                f" most {MOST_EXACT}; use game='cosine'"
            )
        chosen = choose(self.layers, schema)
        start = pick(round.read_start(schema), chosen)
        weights = self._weights(round)
        common = [np.zeros(layer.shape) for layer in start] if self.game == "cosine" else []
        lengths, factors, held = {}, {}, []
        for client, model in uploads:
            local = pick(model, chosen)
            lengths[client] = norm(chunks(local, start))
            factors[client] = self.length / (lengths[client] + SMALLEST_NORM)
            if self.game == "exact":
                held.append(local)
            else:
                accumulate(common, chunks(local, start), weights[client] * factors[client])
        if self.game == "exact":
            credits = _shapley(start, held, factors, weights)
        else:
            whole = norm(chunks(common))
            credits = {
                client: cosine(chunks(pick(model, chosen), start), chunks(common), lengths[client], whole)
                for client, model in again(round, schema, tuple(factors))
            }
        self._standing = {**self._standing, **self._moved(credits)}
        return {round.number: credits} if credits else {}

    def _weights(self, round: Round) -> dict[Client, float]:
        """a, up to a factor that no cosine sees: who counts how much in the common update."""
        if not self._standing:
            return relative_weights(round)
        return {client: self._standing.get(client, 1.0) for client in round.clients}

    def _moved(self, credits: Mapping[Client, float]) -> dict[Client, float]:
        """The standing of those present after a round that gave these credits."""
        standing = {client: self._standing.get(client, 1.0) for client in credits}
        together = sum(standing.values())
        before = {client: own / together if self._standing else 0.0 for client, own in standing.items()}
        after = {c: max(self.floor, self.memory * before[c] + (1 - self.memory) * credits[c]) for c in credits}
        total = sum(after.values())
        return {client: together * own / total for client, own in after.items()}

    def _scores(self, sums: dict[Client, float]) -> dict[Client, float]:
        total = sum(self._standing[client] for client in in_order(self._standing))
        return {client: self._standing[client] / total if client in self._standing else 0.0 for client in sums}

    def _state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        return {"standing": [[client_to_json(c), self._standing[c]] for c in in_order(self._standing)]}, {}

    def _restore(self, facts: dict[str, Any], arrays: dict[str, Array]) -> None:
        self._standing = {client_from_json(client): float(own) for client, own in facts["standing"]}


def _shapley(
    start: Sequence[Array],
    held: Sequence[Sequence[Array]],
    factors: Mapping[Client, float],
    weights: Mapping[Client, float],
) -> dict[Client, float]:
    if not held:
        return {}
    scale = np.array(list(factors.values()))
    products = gram([chunks(local, start) for local in held]) * scale[:, None] * scale[None, :]
    values = cosine_game(products, [weights[client] for client in factors])
    return {client: float(value) for client, value in zip(factors, values, strict=True)}
