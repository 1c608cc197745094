"""CoAst's default: ballots against the ballots of the other clients, against an independent calculation."""

from dataclasses import replace

import numpy as np
import pytest

from fedcoast import BadFile, BadSetting, CoAst, Recorder, Round, replay
from fedcoast.kernels.ballots import ballot
from fedcoast.methods.coast import pair_credits
from fedcoast.storage.tensors import read_tensors, write_tensors
from federations import federation, show
from paper import research_code

ROUNDS = federation(seed=5, rounds=9, clients=("ann", "bob", "cid", 7))
SOME = federation(
    seed=6,
    rounds=9,
    clients=("ann", "bob", "cid", 7),
    present=lambda n, c: (n * 7 + len(str(c))) % 3 != 0 or c == "ann",
)
KEEP = 0.3


def ballots_of(fl_round):
    return {
        client: np.concatenate(
            [
                ballot(np.asarray(model[name] - fl_round.start[name]), KEEP).reshape(-1).astype(int)
                for name in fl_round.start
            ]
        )
        for client, model in fl_round.local.items()
    }


def by_hand(rounds, horizon, past_weight):
    """The formula of `pair_credits`, spelled out."""
    cast = [ballots_of(fl_round) for fl_round in rounds]
    votes = max(int(np.abs(one).sum()) for of in cast for one in of.values())
    credits = [dict.fromkeys(of, 0.0) for of in cast]
    for earlier in range(len(rounds)):
        for later in range(earlier + 1, min(earlier + horizon, len(rounds) - 1) + 1):
            table = {(i, j): int(a @ b) for i, a in cast[earlier].items() for j, b in cast[later].items() if i != j}
            ahead = {i: [v for (a, _), v in table.items() if a == i] for i in cast[earlier]}
            past = {j: [v for (_, b), v in table.items() if b == j] for j in cast[later]}
            means = {i: np.mean(of) if of else 0.0 for i, of in ahead.items()}
            weight = np.mean([max(mean, 0) for mean in means.values()]) / votes / horizon
            for i in cast[earlier]:
                credits[earlier][i] += weight * means[i]
            for j in cast[later]:
                credits[later][j] -= past_weight * weight * (np.mean(past[j]) if past[j] else 0.0)
    return {fl_round.number: of for fl_round, of in zip(rounds[:-horizon], credits, strict=False)}


@pytest.mark.parametrize("rounds", [ROUNDS, SOME], ids=["all take part", "some take part"])
@pytest.mark.parametrize("horizon", [1, 2, 3])
def test_credits_are_those_of_the_formula(rounds, horizon):
    answer = show(CoAst(keep=KEEP, horizon=horizon, line_weight=0), rounds)
    expected = by_hand(rounds, horizon, 0.42)
    assert answer.credits.keys() == expected.keys()
    for number, of in expected.items():
        assert answer.credits[number] == pytest.approx(of, abs=1e-9)


def test_a_client_that_repeats_itself_gains_nothing_by_it():
    """One vector in every round: whatever it is, its own next ballot is not among those it is compared with."""
    rng = np.random.default_rng(0)
    push = {name: rng.normal(size=array.shape).astype(array.dtype) for name, array in ROUNDS[0].start.items()}
    steered = [
        replace(r, local={**r.local, "rider": {name: r.start[name] + 5 * push[name] for name in push}}) for r in ROUNDS
    ]
    answer = show(CoAst(keep=KEEP, line_weight=0), steered)
    alone = [{"rider": r.local["rider"]} for r in steered]
    nobody_else = show(CoAst(keep=KEEP), [replace(r, local=of) for r, of in zip(steered, alone, strict=True)])
    assert nobody_else.scores == {"rider": 0}
    assert answer.scores["rider"] < np.median(list(answer.scores.values()))


@pytest.mark.parametrize("make", [CoAst, CoAst.votes, CoAst.paper, research_code.coast])
def test_a_weight_that_a_client_claims_never_multiplies_its_score(make):
    """What the server makes of the weight is in the models after the round, which are the same here."""
    claimed = [replace(r, weights={c: 20.0 if c == "cid" else 1.0 for c in r.clients}) for r in ROUNDS]
    assert show(make(), claimed).scores == show(make(), [replace(r, weights=None) for r in ROUNDS]).scores


def test_an_idle_client_scores_zero_and_changes_no_order_and_no_share():
    idle = [replace(r, local={**r.local, "idle": dict(r.start)}) for r in ROUNDS]
    with_it, without = show(CoAst(keep=KEEP), idle).scores, show(CoAst(keep=KEEP), ROUNDS).scores
    assert with_it["idle"] == 0
    ratios = {client: with_it[client] / without[client] for client in without}
    assert np.ptp(list(ratios.values())) < 1e-9


