"""FedCE's novelty against FLARE's own aggregator, whose other half is held equal for all sites."""

import numpy as np
import pytest
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_opt.pt.fedce import FedCEConstants, FedCEModelAggregator

from fedcoast import METHODS, Round

SITES = ("clean", "fair", "poor", "still")


def updates(number):
    rng, way = np.random.default_rng([2, number]), np.random.default_rng(1).standard_normal((6, 4))
    return {
        site: (scale * (way + noise * rng.standard_normal((6, 4)))).astype(np.float32)
        for site, scale, noise in zip(SITES, (0.1, 0.2, 0.1, 0.0), (0.1, 1.0, 4.0, 0.0), strict=True)
    }


def test_the_scores_are_the_weights_of_flares_own_aggregator_after_every_round():
    flare, ours = FedCEModelAggregator(mode="times"), METHODS["fedce-novelty"].make()
    start = {"w": np.zeros((6, 4), np.float32)}
    for number in range(1, 7):
        sent = updates(number)
        for site, update in sent.items():
            meta = {"client_name": site, FedCEConstants.MINUS_MODEL_SCORE: 1.0}
            flare.accept_model(FLModel(params={"w": update}, params_type=ParamsType.DIFF, meta=meta))
        weights = flare.aggregate_model().meta[FedCEConstants.CONTRIBUTION_WEIGHTS]
        flare.reset_stats()
        ours.observe(
            Round(number, start=start, local={site: {"w": update} for site, update in sent.items()}, end=start)
        )
        assert ours.assessment().scores == pytest.approx(weights, rel=1e-5)
    assert max(weights, key=weights.get) == "still"
