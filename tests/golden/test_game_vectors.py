"""Games, coalition models and data volumes, against numbers computed by independent scripts at full precision."""

import numpy as np
import pytest

import fixture_q
from fedcoast import Round
from fedcoast.kernels.completion import complete
from fedcoast.methods import (
    DIGFL,
    METHODS,
    ComFedSV,
    FedSV,
    LeaveOneOut,
    MultiRound,
    OneRound,
    Shapley,
)
from fedcoast.methods.coalition.games import (
    banzhaf,
    beta_shapley,
    beta_weights,
    individual,
    leave_one_out,
    lookup,
    members,
    shapley,
    tabulate,
)
from fedcoast.methods.coalition.least_core_program import least_core
from fedcoast.methods.coalition.sampling import tmc
from fixture_q import CLIENTS, Quadratic, as_vector
from paper.research_code import mean_of_inner_marginals
from volume import information_gain, pooled, rho_rewards, robust_volume

CLOSE = {"rtol": 0, "atol": 6e-11}  # the vectors have ten decimals

# Fixture G. Coalitions by bits: ∅, 1, 2, 12, 3, 13, 23, 123.
G = np.array([0.10, 0.50, 0.45, 0.70, 0.30, 0.62, 0.55, 0.80])


def test_shapley_of_the_abstract_game():
    np.testing.assert_allclose(shapley(G), [0.3116666667, 0.2516666667, 0.1366666667], **CLOSE)


def test_leave_one_out_of_the_abstract_game():
    np.testing.assert_allclose(leave_one_out(lookup(G), 3), [0.25, 0.18, 0.10], **CLOSE)


def test_individual_worths_of_the_abstract_game():
    np.testing.assert_allclose(individual(lookup(G), 3, "none"), [0.5, 0.45, 0.3], **CLOSE)
    np.testing.assert_allclose(individual(lookup(G), 3), [0.4, 0.35, 0.2], **CLOSE)


def test_banzhaf_of_the_abstract_game():
    np.testing.assert_allclose(banzhaf(G), [0.305, 0.245, 0.13], **CLOSE)


BETA = {
    (1, 1): ([0.3116666667, 0.2516666667, 0.1366666667], [0.3333333333, 0.3333333333, 0.3333333333]),
    (4, 1): ([0.3593333333, 0.3053333333, 0.1693333333], [0.6666666667, 0.2666666667, 0.0666666667]),
    (16, 1): ([0.3869934641, 0.3358169935, 0.1899346405], [0.8888888889, 0.1045751634, 0.0065359477]),
    (1, 16): ([0.2546405229, 0.1858169935, 0.1016993464], [0.0065359477, 0.1045751634, 0.8888888889]),
}


@pytest.mark.parametrize(("alpha", "beta"), BETA)
def test_beta_shapley_of_the_abstract_game(alpha, beta):
    values, by_size = BETA[alpha, beta]
    np.testing.assert_allclose(beta_shapley(G, alpha, beta), values, **CLOSE)
    np.testing.assert_allclose(np.array(beta_weights(3, alpha, beta)) * [1, 2, 1], by_size, **CLOSE)


def test_what_the_research_code_makes_of_the_abstract_game():
    np.testing.assert_allclose(mean_of_inner_marginals(G), [0.285, 0.225, 0.11], **CLOSE)


@pytest.mark.parametrize(("tolerance", "expected"), [(0, (0.325, 0.225, 0.15)), (0.15, (0.325, 0.225, 0.10))])
def test_truncated_orders_of_the_abstract_game(tolerance, expected):
    np.testing.assert_allclose(tmc(lookup(G), 3, [(0, 1, 2), (2, 1, 0)], tolerance), expected, **CLOSE)


def test_a_guided_sweep_of_the_abstract_game():
    np.testing.assert_allclose(tmc(lookup(G), 3, [(0, 2, 1), (1, 0, 2), (2, 1, 0)]), [0.30, 0.26, 0.14], **CLOSE)


@pytest.mark.parametrize(
    ("normalise", "expected", "subsidy"), [(False, (0.35, 0.30, 0.15), 0.15), (True, (0.315, 0.265, 0.12), 0.085)]
)
def test_the_least_core_of_the_abstract_game(normalise, expected, subsidy):
    payments, found = least_core(dict(enumerate(G)), 3, normalise=normalise)
    assert found == pytest.approx(subsidy, abs=6e-11)
    np.testing.assert_allclose(payments, expected, rtol=0, atol=3e-10)  # the vectors' own solver stops at 2e-10


