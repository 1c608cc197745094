"""Flower: one line around a strategy assesses its clients.

    strategy = Observed(FedAvg(), CoAst())                        # around any strategy
    result = strategy.start(grid=watch(grid, coast), …)           # or around the grid

docs/flower.md has the details. Strategies of the old API: `fedcoast.integrations.flower.legacy`.
"""
# ruff: noqa: E402

from fedcoast.errors import require

require("flwr", extra="flower")

from fedcoast.integrations.flower.ballot_upload import BallotUpload
from fedcoast.integrations.flower.identity import Identity, Peer, identity_mod
from fedcoast.integrations.flower.interventions import drop_negative
from fedcoast.integrations.flower.observed import Observed
from fedcoast.integrations.flower.observed_grid import watch
from fedcoast.integrations.flower.resuming import resumed
from fedcoast.integrations.flower.ternary_fedavg import TernaryFedAvg

__all__ = [
    "BallotUpload",
    "Identity",
    "Observed",
    "Peer",
    "TernaryFedAvg",
    "drop_negative",
    "identity_mod",
    "resumed",
    "watch",
]
