"""Fed-PCA: how much better a client's quantised update predicts its peers' on the same parameter than on others.

    codes    x_i[p] ∈ {0, …, h−1}, the update of parameter p on one scale for all clients of the round
    rule     Δ(a, b) = T(a, b) − T_i(a)·T_j(b) over one half of the parameters, for the tasks of the other half
    task     Q_p = [Δ(x_i[p], x_j[p]) > 0] − [Δ(x_i[q], x_j[q′]) > 0],  q ≠ q′ of the same half as p
    credit   Q_i = mean of Q_p over the bonus tasks p and the peers j
    score    Σ_t Q_i^t

Paper: Lv, Zheng, Luo, Wu, Tang, Hua, Jia, Lv, "Data-Free Evaluation of User Contributions in Federated Learning",
WiOpt 2021.
Needs: the clients' uploads; no validation data, no full participation. Two clients in a round at least: a round of
one has no peer, is undefined, and gives no credit. Many more parameters than h² for the frequencies to mean something.
Cost: O(rounds · clients · peers · (parameters + h²)); holds a round's codes, one byte a client and parameter.
Deviations: the paper scores a round; the sum over rounds is what others compare by. A deterministic uniform
quantiser instead of cpSGD's. `penalty="exact"` takes the mean over all pairs (q, q′) instead of drawing one: the same
expectation with less noise. An update of zeros has one code, is correlated with nothing and scores 0.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedcoast.errors import BadRound, BadSetting, Client
from fedcoast.kernels.ballots import Floats
from fedcoast.kernels.directions import chunks
from fedcoast.kernels.peer_prediction import (
    Codes,
    Places,
    draw_pairs,
    halves,
    largest_share,
    peer_score,
    quantise,
    spare_tasks,
)
from fedcoast.methods.configured import ConfiguredAssessor, LayersConfig
from fedcoast.methods.layer_selection import choose
from fedcoast.methods.ledger import Credits
from fedcoast.methods.option_checks import check_count, check_seed, is_number
from fedcoast.methods.options import option
from fedcoast.methods.updates import pick
from fedcoast.rounds.round_view import RoundView

Penalty = Literal["sampled", "exact"]
Clip = float | Literal["quantile"]

QUANTILE = 0.999


@dataclass(frozen=True, kw_only=True)
class FedPCAConfig(LayersConfig):
    """How updates are quantised and compared."""

    levels: int = option(8, "How many codes there are.", "The paper's h.")
    clip: Clip = option(
        "quantile",
        "The size of update beyond which all count the same: a number, or quantile.",
        "\"quantile\" is the 99.9 % quantile of the sizes of all the round's updates. The paper's X.",
    )
    peers: int = option(
        5, "How many others a client is compared with, drawn for each client; all where there are no more."
    )
    bonus: int = option(1000, "How many tasks earn a bonus; at most half of the parameters.", "The paper's |M1|.")
    penalty: Penalty = option(
        "sampled", "sampled (one pair of other tasks for each bonus task), or exact (the mean over all pairs)."
    )
    seed: int = option(0, "Decides, with the round's number, every draw.")

    def __post_init__(self) -> None:
        super().__post_init__()
        levels, clip = self.levels, self.clip
        check_count("levels", levels, 2, "the codes an update may have")
        if levels > 1024:
            raise BadSetting(f"levels must be at most 1024, a table of its square is made; got {levels!r}")
        if not (isinstance(clip, str) and clip == "quantile") and not (is_number(clip) and float(clip) > 0):
            raise BadSetting(
                f"clip must be a positive number, the largest update told apart, or 'quantile'; got {clip!r}"
            )
        check_count("peers", self.peers, 1, "the others a client is compared with")
        check_count("bonus", self.bonus, 1, "the parameters that earn a bonus")
        check_seed(self.seed)


class FedPCA(ConfiguredAssessor[FedPCAConfig]):
    """The sum of a client's peer-prediction scores, each in [−1, 1]. Options are those of `FedPCAConfig`."""

    method = "fed-pca"

    def _step(self, view: RoundView, state: None) -> tuple[Credits, None]:
        chosen = choose(self.config.layers, view.schema)
        start = pick(view.start, chosen)
        if self.config.clip == "quantile":
            clients: list[Client] = []

            def sizes() -> Iterator[Floats]:
                for client, model in view.uploads():
                    clients.append(client)
                    yield from chunks(pick(model, chosen), start)

            most = len(view.clients) * sum(entry.size for entry in chosen)
            bound, models = largest_share(sizes(), most, QUANTILE), view.reread(clients)
        else:
            bound, models = float(self.config.clip), view.uploads()
        codes = {
            client: np.concatenate([quantise(p, bound, self.config.levels) for p in chunks(pick(model, chosen), start)])
            for client, model in models
        }
        return ({view.number: self._credit(view.number, codes)} if len(codes) > 1 else {}), state

    def _credit(self, number: int, codes: Mapping[Client, Codes]) -> dict[Client, float]:
        size = len(next(iter(codes.values())))
        rng = np.random.default_rng([self.config.seed, number])
        bonus = rng.choice(size, min(self.config.bonus, size // 2), replace=False)
        credits = {}
        for client in codes:
            others = [other for other in codes if other != client]
            if self.config.peers < len(others):
                others = [others[place] for place in np.sort(rng.choice(len(others), self.config.peers, replace=False))]
            scores = [self._compare(codes[client], codes[other], bonus, rng) for other in others]
            credits[client] = sum(scores) / len(scores)
        return credits

    def _compare(self, first: Codes, second: Codes, bonus: Places, rng: np.random.Generator) -> float:
        half = halves(first.size, rng)
        if not len(bonus) or min(spare_tasks(half, bonus)) < 2:
            raise BadRound(
                f"Fed-PCA needs two parameters without bonus in each half of the model; {first.size} parameters, of"
                f" which {len(bonus)} earn a bonus, are too few. Choose more layers or a smaller bonus"
            )
        pairs = draw_pairs(half, bonus, rng) if self.config.penalty == "sampled" else None
        return peer_score(first, second, half, bonus, self.config.levels, pairs)