Q = {
    "u": {
        "theta": [0.2333333333, 0.35, 1.0208333333, -0.1458333333],
        "global": [-2.44, -1.3925, -1.020625, -0.87265625],
        "per round": [
            [1.2382291667, 0.8679166667, -1.0586458333],
            [0.9055208333, 0.5952083333, -1.1288541667],
            [0.7771354167, 0.4968229167, -1.1259895833],
        ],
        "total": [2.9208854167, 1.9599479167, -3.3134895833],
        "mr": [8.8691182909, 5.7867408439, -11.6558591348],
        "λ-mr": [7.8235304941, 5.110377587, -10.2240330811],
        "or": [2.8052604167, 2.3974479167, -3.6353645833],
        "retrained": [1.8178580729, 1.4220572917, -1.6725716146],
        "retrained loo": [1.0294921875, 0.470859375, -0.7998046875],
        "loo": [1.7614583333, 0.8320833333, -1.9072916667],
        "dig-fl per round": [
            [0.9, 0.65, -0.3],
            [0.5286111111, 0.3319444444, -0.4380555556],
            [0.3935416667, 0.2235416667, -0.4564583333],
        ],
        "dig-fl": [1.8221527778, 1.2054861111, -1.1945138889],
        "dig-fl shares": [
            [0.5806439126, 0.4193539369, 0.0],
            [0.6142648899, 0.3857312367, 0.0],
            [0.6377413221, 0.3622532761, 0.0],
        ],
    },
    "n": {
        "theta": [0.590625, 0.175, 1.3671875, -0.4921875],
        "global": [-2.44, -0.8779296875, -0.401904296875, -0.24014404296875],
        "per round": [
            [1.337496014, 0.877261639, -0.6526873406],
            [0.7792794032, 0.4625215907, -0.7657756032],
            [0.5764235391, 0.3314040079, -0.7460672931],
        ],
        "total": [2.6931989563, 1.6711872376, -2.1645302369],
        "mr": [6.0567307785, 3.5819697804, -6.6387005589],
        "λ-mr": [5.3460701992, 3.1669546179, -5.803149817],
        "or": [3.322479356, 2.5817957623, -3.7044191612],
        "retrained": [1.871159668, 1.4411450195, -1.1124487305],
        "retrained loo": [0.63285400390625, 0.00579345703125, -0.18280029296875],
        "loo": [1.2135351562, 0.0002929687, -0.5144232302],
        "dig-fl per round": [
            [1.35, 0.73125, -0.1125],
            [0.5158398438, 0.2141455078, -0.1522900391],
            [0.2512646484, 0.0699719238, -0.1340588379],
        ],
        "dig-fl": [2.1171044922, 1.0153674316, -0.398848877],
        "dig-fl shares": [
            [0.5806439126, 0.4193539369, 0.0],
            [0.6436957157, 0.356298045, 0.0],
            [0.7292216262, 0.2707638627, 0.0],
        ],
    },
}


def assess(assessor, rounds):
    for fl_round in rounds:
        assessor.observe(fl_round)
    return assessor.assessment()


def scores(assessment):
    return [assessment.scores[client] for client in CLIENTS]


def credits(assessment):
    return [[of[client] for client in CLIENTS] for of in assessment.credits.values()]


@pytest.mark.parametrize("weights", Q)
def test_the_quadratic_federation_itself(weights):
    shown, utility = list(fixture_q.rounds(weights)), Quadratic()
    np.testing.assert_allclose(as_vector(shown[-1].end), Q[weights]["theta"], **CLOSE)
    worths = [utility(shown[0].start), *(utility(fl_round.end) for fl_round in shown)]
    np.testing.assert_allclose(worths, Q[weights]["global"], **CLOSE)


@pytest.mark.parametrize("weights", Q)
@pytest.mark.parametrize("method", [Shapley, FedSV])
def test_shapley_round_by_round(method, weights):
    assessment = assess(method(Quadratic()), fixture_q.rounds(weights))
    np.testing.assert_allclose(credits(assessment), Q[weights]["per round"], **CLOSE)
    np.testing.assert_allclose(scores(assessment), Q[weights]["total"], **CLOSE)


@pytest.mark.parametrize("weights", Q)
def test_shares_of_the_rounds_gains(weights):
    plain = assess(MultiRound(Quadratic()), fixture_q.rounds(weights))
    decayed = assess(METHODS["lambda-multi-round"].make(Quadratic()), fixture_q.rounds(weights))
    np.testing.assert_allclose(scores(plain), Q[weights]["mr"], **CLOSE)
    np.testing.assert_allclose(scores(decayed), Q[weights]["λ-mr"], **CLOSE)


@pytest.mark.parametrize("weights", Q)
def test_the_replay_of_recorded_updates(weights):
    np.testing.assert_allclose(
        scores(assess(OneRound(Quadratic()), fixture_q.rounds(weights))), Q[weights]["or"], **CLOSE
    )


@pytest.mark.parametrize("weights", Q)
def test_leaving_one_out_of_each_round(weights):
    np.testing.assert_allclose(
        scores(assess(LeaveOneOut(Quadratic()), fixture_q.rounds(weights))), Q[weights]["loo"], **CLOSE
    )


