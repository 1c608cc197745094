"""Fed-PCA on fixture A with given splits: h=2, X=0.4, A={0,1,2}, B={3,4,5}, M1={0,3}, all peers."""

import numpy as np
import pytest

import fixture_a
from fedcoast.kernels.directions import chunks
from fedcoast.kernels.peer_prediction import aggregation_weights, peer_score, quantise
from fixture_a import CLIENTS

CODES = {
    1: [[1, 0, 1, 1, 1, 0], [1, 1, 0, 1, 1, 1], [0, 1, 1, 0, 0, 1]],
    2: [[1, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1], [1, 1, 0, 0, 0, 0]],
}
EXACT_PENALTY = {1: (0.25, 0.0, 0.5), 2: (0.125, 0.25, 0.125)}
GIVEN_PENALTY = {1: (0.25, 0.0, 0.5), 2: (0.0, 0.5, 0.0)}
HALF = np.array([0, 0, 0, 1, 1, 1], dtype=np.uint8)
BONUS = np.array([0, 3])
PAIRS = (np.array([1, 4]), np.array([2, 5]))


def codes(number):
    fl_round = next(fl_round for fl_round in fixture_a.rounds("observer") if fl_round.number == number)
    start = list(fl_round.start.values())
    return [
        np.concatenate([quantise(piece, 0.4, 2) for piece in chunks(list(fl_round.local[client].values()), start)])
        for client in CLIENTS
    ]


@pytest.mark.parametrize("number", [1, 2])
def test_codes_of_two_levels_are_signs(number):
    assert [code.tolist() for code in codes(number)] == CODES[number]


@pytest.mark.parametrize(("pairs", "expected"), [(None, EXACT_PENALTY), (PAIRS, GIVEN_PENALTY)])
@pytest.mark.parametrize("number", [1, 2])
def test_scores_are_the_mean_over_all_peers(number, pairs, expected):
    own = codes(number)
    scores = [
        np.mean([peer_score(own[i], own[j], HALF, BONUS, 2, pairs) for j in range(3) if j != i]) for i in range(3)
    ]
    np.testing.assert_allclose(scores, expected[number], atol=1e-12)


def test_aggregation_weights():
    weights = aggregation_weights([0.5, 0.25, -0.25], sharpness=10)
    np.testing.assert_allclose(weights, [0.9236697062, 0.0758194266, 0.0005108673], rtol=0, atol=5.1e-11)
