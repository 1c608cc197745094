"""Fed-PCA: what it rewards, what it cannot see, and the research code's version of it."""

from itertools import permutations

import numpy as np
import pytest

from fedcoast import BadRound, BadSetting, Round
from fedcoast.kernels.peer_prediction import draw_pairs
from fedcoast.methods import FedPCA
from federations import federation, show, with_upload, without
from paper.research_code import FedPCAResearchCode
from paper.research_code.fed_pca import research_codes

WIDE = {"w": (60, 50)}
CLIENTS = ("ann", "bob", "cid", "dan")


def wide(noise, rounds=2, seed=0):
    """A common direction, and each client's own share of noise in its update."""
    rng = np.random.default_rng(seed)
    start = {"w": rng.normal(size=(60, 50)).astype(np.float32)}
    shown = []
    for number in range(1, rounds + 1):
        way = rng.normal(size=(60, 50))
        local = {
            client: {
                "w": (start["w"] + 0.1 * ((1 - share) * way + share * rng.normal(size=(60, 50)))).astype(np.float32)
            }
            for client, share in noise.items()
        }
        shown.append(Round(number, start, local, start))
    return shown


NOISY = {"clean": 0.0, "better": 0.3, "worse": 0.6, "random": 1.0}


@pytest.mark.parametrize("penalty", ["sampled", "exact"])
def test_the_more_noise_the_lower_the_score(penalty):
    answer = show(FedPCA(penalty=penalty), wide(NOISY))
    assert set(answer.ranking[:2]) == {"clean", "better"}
    assert answer.ranking[2:] == ("worse", "random")
    assert abs(answer.scores["random"]) < 0.1  # free-riders who send noise get nothing: what it was made for


def test_a_sign_flip_goes_unseen():
    shown = wide(NOISY)
    flipped = [with_upload(r, "clean", {"w": r.start["w"] - (r.local["clean"]["w"] - r.start["w"])}) for r in shown]
    straight, turned = show(FedPCA(penalty="exact"), shown), show(FedPCA(penalty="exact"), flipped)
    assert turned.scores["clean"] == pytest.approx(straight.scores["clean"], abs=0.05)


def test_the_exact_penalty_is_what_drawn_ones_average_to():
    shown = wide(NOISY, rounds=1)
    exact = np.mean([list(show(FedPCA(penalty="exact", seed=s), shown).scores.values()) for s in range(6)], axis=0)
    drawn = np.mean([list(show(FedPCA(seed=s), shown).scores.values()) for s in range(6)], axis=0)
    np.testing.assert_allclose(drawn, exact, atol=0.04)


@pytest.mark.parametrize("make", [FedPCA, FedPCAResearchCode])
def test_a_round_of_one_client_is_undefined_and_gives_no_credit(make):
    first, second = wide(NOISY)
    answer = show(make(), [without(first, "better", "worse", "random"), second])
    assert list(answer.credits) == [2]
    assert answer.rounds_scored == dict.fromkeys(answer.clients, 1)


def test_a_zero_update_is_correlated_with_nothing():
    shown = [with_upload(fl_round, "better", fl_round.start) for fl_round in wide(NOISY)]
    assert show(FedPCA(), shown).scores["better"] == 0


def test_where_nobody_moves_nobody_scores():
    shown = [with_upload(with_upload(r, "ann", r.start), "bob", r.start) for r in federation(clients=("ann", "bob"))]
    assert show(FedPCA(), shown).scores == {"ann": 0, "bob": 0}


def test_peers_are_drawn_where_there_are_more_than_asked_for():
    shown = wide(NOISY)
    assert show(FedPCA(peers=1), shown).scores != show(FedPCA(peers=3), shown).scores
    assert show(FedPCA(peers=3), shown).scores == show(FedPCA(peers=50), shown).scores


def test_a_number_may_stand_for_the_quantile():
    shown = wide(NOISY, rounds=1)
    sizes = np.concatenate(
        [np.abs(m["w"].astype(float) - shown[0].start["w"].astype(float)).ravel() for m in shown[0].local.values()]
    )
    assert show(FedPCA(clip=float(np.quantile(sizes, 0.999))), shown).credits == show(FedPCA(), shown).credits


def test_draws_depend_on_the_seed_and_the_round_alone():
    first, second = wide(NOISY)
    assert show(FedPCA(), [second]).credits[2] == show(FedPCA(), [first, second]).credits[2]
    assert show(FedPCA(seed=1), [first]).credits != show(FedPCA(seed=2), [first]).credits


