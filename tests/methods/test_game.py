"""What all methods that play rounds as games have in common."""

from dataclasses import replace

import numpy as np
import pytest

from fedcoast import BadSetting, Round
from fedcoast.methods import METHODS
from federations import federation, show, with_upload, without

PLAYERS = [name for name, method in METHODS.items() if "utility" in method.needs]
EXHAUSTIVE = [
    "shapley", "shapley-research-code", "fedsv", "comfedsv", "multi-round", "lambda-multi-round", "one-round",
    "banzhaf", "beta-shapley", "least-core",
]  # fmt: skip


class Towards:
    """Minus the squared distance from where the clients of `federation` are heading, which the first follows best."""

    def __init__(self, rounds):
        first = rounds[0]
        lead = first.clients[0]
        self.best = {
            name: 5 * (first.local[lead][name] - first.start[name]) + first.start[name] for name in first.start
        }

    def __call__(self, model):
        return -sum(float(np.sum((model[name] - best) ** 2, dtype=np.float64)) for name, best in self.best.items())


def scores(name, rounds, **options):
    return show(METHODS[name].make(Towards(rounds), **options), rounds).scores


@pytest.mark.parametrize("name", PLAYERS)
def test_sampled_client_ids_are_names_and_no_places(name):
    """A rival crashes on ids that are not 0…N−1 or 1…N; ours may be anything, in any order."""
    plain = federation(clients=(0, 1, 2, 3), rounds=3)
    renamed = [replace(r, local={(2, 5, 7, 9)[client]: model for client, model in r.local.items()}) for r in plain]
    expected = scores(name, plain)
    assert scores(name, renamed) == {2: expected[0], 5: expected[1], 7: expected[2], 9: expected[3]}


@pytest.mark.parametrize("name", PLAYERS)
def test_clients_that_come_and_go_are_valued(name):
    rounds = federation(
        clients=(2, 5, 7, 9), rounds=4, present=lambda number, client: number == 1 or client != number + 5
    )
    found = scores(name, rounds)
    assert set(found) == {2, 5, 7, 9}
    assert all(np.isfinite(list(found.values())))


@pytest.mark.parametrize("name", [name for name in PLAYERS if name != "shapley-research-code"])
def test_a_harmful_client_scores_below_zero_and_last(name):
    rounds = federation(clients=("good", "fair", "harmful"), rounds=3)
    against = [
        with_upload(r, "harmful", {n: 2 * r.start[n] - r.local["good"][n] for n in r.start})  # straight back
        for r in rounds
    ]
    found = scores(name, against, **({"samples": None} if name == "banzhaf" else {}))
    assert found["harmful"] < 0
    assert found["harmful"] == min(found.values())


@pytest.mark.parametrize("name", EXHAUSTIVE)
def test_more_than_fifteen_clients_are_refused_unless_forced(name):
    model = {"w": np.zeros(2)}
    crowd = Round(1, start=model, local=dict.fromkeys(range(16), model), end=model)
    assessor = METHODS[name].make(lambda model: 0.0)
    with pytest.raises(BadSetting, match=r"16 clients, and [\w-]+ evaluates all 2\^16 = 65,536"):
        assessor.observe(crowd)
    assert assessor.last_round is None
    assert METHODS[name].make(lambda model: 0.0, force=True).force


@pytest.mark.parametrize("name", sorted(set(PLAYERS) - set(EXHAUSTIVE)))
def test_sampling_takes_a_crowd(name):
    rounds = federation(clients=tuple(range(20)), rounds=1, layers={"w": (3,)})
    assessor = METHODS[name].make(Towards(rounds))
    assert len(show(assessor, rounds).scores) == 20
    assert assessor.evaluations < 2**20 / 50


