"""Scores in Weights & Biases: offline, until `wandb sync` is called; online on request."""

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedcoast.errors import require
from fedcoast.integrations.trackers.progress_file import load_progress, save_progress
from fedcoast.integrations.trackers.tracker import Tracker
from fedcoast.methods import Assessor
from fedcoast.storage import Recorder


class WandB(Tracker):
    """Logs to a run of its own in a folder. Started again, it continues the same run id after its last step.

    folder    one for each run; what is to be synced lies in folder/wandb/offline-run-…
    project   of Weights & Biases
    mode      "offline" by default: nothing leaves this machine. "online" needs `wandb login`
    options   other arguments of `wandb.init`, such as name, entity, group, tags
    """

    allowed = "A-Za-z0-9_ -"

    def __init__(
        self,
        assessor: Assessor,
        folder: str | Path,
        project: str = "fedcoast",
        mode: str = "offline",
        recorder: Recorder | None = None,
        **options: Any,
    ) -> None:
        super().__init__(assessor, recorder)
        require("wandb", extra="wandb")
        self.folder, self._project, self._mode, self._options = Path(folder), project, mode, options
        self._run: Any = None
        self._id = ""
        if (progress := load_progress(self.folder, "wandb")) is not None:
            self._check_identity(self.folder, progress["identity"])

    def _open(self) -> int | None:
        self.folder.mkdir(parents=True, exist_ok=True)
        progress, wandb = load_progress(self.folder, "wandb"), require("wandb", extra="wandb")
        self._id = uuid.uuid4().hex[:8] if progress is None else str(progress["id"])
        again = {} if progress is None or self._mode == "offline" else {"resume": "allow"}
        self._run = wandb.init(
            project=self._project,
            dir=str(self.folder),
            mode=self._mode,
            id=self._id,
            config={"fedcoast": self._identity()},
            # Its messages stay out of the terminal, and the terminal's output out of its logs.
            settings=wandb.Settings(silent=True, console="off"),
            **again,
            **self._options,
        )
        return None if progress is None else progress["last"]

    def _write(self, step: int, numbers: Mapping[str, float], texts: Mapping[str, str]) -> None:
        self._run.log({**numbers, **texts}, step=step)
        save_progress(self.folder, "wandb", self._identity(), step, id=self._id)

    def _end(self) -> None:
        self._run.finish()
