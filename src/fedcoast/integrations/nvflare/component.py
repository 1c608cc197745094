"""A server component that observes rounds through FLARE's events; it does not change aggregation or training.

| event | what it gives |
|---|---|
| BEFORE_TRAIN_TASK | the global model that a site is sent (once for each site) |
| AFTER_CONTRIBUTION_ACCEPT | one site's upload, whole or as a difference, and whether it was aggregated |
| AFTER_AGGREGATION | the aggregated model of FedAvg, whole or as a difference |
| AFTER_SHAREABLE_TO_LEARNABLE | the new global model of ScatterAndGather |
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import Any

from nvflare.apis.analytix import AnalyticsDataType
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLMetaKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.utils.analytix_utils import create_analytic_dxo, send_analytic_dxo
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.abstract.model import ModelLearnableKey
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.app_common.utils.fl_model_utils import FLModelUtils

from fedcoast.errors import BadSetting, Client, printable, shortened
from fedcoast.integrations.named_log import NamedLog
from fedcoast.integrations.nvflare.results import write_results
from fedcoast.integrations.observer_hub import Metrics, ObserverHub
from fedcoast.integrations.round_capture import ClientUpload, RoundCapture, add_difference
from fedcoast.methods import METHODS
from fedcoast.rounds.arrays import read
from fedcoast.rounds.schema import NORMALISATION_STATISTICS, Model
from fedcoast.storage import Recorder

_log = NamedLog(__name__)

ENDS_OF_ROUND = (AppEventType.AFTER_AGGREGATION, AppEventType.AFTER_SHAREABLE_TO_LEARNABLE)


class ContributionObserver(FLComponent):  # type: ignore[misc]  # FLARE is not typed
    """Assesses the sites of a FedAvg or ScatterAndGather job. All options are plain values, as a job's JSON has them.

    method          the method's name, such as "coast" (`fedcoast.METHODS`)
    options         the method's options, such as {"keep": 0.2}
    record_to       a folder to record the rounds in; a relative path lies in the job's workspace. None: no recording
    results         the file that scores are written to after each round; a relative path lies in the job's workspace
    tensorboard_to  a folder for TensorBoard, written by fedcoast's own tracker
    buffers         patterns of layers that are not trained
    """

    def __init__(
        self,
        method: str = "coast",
        options: Mapping[str, Any] | None = None,
        record_to: str | None = None,
        results: str = "fedcoast-scores.json",
        tensorboard_to: str | None = None,
        buffers: Sequence[str] = NORMALISATION_STATISTICS,
    ) -> None:
        super().__init__()
        if method not in METHODS:
            raise BadSetting(f"method must be one of {', '.join(sorted(METHODS))}; got {method!r}")
        self.method, self.options = method, dict(options or {})
        METHODS[method].make(**self.options)  # so that a wrong option fails here, not in the middle of a job
        self.record_to, self.results, self.tensorboard_to = record_to, results, tensorboard_to
        self.buffers = list(buffers)
        self._hub: ObserverHub | None = None
        self._folder = Path()
        self._lock = RLock()
        self._forget_round()

    def _forget_round(self) -> None:
        self._start: Model | None = None
        self._uploads: dict[Client, ClientUpload] = {}
        self._rejections: dict[Client, str] = {}
        self._flare_round = 0

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """FLARE calls this for every event; failures here never reach the job."""
        handler = {
            EventType.START_RUN: self._open,
            AppEventType.BEFORE_TRAIN_TASK: self._on_task,
            AppEventType.AFTER_CONTRIBUTION_ACCEPT: self._on_upload,
            AppEventType.AFTER_AGGREGATION: self._on_aggregation,
            AppEventType.AFTER_SHAREABLE_TO_LEARNABLE: self._on_new_model,
            EventType.END_RUN: self._close,
        }.get(event_type)
        if handler is None:
            return
        with self._lock:
            try:
                handler(fl_ctx)
            except Exception as error:
                problem = shortened(f"{type(error).__name__}: {error}")
                _log.warning("event %s was not observed (%s)", event_type, printable(problem))
                if event_type in ENDS_OF_ROUND:
                    self._miss(f"the new global model cannot be read ({problem})")

    def _open(self, fl_ctx: FLContext) -> None:
        workspace = fl_ctx.get_engine().get_workspace()
        self._folder = Path(workspace.get_run_dir(fl_ctx.get_job_id()))
        assessor = METHODS[self.method].make(**self.options)
        recorder = None if self.record_to is None else Recorder(self._folder / self.record_to, ledger=assessor)
        observer = assessor
        if self.tensorboard_to is not None:
            from fedcoast.integrations.trackers import TensorBoard

            observer = TensorBoard(assessor, self._folder / self.tensorboard_to, recorder)
        self._hub = ObserverHub([observer] if recorder is None else [observer, recorder], self.buffers)

    def _on_task(self, fl_ctx: FLContext) -> None:
        model = FLModelUtils.from_shareable(fl_ctx.get_prop(AppConstants.TRAIN_SHAREABLE))
        number = model.current_round or 0
        if self._start is not None and number != self._flare_round:
            self._miss("the round before ended without a new global model")
        if self._start is None:
            self._start, self._flare_round = _layers(model.params), number

    def _miss(self, reason: str) -> None:
        """Note that the current round was not seen whole, and start again with the next one."""
        if self._hub is not None and self._start is not None:
            capture = RoundCapture(self._start, self._uploads, None, self._rejections)
            self._hub.explain_failure(self._hub.number(self._flare_round + 1), capture, reason)
        self._forget_round()

    def _on_upload(self, fl_ctx: FLContext) -> None:
        site = fl_ctx.get_peer_context().get_identity_name()
        shareable = fl_ctx.get_prop(AppConstants.TRAINING_RESULT)
        if shareable is None or not fl_ctx.get_prop(AppConstants.AGGREGATION_ACCEPTED, True):
            self._rejections[site] = "FLARE did not accept the upload for aggregation; its log says why"
            return
        try:
            model = FLModelUtils.from_shareable(shareable)
            params = _layers(model.params)
        except Exception as error:
            self._rejections[site] = f"the upload cannot be read ({type(error).__name__}: {error})"
            return
        self._uploads[site] = ClientUpload(
            load=lambda: params,
            weight=(model.meta or {}).get(FLMetaKey.NUM_STEPS_CURRENT_ROUND),
            is_difference=model.params_type == ParamsType.DIFF,
        )

    def _on_aggregation(self, fl_ctx: FLContext) -> None:
        result = fl_ctx.get_prop(AppConstants.AGGREGATION_RESULT)
        if isinstance(result, FLModel) and self._start is not None:
            params = _layers(result.params)
            if result.params_type == ParamsType.DIFF:
                params = add_difference(self._start, params)
            self._publish(fl_ctx, {**self._start, **params})  # layers that were left out keep their value

    def _on_new_model(self, fl_ctx: FLContext) -> None:
        learnable = fl_ctx.get_prop(AppConstants.GLOBAL_MODEL)
        if learnable is not None and self._start is not None:
            self._publish(fl_ctx, _layers(learnable[ModelLearnableKey.WEIGHTS]))

    def _publish(self, fl_ctx: FLContext, end: Model) -> None:
        if self._hub is None or self._start is None:
            return
        capture = RoundCapture(self._start, self._uploads, end, self._rejections)
        flare_round = self._flare_round
        self._forget_round()
        number = self._hub.number(flare_round + 1)  # FLARE counts from 0
        metrics = self._hub.publish(number, capture)
        self._report(fl_ctx, number, metrics)

    def _report(self, fl_ctx: FLContext, number: int, metrics: Metrics) -> None:
        """Scores to the log, to FLARE's metric receivers (TensorBoard, MLflow, W&B) and to the results file."""
        if self._hub is None:
            return
        prefix = f"fedcoast/{self.method}/score/"
        scores = {key.removeprefix(prefix): value for key, value in metrics.items() if key.startswith(prefix)}
        self.log_info(fl_ctx, f"fedcoast round {number}: scores so far {scores}")
        if scores:
            tag = f"fedcoast/{self.method}/score"
            dxo = create_analytic_dxo(tag, scores, AnalyticsDataType.SCALARS, global_step=number)
            send_analytic_dxo(self, dxo, fl_ctx)
        for answer in self._hub.answers().values():
            write_results(self._folder / self.results, answer, self._hub.unobserved)

    def _close(self, fl_ctx: FLContext) -> None:
        for observer in () if self._hub is None else self._hub.observers.values():
            if isinstance(observer, Recorder) or hasattr(observer, "close"):
                observer.close()


def _layers(params: Mapping[str, Any] | None) -> dict[str, object]:
    """The layers of a model; those that FLARE left on disk are loaded. References only: FLARE replaces arrays."""
    layers: dict[str, object] = {}
    for name, value in (params or {}).items():
        materialize = getattr(value, "materialize", None)
        layers[str(name)] = materialize() if callable(materialize) else value
    for value in layers.values():
        read(value)
    return layers
