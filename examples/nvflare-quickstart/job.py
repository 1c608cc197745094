"""Three sites of falling quality and a free rider in FLARE's simulator, assessed by fedcoast.

    python job.py --rounds 15

The added lines are marked.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from client import FEATURES, OUTPUTS
from nvflare.apis.dxo import DataKind
from nvflare.app_common.aggregators import InTimeAccumulateWeightedAggregator
from nvflare.app_common.np.np_model_persistor import NPModelPersistor
from nvflare.app_common.np.recipes.fedavg import NumpyFedAvgRecipe
from nvflare.app_common.shareablegenerators.full_model_shareable_generator import FullModelShareableGenerator
from nvflare.app_common.workflows.scatter_and_gather import ScatterAndGather
from nvflare.job_config.api import FedJob
from nvflare.job_config.script_runner import FrameworkType, ScriptRunner
from nvflare.recipe import SimEnv

from fedcoast import Assessment
from fedcoast.integrations.nvflare import ContributionObserver, add_observer  # added

SITES = ["clean", "fair", "poor", "rider"]
CLIENT = str(Path(__file__).parent / "client.py")


def model() -> list[list[float]]:
    return np.zeros((FEATURES, OUTPUTS), np.float32).tolist()


def fedavg_recipe(rounds: int, arguments: str) -> NumpyFedAvgRecipe:
    return NumpyFedAvgRecipe(
        name="quickstart",
        model=model(),
        min_clients=len(SITES),
        num_rounds=rounds,
        train_script=CLIENT,
        train_args=arguments,
    )


def scatter_and_gather_job(rounds: int, arguments: str, differences: bool) -> FedJob:
    """The older workflow, put together from its parts."""
    job = FedJob(name="quickstart", min_clients=len(SITES))
    kind = DataKind.WEIGHT_DIFF if differences else DataKind.WEIGHTS
    parts = {
        "persistor_id": NPModelPersistor(model=model()),
        "aggregator_id": InTimeAccumulateWeightedAggregator(expected_data_kind=kind),
        "shareable_generator_id": FullModelShareableGenerator(),
    }
    names = {role: job.to_server(part, id=role.removesuffix("_id")) for role, part in parts.items()}
    job.to_server(ScatterAndGather(min_clients=len(SITES), num_rounds=rounds, wait_time_after_min_received=0, **names))
    job.to_clients(ScriptRunner(script=CLIENT, script_args=arguments, framework=FrameworkType.NUMPY))
    return job


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--workspace", type=Path, default=Path("/tmp/fedcoast-nvflare"))
    parser.add_argument("--differences", action="store_true", help="sites send what changed instead of the model")
    parser.add_argument("--scatter-and-gather", action="store_true", help="the older workflow instead of FedAvg")
    parser.add_argument("--threads", type=int, default=len(SITES), help="sites that train at a time")
    parser.add_argument("--plain", action="store_true", help="train without fedcoast")
    options = parser.parse_args()
    workspace, arguments = options.workspace.absolute(), "--differences" if options.differences else ""
    if options.scatter_and_gather:
        job = scatter_and_gather_job(options.rounds, arguments, options.differences)
    else:
        job = fedavg_recipe(options.rounds, arguments)
    if not options.plain:
        add_observer(job, ContributionObserver(record_to="fedcoast-run"))  # added
    if options.scatter_and_gather:
        job.simulator_run(str(workspace / "quickstart"), clients=SITES, threads=options.threads)
    else:
        job.execute(SimEnv(clients=SITES, num_threads=options.threads, workspace_root=str(workspace)))
    for found in sorted(workspace.rglob("fedcoast-scores.json")):
        print(Assessment.from_json(json.dumps(json.loads(found.read_text())["assessment"])))


if __name__ == "__main__":
    main()
