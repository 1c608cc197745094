"""DIG-FL: first-order gains by the gradient of the validation loss."""

import numpy as np
import pytest

import fixture_q
from fedcoast import BadSetting
from fedcoast.methods import DIGFL, Evaluator
from federations import show
from fixture_q import Quadratic


def test_small_steps_are_worth_what_they_really_gain():
    utility = Quadratic()
    (first, *_) = fixture_q.rounds()
    tiny = {
        client: {name: first.start[name] + 1e-6 * (model[name] - first.start[name]) for name in model}
        for client, model in first.local.items()
    }
    found = show(DIGFL(utility), [type(first)(1, start=first.start, local=tiny, end=first.end)]).scores
    for client, model in tiny.items():
        assert found[client] == pytest.approx((utility(model) - utility(first.start)) / 3, rel=1e-4)


def test_who_changes_nothing_is_worth_nothing_and_who_walks_back_less():
    assert show(DIGFL(Quadratic()), fixture_q.rounds(idle=["c3"])).scores["c3"] == 0
    assert show(DIGFL(Quadratic()), fixture_q.rounds()).scores["c3"] < 0
    assert show(DIGFL(Quadratic(), form="share"), fixture_q.rounds()).scores["c3"] == 0


def test_one_gradient_a_round_is_all_it_asks_for():
    utility = Quadratic()
    assessor = DIGFL(Evaluator(utility))
    show(assessor, fixture_q.rounds())
    assert assessor.evaluations == 3
    assert utility.calls == 0


def test_a_utility_without_a_gradient_is_refused():
    with pytest.raises(BadSetting, match=r"dig-fl needs a utility with a method gradient\(model\) .*<lambda> has none"):
        DIGFL(lambda model: 0.0)


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        ({"weight": np.zeros((2, 1))}, "must have every layer; 'bias' is missing"),
        (
            {"weight": np.zeros(2), "bias": np.zeros(2)},
            r"layer 'weight' must be finite and of shape \(2, 1\); in round 1",
        ),
        ({"weight": np.full((2, 1), np.nan), "bias": np.zeros(2)}, "with 2 entries that are not finite"),
    ],
)
def test_a_gradient_of_another_model_is_refused(gradient, message):
    class Wrong(Quadratic):
        def gradient(self, model):
            return gradient

    with pytest.raises(BadSetting, match=message):
        show(DIGFL(Wrong()), fixture_q.rounds())


@pytest.mark.parametrize(("option", "value"), [("form", "relative"), ("weights", "samples")])
def test_options_that_mean_nothing_are_refused(option, value):
    with pytest.raises(BadSetting, match=f"{option} must be one of"):
        DIGFL(Quadratic(), **{option: value})
