"""A site: softmax regression on its own data. Sites differ in the share of wrong labels; `rider` trains nothing."""

import argparse

import numpy as np
import nvflare.client as flare
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType

FEATURES, CLASSES, EXAMPLES = 100, 10, 300
WRONG_LABELS = {"clean": 0.0, "fair": 0.4, "poor": 0.85}
PARAM = "numpy_key"


def site_data(site: str) -> tuple[np.ndarray, np.ndarray]:
    """Ten Gaussian classes, the same for all sites; each site has its own examples and its share of wrong labels."""
    centres = np.random.default_rng(0).standard_normal((CLASSES, FEATURES))
    rng = np.random.default_rng(sorted(WRONG_LABELS).index(site) + 1)
    labels = rng.integers(CLASSES, size=EXAMPLES)
    examples = centres[labels] + 2.0 * rng.standard_normal((EXAMPLES, FEATURES))
    wrong = rng.random(EXAMPLES) < WRONG_LABELS[site]
    labels = np.where(wrong, rng.integers(CLASSES, size=EXAMPLES), labels)
    return np.c_[examples, np.ones(EXAMPLES)], labels


def train(weights: np.ndarray, site: str, steps: int = 5, rate: float = 0.05) -> np.ndarray:
    if site == "rider":
        return weights
    examples, labels = site_data(site)
    weights = np.array(weights, np.float64)
    for _ in range(steps):
        scores = examples @ weights
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        odds /= odds.sum(axis=1, keepdims=True)
        odds[np.arange(len(labels)), labels] -= 1
        weights -= rate * examples.T @ odds / len(labels)
    return weights.astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--differences", action="store_true", help="send what changed instead of the model")
    differences = parser.parse_args().differences
    flare.init()
    site = flare.get_site_name()
    while flare.is_running():
        received = flare.receive()
        before = np.asarray(received.params[PARAM])
        after = train(before, site)
        flare.send(
            FLModel(
                params={PARAM: after - before if differences else after},
                params_type=ParamsType.DIFF if differences else ParamsType.FULL,
                meta={"NUM_STEPS_CURRENT_ROUND": 5},
            )
        )


if __name__ == "__main__":
    main()