@pytest.mark.parametrize("weights", Q)
def test_first_order_gains(weights):
    raw = assess(DIGFL(Quadratic()), fixture_q.rounds(weights))
    share = assess(DIGFL(Quadratic(), form="share"), fixture_q.rounds(weights))
    np.testing.assert_allclose(credits(raw), Q[weights]["dig-fl per round"], **CLOSE)
    np.testing.assert_allclose(scores(raw), Q[weights]["dig-fl"], **CLOSE)
    np.testing.assert_allclose(credits(share), Q[weights]["dig-fl shares"], **CLOSE)


@pytest.mark.parametrize("weights", Q)
def test_retraining_by_coalitions(weights):
    utility = Quadratic()

    def worths(coalitions):
        return [utility(fixture_q.retrained(weights, [CLIENTS[i] for i in members(c)])) for c in coalitions]

    np.testing.assert_allclose(shapley(tabulate(worths, 3)), Q[weights]["retrained"], **CLOSE)
    np.testing.assert_allclose(leave_one_out(worths, 3), Q[weights]["retrained loo"], **CLOSE)


@pytest.mark.parametrize(
    ("denominator", "expected"),
    [("renormalise", (1.0223726852, 0.6801851852, -0.3995023148)), ("fixed", (0.7569444444, 0.5461111111, 0.0))],
)
def test_a_client_that_changes_nothing(denominator, expected):
    first = next(fixture_q.rounds("u", idle=["c3"]))
    assessment = assess(Shapley(Quadratic(), denominator=denominator), [first])
    np.testing.assert_allclose(scores(assessment), expected, **CLOSE)
    if denominator == "fixed":
        assert assessment.scores["c3"] == 0  # not nearly: its bits are no other's


# Fixture F: what coalitions gain in three rounds, of rank one, and who was heard in which.
GAINS = np.outer([1.0, 0.6, 0.3], [0.0, 0.30, 0.20, 0.45, 0.10, 0.36, 0.27, 0.50])
PRESENT = [(0, 1, 2), (0, 1), (1, 2)]
OBSERVED = [[1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0, 0], [1, 0, 1, 0, 1, 0, 1, 0]]  # columns by bits


def partial_rounds():
    """Rounds in which each client's update marks an entry of its own, so that a model tells its coalition."""
    for number, present in enumerate(PRESENT):
        start = np.array([0.0, 0.0, 0.0, float(number)])
        local = {f"c{i + 1}": {"w": start + np.eye(4)[i]} for i in present}
        yield Round(number + 1, start={"w": start}, local=local, end={"w": start})


def gain(model):
    return float(GAINS[int(model["w"][3]), sum(int(model["w"][i] > 0) << i for i in range(3))])


def test_completion_finds_the_matrix_of_rank_one():
    mask = np.array(OBSERVED, dtype=bool)
    assert [[all(player in present for player in members(c)) for c in range(8)] for present in PRESENT] == mask.tolist()
    completed = complete(np.where(mask, GAINS, np.nan)[:, 1:], rank=1, ridge=1e-6)
    assert np.abs(completed - GAINS[:, 1:]).max() < 3e-6
    np.testing.assert_allclose(sum(map(shapley, GAINS)), [0.497167, 0.316667, 0.136167], rtol=0, atol=5e-7)


def test_values_under_partial_participation():
    completed = assess(ComFedSV(gain, rank=1, ridge=1e-6), partial_rounds())
    np.testing.assert_allclose(scores(completed), [0.4971660586, 0.316666607, 0.1361645773], rtol=0, atol=3e-6)
    present = assess(FedSV(gain), partial_rounds())
    np.testing.assert_allclose(scores(present), [0.4266666667, 0.3271666667, 0.0971666667], **CLOSE)


X = [
    np.array([(0, 0), (1, 0.2), (0.4, 1.1), (1.2, 1.3)]),
    np.array([(0.1, 0.1), (0.9, 0.3), (0.2, 0.9)]),
    np.array([(0.5, 0.5)] * 3),
]


def test_robust_volume():
    game = [robust_volume(pooled(X, coalition), cell=0.5) for coalition in range(8)]
    np.testing.assert_allclose([game[1], game[2], game[4]], [1.8483510859, 0.8337567737, 0.0001111], **CLOSE)
    assert game[7] == pytest.approx(2.8657634717, abs=6e-11)
    np.testing.assert_allclose(shapley(game), [1.9077241613, 0.89138847, 0.0666508404], **CLOSE)


def test_information_gain():
    game = [information_gain(pooled(X, coalition), prior=1, noise=0.25) for coalition in range(8)]
    np.testing.assert_allclose([game[1], game[2], game[4]], [2.109930292, 1.422919592, 0.9729550745], **CLOSE)
    assert game[7] == pytest.approx(2.5377318866, abs=6e-11)
    values = shapley(game)
    np.testing.assert_allclose(values, [1.343634239, 0.7588957186, 0.435201929], **CLOSE)
    np.testing.assert_allclose(
        rho_rewards(values, game[7], rho=0.5), [2.5377318866, 1.9072000828, 1.4442773864], **CLOSE
    )
    np.testing.assert_allclose(
        rho_rewards(values, game[7], rho=1.0), [2.5377318866, 1.4333319351, 0.8219690898], **CLOSE
    )
