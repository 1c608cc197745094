"""Scores in TensorBoard: `tensorboard --logdir logs`."""

import os
import platform
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedcoast.errors import require
from fedcoast.integrations.trackers.progress_file import load_progress, save_progress
from fedcoast.integrations.trackers.tracker import Tracker
from fedcoast.methods import Assessor
from fedcoast.storage import Recorder


class TensorBoard(Tracker):
    """Logs to event files in a folder, a new one at every start; nothing but the tensorboard package is needed.

    folder    one for each run; TensorBoard shows all that lie below its --logdir
    """

    def __init__(self, assessor: Assessor, folder: str | Path, recorder: Recorder | None = None) -> None:
        super().__init__(assessor, recorder)
        require("tensorboard", extra="tensorboard")
        self.folder = Path(folder)
        if (progress := load_progress(self.folder, "tensorboard")) is not None:
            self._check_identity(self.folder, progress["identity"])

    def _open(self) -> int | None:
        self.folder.mkdir(parents=True, exist_ok=True)
        progress = load_progress(self.folder, "tensorboard")
        # Readers take the files of a folder in the order of their names, so a later start must have a later name.
        name = f"events.out.tfevents.{time.time():.6f}.{platform.node()}.{os.getpid()}"
        self._file = self.folder / name
        self._event(file_version="brain.Event:2")
        return None if progress is None else progress["last"]

    def _write(self, step: int, numbers: Mapping[str, float], texts: Mapping[str, str]) -> None:
        summaries = require("tensorboard.compat.proto.summary_pb2", extra="tensorboard")
        values = [summaries.Summary.Value(tag=tag, simple_value=value) for tag, value in numbers.items()]
        values += [_text(summaries, tag, text) for tag, text in texts.items()]
        self._event(step=step, summary=summaries.Summary(value=values))
        save_progress(self.folder, "tensorboard", self._identity(), step)

    def _event(self, **content: Any) -> None:
        """Written at once, not by a thread as TensorBoard's own writer does, so that an error is raised here."""
        events = require("tensorboard.compat.proto.event_pb2", extra="tensorboard")
        writers = require("tensorboard.summary.writer.record_writer", extra="tensorboard")
        with self._file.open("ab") as file:
            writers.RecordWriter(file).write(events.Event(wall_time=time.time(), **content).SerializeToString())

    def _end(self) -> None:
        pass  # no file is held open


def _text(summaries: Any, tag: str, text: str) -> Any:
    """As TensorBoard's text tab reads it."""
    tensors = require("tensorboard.compat.proto.tensor_pb2", extra="tensorboard")
    types = require("tensorboard.compat.proto.types_pb2", extra="tensorboard")
    metadata = summaries.SummaryMetadata(plugin_data=summaries.SummaryMetadata.PluginData(plugin_name="text"))
    tensor = tensors.TensorProto(dtype=types.DT_STRING, string_val=[text.encode("utf-8", "backslashreplace")])
    return summaries.Summary.Value(tag=tag, metadata=metadata, tensor=tensor)
