"""OR: the replay of what coalitions sent, against a replay with a model for each coalition."""

from dataclasses import replace

import numpy as np
import pytest

import fixture_q
from fedcoast import Round
from fedcoast.methods import OneRound
from fedcoast.methods.coalition.games import members, shapley
from federations import federation, show, without
from fixture_q import Quadratic


def distance(model):
    return -sum(float(np.sum((np.asarray(array, dtype=np.float64) - 1) ** 2)) for array in model.values())


def replayed(rounds, utility, denominator="renormalise"):
    """The plain way: a model for each coalition, moved round by round."""
    clients = sorted({client for fl_round in rounds for client in fl_round.local})
    table = []
    for coalition in range(2 ** len(clients)):
        group = [clients[i] for i in members(coalition)]
        theta = {name: array.astype(np.float64) for name, array in rounds[0].start.items()}
        for fl_round in rounds:
            present = [client for client in group if client in fl_round.local]
            weights = fl_round.weights or dict.fromkeys(fl_round.local, 1)
            total = sum(weights[c] for c in (fl_round.local if denominator == "fixed" else present))
            for client in present:
                for name in theta:
                    theta[name] = theta[name] + weights[client] / total * (
                        fl_round.local[client][name] - fl_round.start[name]
                    )
        table.append(utility(theta))
    return dict(zip(clients, shapley(table).tolist(), strict=True))


@pytest.mark.parametrize("denominator", ["renormalise", "fixed"])
def test_whoever_takes_part_with_whatever_weight_the_replay_is_exact(denominator):
    rounds = federation(
        seed=4,
        rounds=6,
        clients=(0, 1, 2, 3),
        dtype=np.float64,
        present=lambda number, client: (number * 3 + client) % 4,
    )
    weighted = [replace(r, weights={c: 1 + (c + r.number) % 3 for c in r.local}) for r in rounds]
    for shown in (rounds, weighted):
        found = show(OneRound(distance, denominator=denominator), shown).scores
        assert found == pytest.approx(replayed(shown, distance, denominator), rel=1e-9, abs=1e-9)


def test_it_asks_once_for_each_coalition_of_the_whole_training_and_only_when_asked():
    utility = Quadratic()
    assessor = OneRound(utility)
    for fl_round in fixture_q.rounds():
        assessor.observe(fl_round)
    assert utility.calls == 0
    assert assessor.assessment() == assessor.assessment()
    assert utility.calls == assessor.evaluations == 8


def test_rounds_alike_need_one_sum_a_client_and_a_new_mix_its_own():
    rounds = federation(rounds=12)
    assessor = OneRound(distance)
    sizes = []
    for fl_round in [*rounds[:10], without(rounds[10], "bob"), rounds[11]]:
        assessor.observe(fl_round)
        sizes.append(sum(name.startswith("sum.") for name in assessor._dump_state(assessor._state)[1]))
    layers = len(rounds[0].start)
    assert sizes == [3 * layers] * 10 + [5 * layers] * 2


def test_the_credit_stands_at_the_last_round_and_is_not_final():
    answer = show(OneRound(Quadratic()), fixture_q.rounds())
    assert list(answer.credits) == [3]
    assert answer.pending == (3,)
    assert answer.credits[3] == answer.scores


def test_entries_nobody_trains_are_those_of_the_members_last_round():
    seen = {}

    def utility(model):
        seen[tuple(np.flatnonzero(model["w"]))] = (model["norm.running_mean"].tolist(), int(model["steps"]))
        return 0.0

    def model(w, mean, steps):
        return {"w": np.array(w), "norm.running_mean": np.array([mean]), "steps": np.array(steps)}

    start = model([0.0, 0.0], 0.0, 0)
    first = {"a": model([1.0, 0.0], 2.0, 1), "b": model([0.0, 1.0], 4.0, 2)}
    second = {"b": model([0.0, 1.0], 8.0, 9)}
    show(
        OneRound(utility),
        [Round(1, start=start, local=first, end=start), Round(2, start=start, local=second, end=start)],
    )
    assert seen == {(): ([0.0], 0), (0,): ([2.0], 1), (1,): ([8.0], 9), (0, 1): ([8.0], 9)}


def test_models_that_the_server_changed_between_rounds_do_not_enter_the_replay():
    rounds = list(fixture_q.rounds())
    moved = {name: array + 3 for name, array in rounds[1].start.items()}
    shifted = {c: {n: m[n] + 3 for n in m} for c, m in rounds[1].local.items()}
    jumped = [rounds[0], replace(rounds[1], start=moved, local=shifted), rounds[2]]
    here, there = show(OneRound(Quadratic()), rounds).scores, show(OneRound(Quadratic()), jumped).scores
    assert there == pytest.approx(here, abs=1e-9)
