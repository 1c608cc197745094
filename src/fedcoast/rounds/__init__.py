"""Rounds: what a server saw in one round of federated learning."""

from fedcoast.rounds.arrays import BFloat16
from fedcoast.rounds.round import LazyModels, Round

__all__ = ["BFloat16", "LazyModels", "Round"]
