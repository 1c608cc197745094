"""What observing a FLARE job costs: seconds a round of the server, with FLARE's own aggregation beside it.

Ten sites send a model of ten million float32 parameters. Events are fired by hand, so that neither network nor training
is measured. Needs `fedcoast[nvflare]`.

    python -m benchmarks.nvflare [--smoke]
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import ReservedKey
from nvflare.apis.fl_context import FLContext, FLContextManager
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.aggregators.weighted_aggregation_helper import WeightedAggregationHelper
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.app_common.utils.fl_model_utils import FLModelUtils

from benchmarks.record import keep
from fedcoast.integrations.nvflare import ContributionObserver

LAYERS = {"conv.weight": (512, 512, 3, 3), "fc1.weight": (4096, 1024), "fc2.weight": (1024, 3344), "fc2.bias": (1024,)}


def run(smoke: bool) -> None:
    sites, rounds = (3, 2) if smoke else (10, 5)
    with tempfile.TemporaryDirectory() as folder:
        alone, observed = measure(Path(folder), sites, rounds + 2)
    figures = {
        "sites": sites,
        "rounds": rounds,
        "aggregation_seconds": round(statistics.median(alone[2:]), 3),
        "observer_seconds": round(statistics.median(observed[2:]), 3),
    }
    print(figures)
    if not smoke:
        keep("nvflare-overhead", "python -m benchmarks.nvflare", figures)


def measure(folder: Path, sites: int, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of FLARE's aggregation and of the observer's handlers, round by round."""
    workspace = SimpleNamespace(get_run_dir=lambda job_id: str(folder))
    engine = SimpleNamespace(get_workspace=lambda: workspace, fire_event=lambda event, fl_ctx: None)
    manager = FLContextManager(
        engine=engine, identity_name="server", job_id="job", public_stickers={}, private_stickers={}
    )
    observer = ContributionObserver()
    spent = 0.0

    def fire(event: str, peer: str | None = None, **props: object) -> None:
        nonlocal spent
        with manager.new_context() as fl_ctx:
            for name, value in props.items():
                fl_ctx.set_prop(getattr(AppConstants, name), value, private=True, sticky=False)
            if peer is not None:
                other = FLContext()
                other.set_prop(ReservedKey.IDENTITY_NAME, peer, private=False, sticky=False)
                fl_ctx.set_peer_context(other)
            began = time.perf_counter()
            observer.handle_event(event, fl_ctx)
            spent += time.perf_counter() - began

    fire(EventType.START_RUN)
    model = {name: np.zeros(shape, np.float32) for name, shape in LAYERS.items()}
    alone, observed = [], []
    for number in range(rounds):
        spent, aggregating = 0.0, 0.0
        rng = np.random.default_rng(number)
        sent = FLModelUtils.to_shareable(FLModel(params=model, params_type=ParamsType.FULL, current_round=number))
        fire(AppEventType.BEFORE_TRAIN_TASK, TRAIN_SHAREABLE=sent)
        helper = WeightedAggregationHelper()
        for site in range(sites):
            params = {name: a + rng.standard_normal(a.shape, np.float32) for name, a in model.items()}
            began = time.perf_counter()
            helper.add(params, 1, f"site-{site}", number)
            aggregating += time.perf_counter() - began
            result = FLModelUtils.to_shareable(FLModel(params=params, params_type=ParamsType.FULL))
            fire(AppEventType.AFTER_CONTRIBUTION_ACCEPT, f"site-{site}", TRAINING_RESULT=result)
        began = time.perf_counter()
        model = helper.get_result()
        aggregating += time.perf_counter() - began
        fire(AppEventType.AFTER_AGGREGATION, AGGREGATION_RESULT=FLModel(params=model, params_type=ParamsType.FULL))
        alone.append(aggregating)
        observed.append(spent)
    return alone, observed


if __name__ == "__main__":
    run("--smoke" in sys.argv)
