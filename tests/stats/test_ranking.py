import numpy as np
import pytest
from scipy import stats

from fedcoast.stats.ranking import average_ranks, paper_ranks, spearman

TRUTH = (5, 4, 3, 2, 1)
SCORES = (0.9, 0.7, 0.7, 0.1, 0.3)


def test_the_reference_vector():
    assert average_ranks(SCORES).tolist() == [1, 2.5, 2.5, 5, 4]
    assert paper_ranks(SCORES) == [1, 3, 3, 5, 4]
    assert spearman(TRUTH, SCORES) == pytest.approx(0.8720815992723809, abs=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_ranks_and_correlation_are_those_of_scipy(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 30))
    first, second = (rng.integers(-3, 4, size=size).astype(float) for _ in range(2))
    assert average_ranks(first).tolist() == stats.rankdata(-first, method="average").tolist()
    assert paper_ranks(first) == stats.rankdata(-first, method="max").tolist()
    if len(set(first)) > 1 and len(set(second)) > 1:
        assert spearman(first, second) == pytest.approx(stats.spearmanr(first, second).statistic, abs=1e-12)


def test_ranks_by_the_papers_definition():
    scores = [3, -1, 3, 0, 7, 0, 0]
    assert paper_ranks(scores) == [sum(other >= score for other in scores) for score in scores]


def test_alike_is_one_and_reversed_is_minus_one():
    assert spearman(TRUTH, TRUTH) == pytest.approx(1)
    assert spearman(TRUTH, TRUTH[::-1]) == pytest.approx(-1)


@pytest.mark.parametrize(
    ("first", "second"), [([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [0, 0, 0]), ([1, 1], [2, 2]), ([1], [1]), ([], [])]
)
def test_a_constant_ranking_correlates_with_nothing(first, second):
    assert np.isnan(spearman(first, second))


def test_only_the_order_of_the_scores_matters():
    assert spearman(TRUTH, SCORES) == spearman(TRUTH, [1e300 * score for score in SCORES])
    assert spearman(TRUTH, SCORES) == spearman(np.exp(TRUTH), SCORES)


def test_rankings_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="got 2 and 3"):
        spearman([1, 2], [1, 2, 3])


def test_infinite_scores_have_ranks():
    assert paper_ranks([float("-inf"), 0, float("inf")]) == [3, 2, 1]


def test_an_unknown_score_never_ranks_first_and_correlates_with_nothing():
    unknown = float("nan")
    assert paper_ranks([0, unknown, 1]) == [2, 3, 1]
    assert average_ranks([0, unknown, 1]).tolist() == [2, 3, 1]
    assert np.isnan(spearman([1, 2, 3], [1, unknown, 3]))
    assert np.isnan(spearman([unknown, 2, 3], [1, 2, 3]))
