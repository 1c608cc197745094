"""Scores in MLflow: a tracking server, or a database on this machine (`mlflow ui --backend-store-uri sqlite:///…`)."""

import hashlib
import json
import time
from collections.abc import Mapping
from typing import Any

from fedcoast.errors import require
from fedcoast.integrations.trackers.tracker import Tracker
from fedcoast.methods import Assessor
from fedcoast.storage import Recorder

_BATCH = 900  # of the thousand that MLflow takes at a time
_LAST, _IDENTITY, _NAME = "fedcoast.last_round", "fedcoast.identity", "fedcoast.run"


class MLflow(Tracker):
    """Logs to a run of an experiment through MLflow's client; your active run is not touched.

    run         its name; an existing run of that name in the experiment is continued after its last step
    uri         of the tracking server, or of a database: the default is a file in this folder
    experiment  created if it does not exist
    """

    allowed = r"\w -"  # no dots: MLflow takes names for paths

    def __init__(
        self,
        assessor: Assessor,
        run: str,
        uri: str = "sqlite:///mlflow.db",
        experiment: str = "fedcoast",
        recorder: Recorder | None = None,
    ) -> None:
        super().__init__(assessor, recorder)
        for module in ("mlflow", "sqlalchemy", "alembic") if uri.startswith("sqlite:") else ("mlflow",):
            require(module, extra="mlflow")
        self.run, self.uri, self.experiment = run, uri, experiment
        self._client: Any = None
        self._run_id = ""

    def _open(self) -> int | None:
        self._client = require("mlflow.tracking", extra="mlflow").MlflowClient(tracking_uri=self.uri)
        found = self._client.get_experiment_by_name(self.experiment)
        number = self._client.create_experiment(self.experiment) if found is None else found.experiment_id
        name = hashlib.sha256(self.run.encode("utf-8", "surrogatepass")).hexdigest()  # a filter has no way to quote
        runs = self._client.search_runs([number], f"tags.`{_NAME}` = '{name}'", max_results=1)
        if not runs:
            tags = {_IDENTITY: json.dumps(self._identity()), _NAME: name}
            made = self._client.create_run(number, run_name=self.run, tags=tags)
            self._run_id = made.info.run_id
            for option, value in self._identity()["settings"].items():
                self._client.log_param(self._run_id, f"fedcoast.{option}", str(value)[:500])
            return None
        run = runs[0]
        self._check_identity(f"run {self.run!r}", json.loads(run.data.tags.get(_IDENTITY, "{}")))
        self._run_id = run.info.run_id
        self._client.update_run(self._run_id, status="RUNNING")
        return int(run.data.tags[_LAST]) if _LAST in run.data.tags else None

    def _write(self, step: int, numbers: Mapping[str, float], texts: Mapping[str, str]) -> None:
        entities, now = require("mlflow.entities", extra="mlflow"), int(time.time() * 1000)
        metrics = [entities.Metric(name, float(value), now, step) for name, value in numbers.items()]
        for first in range(0, len(metrics), _BATCH):
            self._client.log_batch(self._run_id, metrics=metrics[first : first + _BATCH])
        for name, text in texts.items():
            self._client.set_tag(self._run_id, name.replace("/", "."), text[:5000])
        self._client.set_tag(self._run_id, _LAST, str(step))  # after all else: only now this step is there

    def _end(self) -> None:
        self._client.set_terminated(self._run_id)
