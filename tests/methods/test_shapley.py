"""The paper's SV: per-round Shapley values, and the research code's stand-in for them."""

import numpy as np
import pytest

import fixture_q
from fedcoast.methods import FedSV, Shapley
from federations import show
from fixture_q import CLIENTS, Quadratic


def test_credits_of_a_round_add_up_to_its_gain():
    credits = show(Shapley(Quadratic()), fixture_q.rounds("n")).credits
    utility = Quadratic()
    for fl_round in fixture_q.rounds("n"):
        gained = utility(fl_round.end) - utility(fl_round.start)
        assert sum(credits[fl_round.number].values()) == pytest.approx(gained)


def test_with_everybody_present_it_is_fedsv():
    for weights in ("u", "n"):
        sv, fedsv = (show(method(Quadratic()), fixture_q.rounds(weights)) for method in (Shapley, FedSV))
        assert sv.credits == fedsv.credits


def test_a_client_that_changes_nothing_is_punished_only_by_renormalising():
    plain = show(Shapley(Quadratic()), fixture_q.rounds(idle=["c3"])).scores
    fixed = show(Shapley(Quadratic(), denominator="fixed"), fixture_q.rounds(idle=["c3"])).scores
    assert plain["c3"] < 0
    assert fixed["c3"] == 0


def test_buffers_are_merged_too_and_counters_take_the_largest():
    seen = []

    def utility(model):
        seen.append((float(model["norm.running_mean"][0]), int(model["steps"])))
        return 0.0

    def model(mean, steps):
        return {"w": np.zeros(1), "norm.running_mean": np.array([mean]), "steps": np.array(steps)}

    from fedcoast import Round

    local = {"a": model(2.0, 5), "b": model(4.0, 3)}
    show(Shapley(utility), [Round(1, start=model(0.0, 1), local=local, end=model(3.0, 5))])
    assert sorted(seen) == [(0.0, 1), (2.0, 5), (3.0, 5), (4.0, 3)]


def test_clients_are_all_there():
    assert show(Shapley(Quadratic()), fixture_q.rounds()).clients == CLIENTS
