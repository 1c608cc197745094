"""SpectralFed, SpectralFuse and FedCE's novelty against numbers worked out by hand and by plain matrix algebra."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from fedcoast import BadSetting, Round
from fedcoast.methods import FedCENovelty, SpectralFed, SpectralFuse

START = {"fc.weight": np.zeros((2, 2)), "fc.bias": np.zeros(2)}


def fl_round(number, weights, biases=None, start=START):
    local = {
        client: {"fc.weight": start["fc.weight"] + weight, "fc.bias": start["fc.bias"] + (biases or {}).get(client, 0)}
        for client, weight in weights.items()
    }
    return Round(number, start=start, local=local, end=start)


def observed(assessor, *rounds):
    for view in rounds:
        assessor.observe(view)
    return assessor.assessment()


def test_spectralfed_by_hand():
    # σ² = (9, 1): p = (0.9, 0.1), S = (0.9·ln(1/0.9) + 0.1·ln 10) / ln 2 = 0.4690; two equal directions: 1; one: 0.
    updates = {"two": np.eye(2), "bent": np.diag([3.0, 1.0]), "one": np.array([[1.0, 2.0], [2.0, 4.0]])}
    answer = observed(SpectralFed(), fl_round(1, updates))
    assert answer.credits[1] == pytest.approx({"two": 1.0, "bent": 0.4689956, "one": 0.0}, abs=1e-7)
    assert answer.scores == pytest.approx({"two": 1 / 1.4689956, "bent": 0.4689956 / 1.4689956, "one": 0.0}, abs=1e-7)


def test_spectralfed_remembers_nine_tenths():
    first = fl_round(1, {"a": np.eye(2), "b": np.eye(2)})
    second = fl_round(2, {"a": np.eye(2), "b": np.ones((2, 2))})
    scores = observed(SpectralFed(), first, second).scores
    assert scores["b"] / scores["a"] == pytest.approx(0.9)


def test_a_head_that_is_no_matrix_is_refused_by_name():
    flat = {"w": np.zeros(3)}
    view = Round(1, start=flat, local={"a": flat}, end=flat)
    with pytest.raises(BadSetting, match=r"layers"):
        SpectralFed().observe(view)


def test_spectralfuse_is_the_filter_of_the_textbook():
    rng = np.random.default_rng(5)
    names = ["a", "b", "c", "d"]
    rounds = [
        fl_round(n, {c: rng.normal(size=(2, 2)) for c in names}, {c: rng.normal(size=2) for c in names})
        for n in range(1, 5)
    ]
    found = observed(SpectralFuse(), *rounds).scores

    state, variance, trust = np.full(4, 0.25), np.ones(4), np.zeros(2)
    entropy = aligned = None
    for view in rounds:
        weights = [np.asarray(view.local[c]["fc.weight"]) for c in names]
        rows = [np.column_stack([w, view.local[c]["fc.bias"]]) for c, w in zip(names, weights, strict=True)]
        now = []
        for matrix in weights:
            shares = np.linalg.svd(matrix, compute_uv=False) ** 2
            shares = shares / shares.sum()
            now.append(-(shares * np.log(shares)).sum() / np.log(2))
        common = sum(x * own for x, own in zip(state, rows, strict=True))
        near = [
            np.mean([(1 + own[k] @ common[k] / np.linalg.norm(own[k]) / np.linalg.norm(common[k])) / 2 for k in (0, 1)])
            for own in rows
        ]
        entropy = np.array(now) if entropy is None else 0.9 * entropy + 0.1 * np.array(now)
        aligned = np.array(near) if aligned is None else 0.9 * aligned + 0.1 * np.array(near)
        measured = np.array([entropy / entropy.sum(), aligned / aligned.sum()])
        for which in (0, 1):
            rho = 0.0 if len(set(state)) == 1 else spearmanr(measured[which], state).statistic
            trust[which] = 0.9 * trust[which] + 0.1 * rho
        noise, look = np.diag(1 - trust + 1e-3), np.ones((2, 1))
        for client in range(4):
            predicted = np.array([[variance[client] + 1e-4]])
            gain = predicted @ look.T @ np.linalg.inv(look @ predicted @ look.T + noise)
            state[client] += (gain @ (measured[:, client] - state[client])).item()
            variance[client] = ((np.eye(1) - gain @ look) @ predicted).item()
    assert [found[c] for c in names] == pytest.approx(state.tolist(), rel=1e-9)


def test_fedce_novelty_by_hand():
    # Δ_a = (1,0,…), Δ_b = (1,0,…), Δ_c = (0,1,…): cos of a with b + c is 1/√2, of c with a + b is 0.
    east, north = np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 1.0], [0.0, 0.0]])
    answer = observed(FedCENovelty(), fl_round(1, {"a": east, "b": east, "c": north}))
    novelty = {"a": 1 - 2**-0.5, "b": 1 - 2**-0.5, "c": 1.0}
    assert answer.credits[1] == pytest.approx(novelty)
    assert answer.scores == pytest.approx({c: own / sum(novelty.values()) for c, own in novelty.items()})


def test_fedce_weighs_others_by_the_round_before():
    rng = np.random.default_rng(2)
    rounds = [fl_round(n, {c: rng.normal(size=(2, 2)) for c in "abc"}) for n in (1, 2)]
    mean, weights = dict.fromkeys("abc", 0.0), dict.fromkeys("abc", 1.0)
    for count, view in enumerate(rounds, 1):
        flat = {c: np.asarray(view.local[c]["fc.weight"]).ravel() for c in "abc"}
        for client, own in flat.items():
            others = sum(weights[c] * flat[c] for c in "abc" if c != client)
            near = own @ others / np.linalg.norm(own) / np.linalg.norm(others)
            mean[client] += (near - mean[client]) / count
        weights = {client: max(1e-6, 1 - mean[client]) for client in "abc"}
    assert observed(FedCENovelty(), *rounds).scores == pytest.approx(
        {c: own / sum(weights.values()) for c, own in weights.items()}
    )


def test_noise_is_novel_which_is_why_novelty_is_no_merit():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(2, 2))
    updates = {f"honest {i}": common + 0.1 * rng.normal(size=(2, 2)) for i in range(4)}
    answer = observed(FedCENovelty(), fl_round(1, {**updates, "reversed": -common}))
    assert answer.ranking[0] == "reversed"
