"""DIG-FL: how much a client's update lowers the validation loss, to first order.

    credit   φ_i^t = w_i·⟨∇L(Θ^{t−1}), Θ^{t−1} − θ_i^t⟩, w the shares of the aggregation;
             "share": max(0, ⟨…⟩) / (Σ_j max(0, ⟨…⟩_j) + 1e-5), without w
    score    φ_i = Σ_t φ_i^t

Paper: Wang, Zhang, Li, You, Cheng, "Efficient Participant Contribution Evaluation for Horizontal and Vertical Federated
Learning", ICDE 2022.
Needs: a utility with the gradient of the validation loss; no full participation.
Cost: one gradient a round, and O(rounds · clients · parameters).
Deviations: without the paper's variant with a Hessian. "raw" keeps the sign, and a round's credits add up to what
the mean of the updates gains to first order; "share" is the official code's. A zero update is worth 0 exactly.
Blind to curvature, so weak for large steps, and to redundancy.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fedcoast.errors import BadSetting, Client
from fedcoast.kernels.directions import chunks, dot
from fedcoast.methods.coalition.config import Weights
from fedcoast.methods.coalition.utility import Differentiable, Evaluator
from fedcoast.methods.configured import AssessorConfig, ConfiguredAssessor
from fedcoast.methods.ledger import Credits
from fedcoast.methods.options import option
from fedcoast.methods.updates import pick, shares
from fedcoast.rounds.arrays import Array, read
from fedcoast.rounds.round_view import RoundView
from fedcoast.rounds.schema import ModelSchema

Form = Literal["raw", "share"]


@dataclass(frozen=True, kw_only=True)
class DIGFLConfig(AssessorConfig):
    """How first-order gains become credits."""

    form: Form = option("raw", "raw (signed), or share (each round's positive part divided by its sum).")
    weights: Weights = option(
        "round",
        "Weights of the raw form: as in the round's aggregation, or uniform.",
        "Clients count the same where the round has no weights.",
    )


class DIGFL(ConfiguredAssessor[DIGFLConfig]):
    """First-order gains. Options are those of `DIGFLConfig`.

    utility  one with a method `gradient`: model -> the gradient of the validation loss, by layer name

    `evaluations` counts the gradients.
    """

    method = "dig-fl"

    def __init__(self, utility: Differentiable | Evaluator, config: DIGFLConfig | None = None, **options: Any) -> None:
        super().__init__(config, **options)
        own = Evaluator.of(utility)
        if not isinstance(own.utility, Differentiable):
            raise BadSetting(
                "dig-fl needs a utility with a method gradient(model) that gives the gradient of the validation loss by"
                f" layer name; {own.name} has none. A run of the lab has one: fedcoast.simulation.utility.utility_for"
            )
        self.utility: Differentiable = own.utility
        self.evaluations = 0
        self._name = own.name

    @property
    def settings(self) -> dict[str, Any]:
        return {"utility": self._name, **super().settings}

    def _step(self, view: RoundView, state: None) -> tuple[Credits, None]:
        schema, model = view.schema, view.start
        start = pick(model, schema.trainable)
        slopes = self._gradient(model, schema, view.number)
        gains = {
            client: dot(chunks(slopes), chunks(start, pick(local, schema.trainable)))
            for client, local in view.uploads()
        }
        if self.config.form == "share":
            return {view.number: _positive_shares(gains)}, state
        even = dict.fromkeys(gains, 1 / len(gains)) if gains else {}
        weights = shares(view, tuple(gains)) if self.config.weights == "round" else even
        return {view.number: {client: weights[client] * gain for client, gain in gains.items()}}, state

    def _gradient(self, model: dict[str, Array], schema: ModelSchema, number: int) -> list[Array]:
        gradient = self.utility.gradient(model)
        self.evaluations += 1
        slopes = []
        for entry in schema.trainable:
            if entry.name not in gradient:
                raise BadSetting(f"the utility's gradient must have every layer; {entry.name!r} is missing")
            slope, _ = read(gradient[entry.name])
            if slope.shape != entry.shape or not np.isfinite(slope).all():
                raise BadSetting(
                    f"the utility's gradient of layer {entry.name!r} must be finite and of shape {entry.shape};"
                    f" in round {number} it is of shape {slope.shape}"
                    f" with {int((~np.isfinite(slope)).sum())} entries that are not finite"
                )
            slopes.append(slope)
        return slopes


def _positive_shares(gains: Mapping[Client, float]) -> dict[Client, float]:
    """
    >>> {client: round(share, 6) for client, share in _positive_shares({"a": 3.0, "b": 1.0, "c": -5.0}).items()}
    {'a': 0.749998, 'b': 0.249999, 'c': 0.0}
    """
    positive = {client: max(0.0, gain) for client, gain in gains.items()}
    total = sum(positive.values()) + 1e-5
    return {client: gain / total for client, gain in positive.items()}