def test_factors_change_with_later_rounds_and_lasting_credits_do_not():
    assessor, seen = CoAst(keep=KEEP), {}
    for fl_round in federation(seed=8, rounds=12, clients=tuple("abcdef")):
        assessor.observe(fl_round)
        answer = assessor.assessment()
        for number, of in seen.items():
            assert answer.lasting_credits[number] == of
        seen = {number: dict(of) for number, of in answer.lasting_credits.items()}
    sums = {client: sum(of.get(client, 0) for of in answer.credits.values()) for client in answer.clients}
    assert answer.scores == pytest.approx(sums)
    factors = {
        c: answer.credits[3][c] / answer.lasting_credits[3][c] for c in answer.clients if answer.lasting_credits[3][c]
    }
    assert len(set(np.round(list(factors.values()), 9))) > 1


def test_a_record_of_credits_agrees_whatever_came_later(tmp_path):
    from fedcoast.audit import verify

    assessor = CoAst(keep=KEEP)
    with Recorder(tmp_path / "run", ledger=assessor) as recorder:
        for fl_round in ROUNDS:
            assessor.observe(fl_round)
            recorder.observe(fl_round)
    assert verify(tmp_path / "run").agrees


def test_ballots_alone_give_the_same_answer(tmp_path):
    with Recorder(tmp_path / "run", ballot_keep=KEEP) as recorder:
        for fl_round in ROUNDS:
            recorder.observe(fl_round)
    assert show(CoAst(keep=KEEP), replay(tmp_path / "run")).scores == show(CoAst(keep=KEEP), ROUNDS).scores


def test_layers_add_up_to_the_score():
    answer = show(CoAst(keep=KEEP, track_layers=True), ROUNDS)
    for client, row in answer.by_layer.agreement.items():
        assert row.sum() == pytest.approx(answer.scores[client])


def test_a_restored_assessor_goes_on_with_its_layers(tmp_path):
    assessor = CoAst(keep=KEEP)
    show(assessor, ROUNDS[:4])
    assessor.save(tmp_path / "state")
    tracking = CoAst(keep=KEEP, track_layers=True)
    tracking.restore(tmp_path / "state")
    assert show(tracking, ROUNDS[4:]) == show(CoAst(keep=KEEP), ROUNDS)


def altered(name, change):
    def change_state(tensors, header):
        tensors[name] = change(tensors[name])

    return change_state


@pytest.mark.parametrize(
    "change",
    [
        altered("pairs.4", lambda array: array[:1]),
        altered("pairs.4", lambda array: array.astype(np.float32)),
        altered("pairs.weighted.0", lambda array: array[:1]),
        lambda tensors, header: tensors.pop("pairs.weights.1"),
        lambda tensors, header: header["facts"].pop("pairs"),
        lambda tensors, header: header["facts"]["pairs"].update(clients=[]),
    ],
)
def test_an_altered_state_is_refused(tmp_path, change):
    assessor = CoAst(keep=KEEP)
    show(assessor, ROUNDS[:4])
    assessor.save(tmp_path / "state")
    tensors, header = read_tensors(tmp_path / "state")
    tensors = {name: np.array(array) for name, array in tensors.items()}
    change(tensors, header)
    write_tensors(tmp_path / "state", {n: (array, array.dtype.name) for n, array in tensors.items()}, header)
    with pytest.raises(BadFile):
        CoAst(keep=KEEP).restore(tmp_path / "state")


def test_a_large_round_compares_each_client_with_some_of_the_others(monkeypatch):
    monkeypatch.setattr(pair_credits, "MOST_COMPARED", 4)
    crowd = federation(seed=2, rounds=4, clients=tuple(range(24)))
    assessor = CoAst(keep=KEEP)
    first = show(assessor, crowd)
    (table,) = assessor.pair_tables
    assert not table.compared.diagonal().any()
    assert 2 < table.compared.sum(axis=1).mean() < 6
    turned = [Round(r.number, r.start, dict(reversed(r.local.items())), r.end) for r in crowd]
    assert show(CoAst(keep=KEEP), turned).scores == pytest.approx(first.scores)


def test_too_many_clients_have_no_line(monkeypatch):
    monkeypatch.setattr(pair_credits, "MOST_ON_A_LINE", 3)
    assert show(CoAst(keep=KEEP), ROUNDS) == replace(
        show(CoAst(keep=KEEP, line_weight=0), ROUNDS), settings=CoAst(keep=KEEP).assessment().settings
    )


@pytest.mark.parametrize("weight", [-1, 101, float("nan"), "7", True])
def test_a_line_weight_that_is_none_is_refused(weight):
    with pytest.raises(BadSetting, match=r"line_weight must lie in \[0, 100\]"):
        CoAst(line_weight=weight)


@pytest.mark.parametrize("signal", ["pruned", "parameters"])
def test_signals_that_say_something_of_every_entry_are_not_compared_with_ballots(signal):
    with pytest.raises(BadSetting, match='use reference="movement"'):
        CoAst(signal=signal)
