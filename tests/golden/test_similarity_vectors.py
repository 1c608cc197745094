"""CGSV, ShapFed and plain cosines on fixture A, against numbers computed by independent scripts."""

from dataclasses import replace

import numpy as np
import pytest

import fixture_a
from fedcoast import Round
from fedcoast.kernels.directions import chunks, cosine_game, gram, sparsity
from fedcoast.methods import CGSV, Cosine, ShapFed
from fedcoast.methods.similarity.shapfed import class_cosines
from fixture_a import CLIENTS, as_vector
from paper.research_code import CGSVResearchCode

# The numbers are printed with ten decimals.
PRINTED = {"rtol": 0, "atol": 5.0e-11 + 1e-12}

PHI = [
    (0.9226362666, 0.9115112224, -0.6953955242),
    (0.8813413781, 0.878015122, -0.7981369622),
    (0.9041044765, 0.9017370892, -0.7856788745),
    (0.8893667411, 0.8864585945, -0.7154896013),
]
REPUTATION = [
    (0.4976067288, 0.4916066428, 0.0107866284),
    (0.5023652655, 0.4966626531, 0.0009720813),
    (0.502179925, 0.4968588772, 0.0009611978),
    (0.5020216052, 0.497015818, 0.0009625768),
]
SPARSITY = {
    0.5: (1.0, 0.9884172806, 0.0221222568),
    1.0: (1.0, 0.9896960423, 0.0234364171),
    2.0: (1.0, 0.9932553946, 0.028397282),
}
EXACT = (0.6917817649, 0.5704602889, -0.2622420539)
COSINE_SUMS = (3.1876843767, 2.9190168811, -1.3059454237)
COSINE_SUMS_OF_THE_RESEARCH_CODE = (2.3650130007, 1.9988967343, -0.7894237208)

CLASS_COSINES = [
    [(0.8426855528, 0.781190289), (0.9950961443, 0.7629314389), (-0.6137323312, -0.2397481475)],
    [(0.8541985556, 0.4994929054), (0.5027146935, 0.9573663423), (-0.2108185107, -0.4963153886)],
]
GAMMA = [(0.8119379209, 0.8790137916, -0.4267402393), (0.7984287019, 0.8641164642, -0.4194229104)]
AUTHORS_SHARES = [(0.6422484989, 0.6953059755, -0.3375544744), (0.6422768945, 0.6951178456, -0.3373947401)]

SAMPLES = dict(zip(CLIENTS, (3, 2, 1), strict=True))


def rounds(weights=SAMPLES):
    return [replace(fl_round, weights=weights) for fl_round in fixture_a.rounds("observer")]


def as_classifier(model):
    """The fixture read as W = [[0, 1], [2, 3]], b = (4, 5)."""
    vector = as_vector(model)
    return {"head.weight": vector[:4].reshape(2, 2), "head.bias": vector[4:]}


def classifier_rounds():
    for fl_round in fixture_a.rounds("observer"):
        local = {client: as_classifier(model) for client, model in fl_round.local.items()}
        yield Round(fl_round.number, as_classifier(fl_round.start), local, as_classifier(fl_round.end))


def of(mapping):
    return [mapping[client] for client in CLIENTS]


def test_cgsv_credits_are_the_cosines_with_the_common_update():
    assessor = CGSV(clip_norm=0.5, momentum=0.95)
    for fl_round in rounds():
        assessor.observe(fl_round)
    credits = assessor.assessment().credits
    np.testing.assert_allclose([of(credits[number]) for number in (1, 2, 3, 4)], PHI, **PRINTED)


def test_cgsv_scores_are_the_reputations_after_every_round():
    assessor = CGSV(clip_norm=0.5, momentum=0.95)
    for fl_round, expected in zip(rounds(), REPUTATION, strict=True):
        assessor.observe(fl_round)
        np.testing.assert_allclose(of(assessor.assessment().scores), expected, **PRINTED)


@pytest.mark.parametrize("altruism", SPARSITY)
def test_cgsv_rewards_a_reputation_with_a_share_of_the_update(altruism):
    assessor = CGSV()
    assessor.observe(rounds()[0])
    shares = sparsity(of(assessor.assessment().scores), altruism)
    np.testing.assert_allclose(shares, SPARSITY[altruism], **PRINTED)


def test_exact_cgsv_is_the_shapley_value_of_the_cosine_game():
    assessor = CGSV(game="exact")
    assessor.observe(rounds()[0])
    np.testing.assert_allclose(of(assessor.assessment().credits[1]), EXACT, **PRINTED)


def test_the_cosine_game_from_dot_products_alone():
    first = rounds()[0]
    start = list(first.start.values())
    updates = [list(first.local[client].values()) for client in CLIENTS]
    norms = np.sqrt(np.diag(gram([chunks(update, start) for update in updates]))) + 1e-7
    products = gram([chunks(update, start) for update in updates]) * 0.25 / norms[:, None] / norms[None, :]
    np.testing.assert_allclose(cosine_game(products, [3 / 6, 2 / 6, 1 / 6]), EXACT, **PRINTED)


@pytest.mark.parametrize("reference", ["mean", "movement"])
def test_plain_cosine_sums(reference):
    assessor = Cosine(reference=reference)
    for fl_round in rounds(weights=None):
        assessor.observe(fl_round)
    np.testing.assert_allclose(of(assessor.assessment().scores), COSINE_SUMS, **PRINTED)


def test_cgsv_of_the_research_code_is_the_cosine_sum_without_the_first_round():
    assessor = CGSVResearchCode()
    for fl_round in rounds():
        assessor.observe(fl_round)
    assessment = assessor.assessment()
    np.testing.assert_allclose(of(assessment.scores), COSINE_SUMS_OF_THE_RESEARCH_CODE, **PRINTED)
    assert list(assessment.credits) == [2, 3, 4]


def test_shapfed_class_by_class():
    for fl_round, expected in zip(classifier_rounds(), CLASS_COSINES, strict=False):
        updates = {
            client: np.column_stack([model[name] - fl_round.start[name] for name in ("head.weight", "head.bias")])
            for client, model in fl_round.local.items()
        }
        table = class_cosines(updates, dict.fromkeys(CLIENTS, 1 / 3))
        np.testing.assert_allclose([table[client] for client in CLIENTS], expected, **PRINTED)


def test_shapfed_scores_are_the_moving_average_over_classes():
    assessor = ShapFed(momentum=0.9, weighting="uniform")
    for fl_round, gamma, shares in zip(classifier_rounds(), GAMMA, AUTHORS_SHARES, strict=False):
        assessor.observe(fl_round)
        scores = np.array(of(assessor.assessment().scores))
        np.testing.assert_allclose(scores, gamma, **PRINTED)
        # The authors' shares go below zero with γ; ours are for the common update alone, and stop at 0.
        np.testing.assert_allclose(scores / scores.sum(), shares, **PRINTED)
