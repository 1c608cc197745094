"""Storage: everything that touches a disk: recorded runs, replay, the hash chain, spill files."""

from fedcoast.storage.recorder import Recorder
from fedcoast.storage.replay import replay
from fedcoast.storage.run_folder import read_about

__all__ = ["Recorder", "read_about", "replay"]
