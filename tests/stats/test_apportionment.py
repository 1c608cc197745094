import math
from fractions import Fraction

import pytest

from fedcoast import BadSetting
from fedcoast.stats.apportionment import apportion, by_rank, proportional, softmax, split


def fractions(*numbers):
    return [Fraction(number) for number in numbers]


def test_positive_scores_weigh_what_they_are_and_others_nothing():
    assert proportional(fractions(3, 0, -2, "0.5")) == fractions(3, 0, 0, "0.5")


def test_the_temperature_says_how_much_the_best_is_worth():
    for temperature in (0.1, 1, 5):
        best, none = softmax(fractions(1000, 0), temperature)
        assert float(best / none) == pytest.approx(math.exp(1 / temperature))


def test_softmax_does_not_depend_on_the_unit_of_the_scores():
    assert softmax(fractions(2, 1, -2), 0.5) == softmax(fractions(2048, 1024, -2048), 0.5)


def test_softmax_neither_overflows_nor_divides_by_nothing():
    assert softmax(fractions(10**300, 0), 1e-300) == [1, 0]
    assert softmax(fractions(0, 0), 1) == [1, 1]


def test_the_worst_of_three_has_one_part_in_six():
    assert by_rank(fractions(7, 9, 8)) == [1, 3, 2]
    assert split(by_rank(fractions(7, 9, 8)), Fraction(0), Fraction(1)) == fractions("1/6", "1/2", "1/3")


def test_ranks_of_scores_that_floats_cannot_tell_apart():
    tiny = Fraction(1, 10**30)
    assert by_rank([1 + tiny, Fraction(1), 1 - tiny]) == [3, 2, 1]


@pytest.mark.parametrize(
    ("weights", "floor", "cap", "shares"),
    [
        ((1,), 0, 1, (1,)),
        ((3, 1), 0, 1, ("3/4", "1/4")),
        ((6, 3, 1), "1/5", 1, ("8/15", "4/15", "1/5")),
        ((8, 1, 1), 0, "1/2", ("1/2", "1/4", "1/4")),
        ((90, 9, 1), 0, "2/5", ("2/5", "2/5", "1/5")),
        ((90, 9, 1), "1/4", "2/5", ("2/5", "7/20", "1/4")),
        ((5, 1), "1/2", 1, ("1/2", "1/2")),
        ((5, 1), 0, "1/2", ("1/2", "1/2")),
        ((5, 0, 0), 0, "2/5", ("2/5", "3/10", "3/10")),
        ((5, 0, 0), "1/10", 1, ("4/5", "1/10", "1/10")),
        ((0, 0, 0), 0, 1, ("1/3", "1/3", "1/3")),
    ],
)
def test_floors_and_caps_by_hand(weights, floor, cap, shares):
    assert split(fractions(*weights), Fraction(floor), Fraction(cap)) == fractions(*shares)


@pytest.mark.parametrize(
    ("weights", "floor", "cap", "message"),
    [
        ((1, 2, 3), "0.4", 1, "floor must lie between 0 and 1/3, an equal share of 3; got 0.4"),
        ((1, 2, 3), 0, "0.3", "cap must be at least 1/3, or 3 clients leave some; got 0.3"),
        ((), 0, 1, "there are no clients to share among"),
    ],
)
def test_what_cannot_be_shared_so_is_refused(weights, floor, cap, message):
    with pytest.raises(BadSetting, match=message):
        split(fractions(*weights), Fraction(floor), Fraction(cap))


def test_cents_go_to_the_largest_remainders_and_then_to_the_first():
    assert apportion(fractions("1/3", "1/3", "1/3"), 100) == [34, 33, 33]
    assert apportion(fractions("1/6", "1/6", "2/3"), 100) == [17, 17, 66]
    assert apportion(fractions("1/6", "1/2", "1/3"), 4) == [1, 2, 1]
    assert apportion(fractions("1/2", "1/2"), 0) == [0, 0]
    assert apportion(fractions(1), 10**18) == [10**18]


def test_shares_that_do_not_add_up_are_refused():
    with pytest.raises(BadSetting, match="must add up to exactly 1; got 2/3"):
        apportion(fractions("1/3", "1/3"), 100)
