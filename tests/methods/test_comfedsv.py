"""ComFedSV: what unheard coalitions would have gained, inferred."""

import numpy as np
import pytest

import fixture_q
from fedcoast import BadRound, BadSetting, Round
from fedcoast.methods import ComFedSV, FedSV
from federations import show, without
from fixture_q import Quadratic


def growing(rounds=8, away=lambda number: ()):
    """Gains of rank one: every client's entry grows, each round half as much as the one before."""
    for number in range(1, rounds + 1):
        start = {"w": np.zeros(3)}
        local = {
            name: {"w": np.eye(3)[i] * 0.8**number * (3 - i)}
            for i, name in enumerate("abc")
            if name not in away(number)
        }
        yield Round(number, start=start, local=local, end=start)


def total(model):
    return float(model["w"].sum())


def test_a_client_that_misses_rounds_scores_as_if_it_had_not():
    away = {3: "a", 4: "b", 6: "ac"}
    whole = show(ComFedSV(total, rank=1, ridge=1e-9), growing()).scores
    partial = show(ComFedSV(total, rank=1, ridge=1e-9), growing(away=lambda number: away.get(number, ()))).scores
    by_round = show(FedSV(total), growing(away=lambda number: away.get(number, ()))).scores
    assert partial == pytest.approx(whole, rel=1e-3)
    assert any(abs(by_round[client] - whole[client]) > 0.05 * abs(whole[client]) for client in whole)


def test_with_everybody_present_and_full_rank_it_is_fedsv():
    fedsv = show(FedSV(Quadratic()), fixture_q.rounds())
    completed = show(ComFedSV(Quadratic(), rank=3, ridge=1e-9), fixture_q.rounds())
    for number, of in fedsv.credits.items():
        assert completed.credits[number] == pytest.approx(of, abs=1e-4)


def test_not_everyone_heard_is_an_error_until_a_round_has_all():
    assessor = ComFedSV(total)
    rounds = list(growing())
    for fl_round in (without(rounds[0], "a"), without(rounds[1], "b"), without(rounds[2], "c")):
        assessor.observe(fl_round)
    with pytest.raises(BadRound, match=r"ComFedSV needs a round .* \['a', 'b', 'c'\] never took part together"):
        assessor.assessment()
    assessor.observe(rounds[3])
    assert set(assessor.assessment().credits) == {1, 2, 3, 4}


def test_no_round_is_ever_final_and_the_absent_are_credited():
    answer = show(ComFedSV(total), growing(away=lambda number: "b" if number == 2 else ""))
    assert answer.pending == tuple(range(1, 9))
    assert answer.credits[2]["b"] > 0
    assert answer.rounds_scored["b"] == 8


def test_rounds_that_gain_nothing_give_nothing():
    zero = {"w": np.zeros(2)}
    still = [Round(number, start=zero, local={"a": zero, "b": zero}, end=zero) for number in (1, 2)]
    assert show(ComFedSV(total), still).scores == {"a": 0, "b": 0}


@pytest.mark.parametrize(("option", "value"), [("rank", 0), ("ridge", 0), ("ridge", "x"), ("sweeps", 0)])
def test_options_that_mean_nothing_are_refused(option, value):
    with pytest.raises(BadSetting, match=f"{option} must be"):
        ComFedSV(total, **{option: value})
