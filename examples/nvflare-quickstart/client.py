"""A site: linear regression on a stream of measurements. Sites differ in the noise of their sensors.

`rider` trains nothing and sends the model back as it came.
"""

import argparse

import numpy as np
import nvflare.client as flare
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType

FEATURES, OUTPUTS, BATCH = 60, 20, 40
SENSOR_NOISE = {"clean": 1.0, "fair": 10.0, "poor": 30.0}
PARAM = "numpy_key"  # the name that FLARE gives to a model of one array
GRID = 2.0**-14  # what is sent is rounded to it, so that sums are exact, whichever site answers first


def train(weights: np.ndarray, site: str, fl_round: int, steps: int = 5, rate: float = 0.02) -> np.ndarray:
    """The site's model after a few steps on new measurements; what is measured is the same for all sites."""
    if site == "rider":
        return weights
    truth = np.random.default_rng(0).standard_normal((FEATURES, OUTPUTS))
    rng = np.random.default_rng([sorted(SENSOR_NOISE).index(site), fl_round])
    trained = np.array(weights, np.float64)
    for _ in range(steps):
        inputs = rng.standard_normal((BATCH, FEATURES))
        outputs = inputs @ truth + SENSOR_NOISE[site] * rng.standard_normal((BATCH, OUTPUTS))
        trained -= rate * inputs.T @ (inputs @ trained - outputs) / BATCH
    return np.round(trained / GRID) * GRID


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--differences", action="store_true", help="send what changed instead of the model")
    differences = parser.parse_args().differences
    flare.init()
    site = flare.get_site_name()
    while flare.is_running():
        received = flare.receive()
        before = np.asarray(received.params[PARAM])
        after = train(before, site, received.current_round)
        change = np.round((after - before) / GRID) * GRID
        flare.send(
            FLModel(
                params={PARAM: change if differences else after},
                params_type=ParamsType.DIFF if differences else ParamsType.FULL,
                meta={"NUM_STEPS_CURRENT_ROUND": 5},
            )
        )


if __name__ == "__main__":
    main()
