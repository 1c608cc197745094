"""Resuming after a crash: the model to start from, and the number of finished rounds."""

from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord

from fedcoast.integrations.flower.npy_layers import record_of
from fedcoast.storage.run_folder import is_run, recorded


def resumed(folder: str | Path, arrays: ArrayRecord) -> tuple[ArrayRecord, int]:
    """The model a recording ended with and the number of its last round; the given arrays and 0 without a recording.

        arrays, done = resumed("runs/today", ArrayRecord(model.state_dict()))
        strategy = Observed(FedAvg(), CoAst(), Recorder("runs/today"))
        strategy.start(grid, initial_arrays=arrays, num_rounds=20 - done)

    The state of a server optimiser (the moments of FedAdam) is not in a recording: such a strategy starts without it.
    """
    if is_run(Path(folder)):
        for last in recorded(Path(folder), last=True):
            return record_of({name: np.asarray(array) for name, array in last.end.items()}), last.number
    return arrays, 0