@pytest.mark.parametrize("name", PLAYERS)
def test_a_round_that_everybody_spoiled_credits_nobody(name, caplog):
    rounds = federation(rounds=3)
    spoiled = {
        client: {n: np.full_like(array, np.nan) for n, array in rounds[0].start.items()} for client in rounds[0].local
    }
    shown = [rounds[0], replace(rounds[1], local=spoiled), rounds[2]]
    answer = show(METHODS[name].make(Towards(rounds)), shown)
    assert set(answer.quarantined[2]) == {"ann", "bob", "cid"}
    if name != "comfedsv":  # which infers what they would have given
        assert not answer.credits.get(2)
    assert set(answer.scores) == {"ann", "bob", "cid"}


@pytest.mark.parametrize("name", [name for name in PLAYERS if name not in ("comfedsv", "one-round")])
def test_an_absent_client_has_no_credit_for_the_round(name):
    rounds = federation(rounds=3)
    rounds[1] = without(rounds[1], "bob")
    credits = show(METHODS[name].make(Towards(rounds)), rounds).credits
    assert set(credits[2]) == {"ann", "cid"}
    assert set(credits[3]) == {"ann", "bob", "cid"}


@pytest.mark.parametrize("name", ["fedsv", "tmc-shapley", "gtg-shapley", "banzhaf", "least-core"])
def test_chance_comes_from_the_seed_and_the_rounds_number_alone(name):
    options = {"fedsv": {"permutations": 5}, "banzhaf": {"samples": 12}, "least-core": {"samples": 4}}.get(name, {})
    rounds = federation(clients=tuple(range(6)), rounds=4)
    utility = Towards(rounds)
    make = METHODS[name].make
    whole = show(make(utility, seed=1, **options), rounds).credits
    last = show(make(utility, seed=1, **options), rounds[2:]).credits
    assert last == {number: whole[number] for number in (3, 4)}
    assert show(make(utility, seed=2, **options), rounds).credits != whole


@pytest.mark.parametrize("name", PLAYERS)
def test_weights_of_the_round_are_used_unless_uniform_is_wanted(name):
    rounds = federation(rounds=3)
    weighted = [replace(r, weights={"ann": 5, "bob": 3, "cid": 1}) for r in rounds]
    if name in ("shapley-research-code", "individual"):  # one weighs nobody; alone, everybody weighs all
        assert scores(name, weighted) == scores(name, rounds)
        return
    assert scores(name, weighted) != scores(name, rounds)
    assert scores(name, weighted, weights="uniform") == scores(name, rounds)
    assert scores(name, [replace(r, weights={"ann": 2, "bob": 2, "cid": 2}) for r in rounds]) == scores(name, rounds)


@pytest.mark.parametrize("name", PLAYERS)
@pytest.mark.parametrize("option", ["weights", "denominator"])
def test_options_of_the_game_are_words(name, option):
    if name == "shapley-research-code":
        return
    with pytest.raises(BadSetting, match=f"{option} must be one of .*; got 'samples'"):
        METHODS[name].make(lambda model: 0.0, **{option: "samples"})


@pytest.mark.parametrize("name", PLAYERS)
def test_a_buffer_that_is_not_finite_costs_only_its_client(name):
    """Coalitions are made of buffers too, and no utility has a number for a model that is not finite."""

    def normalised(fl_round):
        models = {client: {**model, "bn.running_mean": np.zeros(2)} for client, model in fl_round.local.items()}
        start, end = ({**model, "bn.running_mean": np.zeros(2)} for model in (fl_round.start, fl_round.end))
        return replace(fl_round, start=start, local=models, end=end)

    class Whole(Towards):
        def __call__(self, model):
            return super().__call__(model) - float(np.sum(model["bn.running_mean"] ** 2))

        def gradient(self, model):
            return {name: 2 * (model[name] - best) for name, best in self.best.items()}

    first, *rest = [normalised(fl_round) for fl_round in federation(rounds=3)]
    spoilt = {**rest[0].local["bob"], "bn.running_mean": np.array([0, np.nan])}
    worth = Whole([first])
    found = show(METHODS[name].make(worth), [first, with_upload(rest[0], "bob", spoilt), rest[1]])
    assert list(found.quarantined[2]) == ["bob"]
    assert found.scores == show(METHODS[name].make(worth), [first, without(rest[0], "bob"), rest[1]]).scores
