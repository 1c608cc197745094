"""Fed-PCA as the public CoAst research code computes it, for reproducing that paper's table, faults included.

    codes    ⌊255·(θ − min θ/(max θ − min θ))⌋ of the client's own parameters, cut to 0 … 255
    bonus    the first 1000 parameters; halves are the first and the second half of the model
    score    Σ_t Q_i^t against all peers, as Fed-PCA has it, but codes that are equal never count as correlated

Paper: the "PCA" column of Wu et al., "CoAst", ACM MM 2024, table 1; code: github.com/2016312357/CoAst,
src/baseline_analyze_pca.py.
Needs: the clients' uploads; no validation data. A round of one client is undefined and gives no credit.
Cost: O(rounds · clients² · (parameters + 256²)); holds a round's codes, one byte a client and parameter.
Deviations: from Fed-PCA in four ways, each a slip of that code: parameters instead of updates; a bracket closed too
late, so that 255·(max − min) codes are used, on each client's own scale; equal codes skipped; sets meant to be
shuffled and not. Where a model's first half holds no more than 1000 parameters that code stops with an error; here
half of that half earns the bonus. To compare methods, use `FedPCA`.
"""

from dataclasses import dataclass

import numpy as np

from fedcoast.errors import BadRound
from fedcoast.kernels.ballots import Floats
from fedcoast.kernels.peer_prediction import CHUNK, Codes, draw_pairs, peer_score
from fedcoast.methods.configured import AssessorConfig, ConfiguredAssessor
from fedcoast.methods.ledger import Credits
from fedcoast.methods.option_checks import check_seed
from fedcoast.methods.options import option
from fedcoast.methods.updates import pick
from fedcoast.rounds.arrays import arithmetic
from fedcoast.rounds.round_view import RoundView

LEVELS = 256
BONUS = 1000


@dataclass(frozen=True, kw_only=True)
class FedPCAResearchCodeConfig(AssessorConfig):
    """Where the draws of the penalty come from."""

    seed: int = option(0, "Decides, with the round's number, the pairs of the penalty.")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seed(self.seed)


class FedPCAResearchCode(ConfiguredAssessor[FedPCAResearchCodeConfig]):
    """The sum of the scores of that code."""

    method = "fed-pca-research-code"

    def _step(self, view: RoundView, state: None) -> tuple[Credits, None]:
        layers = view.schema.trainable
        codes = {
            client: research_codes([arithmetic(array) for array in pick(model, layers)])
            for client, model in view.uploads()
        }
        size = sum(entry.size for entry in layers)
        if size < 4:
            raise BadRound(f"the model needs at least four parameters; got {size}")
        if len(codes) < 2:
            return {}, state
        first_half = size // 2
        bonus = np.arange(BONUS if first_half > BONUS else first_half // 2)
        half = np.repeat(np.array([0, 1], dtype=np.uint8), [first_half, size - first_half])
        rng = np.random.default_rng([self.config.seed, view.number])
        credits = {}
        for client, own in codes.items():
            scores = [
                peer_score(own, theirs, half, bonus, LEVELS, draw_pairs(half, bonus, rng, apart=False), diagonal=False)
                for other, theirs in codes.items()
                if other != client
            ]
            credits[client] = sum(scores) / len(scores)
        return {view.number: credits}, state


def research_codes(model: list[Floats]) -> Codes:
    """The codes of one client's parameters, with the bracket where that code has it, in the parameters' own type.

    >>> research_codes([np.array([-0.1, 0.0, 0.1, 0.2])]).tolist()
    [59, 85, 110, 136]
    """
    least = min(layer.min() for layer in model)
    most = max(layer.max() for layer in model)
    codes = np.empty(sum(layer.size for layer in model), np.uint8)
    at = 0
    with np.errstate(over="ignore", divide="ignore"):
        slip = least / (least.dtype.type(1e-20) + most - least)
        for layer in model:
            flat = layer.reshape(-1)
            for first in range(0, flat.size, CHUNK):
                shifted = (LEVELS - 1) * (flat[first : first + CHUNK] - slip)
                codes[at : at + shifted.size] = np.clip(shifted, 0, LEVELS - 1)
                at += shifted.size
    return codes
