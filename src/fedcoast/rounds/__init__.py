"""Rounds: what a server saw, shown live, recorded to a folder, replayed from one."""

from fedcoast.rounds.arrays import BFloat16
from fedcoast.rounds.folder import read_about
from fedcoast.rounds.recording import Recorder
from fedcoast.rounds.replaying import replay
from fedcoast.rounds.round import LazyModels, Round

__all__ = ["BFloat16", "LazyModels", "Recorder", "Round", "read_about", "replay"]
