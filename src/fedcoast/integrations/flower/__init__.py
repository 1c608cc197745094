"""Flower: one line to know who contributes.

    strategy = Observed(FedAvg(), CoAst())                        # around any strategy
    result = strategy.start(grid=watch(grid, CoAst()), …)         # or around the grid

docs/flower.md tells the rest. Strategies of the old API: `fedcoast.integrations.flower.legacy`.
"""
# ruff: noqa: E402

from fedcoast.errors import require

require("flwr", extra="flower")

from fedcoast.integrations.flower.ballots import BallotUpload
from fedcoast.integrations.flower.identity import Identity, Peer, introduce
from fedcoast.integrations.flower.interventions import drop_negative
from fedcoast.integrations.flower.observed import Observed
from fedcoast.integrations.flower.observed_grid import watch
from fedcoast.integrations.flower.resuming import resumed
from fedcoast.integrations.flower.ternary import TernaryFedAvg

__all__ = [
    "BallotUpload",
    "Identity",
    "Observed",
    "Peer",
    "TernaryFedAvg",
    "drop_negative",
    "introduce",
    "resumed",
    "watch",
]
