"""Flower: one line to know who contributes.

    strategy = Observed(FedAvg(), CoAst())                        # around any strategy
    result = strategy.start(grid=watch(grid, CoAst()), …)         # or around the grid

docs/flower.md tells the rest. Strategies of the old API: `fedcoast.flower.legacy`.
"""
# ruff: noqa: E402

from fedcoast.errors import require

require("flwr", extra="flower")

from fedcoast.flower.acting import drop_negative
from fedcoast.flower.ballots import BallotUpload
from fedcoast.flower.identity import Identity, Peer, introduce
from fedcoast.flower.observed import Observed
from fedcoast.flower.resuming import resumed
from fedcoast.flower.tap import watch
from fedcoast.flower.ternary import TernaryFedAvg

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
