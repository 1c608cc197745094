"""What the public research code calls SV, kept for reproducing the paper's table."""

import fixture_q
from fedcoast.methods import Shapley
from federations import federation, show
from fixture_q import Quadratic
from paper.research_code import ShapleyResearchCode


def test_the_first_round_is_skipped_and_still_checked(caplog):
    answer = show(ShapleyResearchCode(Quadratic()), fixture_q.rounds())
    assert set(answer.credits) == {2, 3}
    assert set(answer.rounds_scored.values()) == {2}


def test_neither_nobody_nor_everybody_is_ever_asked_for():
    assessor = ShapleyResearchCode(Quadratic())
    show(assessor, fixture_q.rounds())
    assert assessor.evaluations == 2 * (2**3 - 2)


def test_it_is_the_plain_mean_of_the_marginals_to_one_other_where_there_are_three():
    rounds, utility = list(fixture_q.rounds()), Quadratic()
    answer = show(ShapleyResearchCode(Quadratic()), rounds)
    second = rounds[1]
    local = {client: fixture_q.as_vector(model) for client, model in second.local.items()}

    def worth(*clients):
        return utility(fixture_q.as_model(sum(local[client] for client in clients) / len(clients)))

    expected = (worth("c1", "c2") - worth("c2") + worth("c1", "c3") - worth("c3")) / 2
    assert abs(answer.credits[2]["c1"] - expected) < 1e-12


def test_it_is_not_the_shapley_value():
    ours, theirs = (show(m(Quadratic()), fixture_q.rounds()).credits[2] for m in (Shapley, ShapleyResearchCode))
    assert all(abs(ours[client] - theirs[client]) > 0.01 for client in ours)


def test_two_clients_leave_it_nothing_to_average():
    rounds = federation(clients=("a", "b"), rounds=3)
    assert show(ShapleyResearchCode(lambda model: float(model["scale"])), rounds).scores == {"a": 0, "b": 0}