def test_a_model_too_small_to_split_is_refused():
    tiny = federation(layers={"w": (6,)}, rounds=1)
    with pytest.raises(BadRound, match="6 parameters, of which 3 earn a bonus, are too few"):
        show(FedPCA(), tiny)
    with pytest.raises(BadRound, match="1 parameters, of which 0 earn a bonus"):
        show(FedPCA(), federation(layers={"w": (1,)}, rounds=1))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"levels": 1}, "levels must be an integer of at least 2"),
        ({"levels": 2000}, "levels must be at most 1024"),
        ({"clip": 0}, "clip must be a positive number.* or 'quantile'; got 0"),
        ({"clip": "big"}, "clip must be a positive number"),
        ({"peers": 0}, "peers must be an integer of at least 1"),
        ({"bonus": 1.5}, "bonus must be an integer of at least 1"),
        ({"penalty": "mean"}, "penalty must be one of 'sampled', 'exact'"),
        ({"seed": -1}, "seed must be an integer of at least 0"),
    ],
)
def test_options_say_what_they_may_be(options, text):
    with pytest.raises(BadSetting, match=text):
        FedPCA(**options)


def transcribed(params, pairs, first_bonus):
    """`src/baseline_analyze_pca.py` of github.com/2016312357/CoAst, one round, with its random choices given."""
    bins = 256
    codes = []
    for param in params:
        param = (bins - 1) * (param - param.min() / (np.float32(1e-20) + param.max() - param.min()))
        codes.append(np.clip(param, 0, bins - 1).astype(int))
    index = list(range(len(codes[0])))
    m1 = set(index[:first_bonus])
    a, b = set(index[: len(index) // 2]), set(index[len(index) // 2 :])

    def delta(x, y, half):
        table = np.zeros((bins, bins))
        seen_x, seen_y = ([{t for t in half if z[t] == level} for level in range(bins)] for z in (x, y))
        used = [(i, j) for i, j in permutations(sorted({x[t] for t in half} | {y[t] for t in half}), 2)]
        for i, j in used:
            joint = len(seen_x[i] & seen_y[j]) / len(half)
            table[i, j] = joint - len(seen_x[i]) / len(half) * len(seen_y[j]) / len(half)
        return table

    scores = []
    for i in range(len(codes)):
        score = 0
        for j in range(len(codes)):
            if i == j:
                continue
            of_b = delta(codes[i], codes[j], b)
            assert not m1 & b
            for p, q, r in zip(sorted(m1 & a), *pairs[i, j], strict=True):
                score += int(of_b[codes[i][p], codes[j][p]] > 0) - int(of_b[codes[i][q], codes[j][r]] > 0)
        scores.append(score / ((len(codes) - 1) * len(m1)))
    return scores


def test_the_research_codes_version_is_a_transcript_of_it():
    rng = np.random.default_rng(7)
    start = {"a": rng.normal(scale=0.1, size=40).astype(np.float32), "b": rng.normal(size=(20, 3)).astype(np.float32)}
    local = {
        c: {n: (v + rng.normal(scale=0.05, size=v.shape)).astype(np.float32) for n, v in start.items()}
        for c in range(3)
    }
    answer = show(FedPCAResearchCode(seed=4), [Round(9, start, local, start)])
    half = np.repeat(np.array([0, 1], dtype=np.uint8), [50, 50])
    draws = np.random.default_rng([4, 9])
    order = [(i, j) for i in range(3) for j in range(3) if i != j]
    pairs = {pair: draw_pairs(half, np.arange(25), draws, apart=False) for pair in order}
    params = [np.concatenate([local[c]["a"], local[c]["b"].ravel()]) for c in range(3)]
    np.testing.assert_allclose(list(answer.scores.values()), transcribed(params, pairs, 25), atol=1e-12)


def test_the_bracket_of_the_research_code_uses_few_codes():
    weights = np.random.default_rng(0).uniform(-0.1, 0.1, size=10_000).astype(np.float32)
    assert 45 <= len(np.unique(research_codes([weights]))) <= 55
    assert set(research_codes([np.full(3, 0.25, dtype=np.float32)])) == {0}  # max = min: 0.25/0 is infinite
    assert set(research_codes([np.zeros(3, dtype=np.float32)])) == {0}


def test_the_research_code_has_a_thousand_bonus_tasks_where_the_first_half_holds_more():
    shown = wide(NOISY, rounds=1)  # 3000 parameters: the first half holds 1500
    denominators = {round(credit * 3 * 1000, 6) % 1 for credit in show(FedPCAResearchCode(), shown).credits[1].values()}
    assert denominators == {0}
    with pytest.raises(BadRound, match="at least four parameters; got 3"):
        show(FedPCAResearchCode(), federation(layers={"w": (3,)}, rounds=1))
