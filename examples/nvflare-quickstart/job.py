"""Three sites of falling quality and a free rider in FLARE's simulator, assessed by fedcoast.

    python job.py --rounds 15

The added lines are marked.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from client import FEATURES, OUTPUTS
from nvflare.app_common.np.recipes.fedavg import NumpyFedAvgRecipe
from nvflare.recipe import SimEnv

from fedcoast import Assessment
from fedcoast.integrations.nvflare import ContributionObserver, add_observer  # added

SITES = ["clean", "fair", "poor", "rider"]
HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--workspace", type=Path, default=Path("/tmp/fedcoast-nvflare"))
    parser.add_argument("--differences", action="store_true", help="sites send what changed instead of the model")
    parser.add_argument("--threads", type=int, default=len(SITES), help="sites that train at a time")
    parser.add_argument("--plain", action="store_true", help="train without fedcoast")
    options = parser.parse_args()
    recipe = NumpyFedAvgRecipe(
        name="quickstart",
        model=np.zeros((FEATURES, OUTPUTS), np.float32).tolist(),
        min_clients=len(SITES),
        num_rounds=options.rounds,
        train_script=str(HERE / "client.py"),
        train_args="--differences" if options.differences else "",
    )
    if not options.plain:
        add_observer(recipe, ContributionObserver(record_to="fedcoast-run"))  # added
    workspace = options.workspace.absolute()
    recipe.execute(SimEnv(clients=SITES, num_threads=options.threads, workspace_root=str(workspace)))
    for found in sorted(workspace.rglob("fedcoast-scores.json")):
        print(Assessment.from_json(json.dumps(json.loads(found.read_text())["assessment"])))


if __name__ == "__main__":
    main()
