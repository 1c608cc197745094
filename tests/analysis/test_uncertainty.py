import json
import math
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from fedcoast import Assessment, BadSetting, CoAst
from fedcoast.analysis.uncertainty import uncertainty
from fedcoast.methods import METHODS
from federations import federation, show


def assessed(table, names="abcdefgh", **about):
    """An assessment from a table of credits: a row a round, NaN where a client was away."""
    table = np.asarray(table, dtype=float)
    clients = names[: table.shape[1]]
    credits = {
        number: {c: float(credit) for c, credit in zip(clients, row, strict=True) if not math.isnan(credit)}
        for number, row in enumerate(table, start=1)
    }
    return Assessment(
        "mine",
        scores={c: float(np.nansum(table[:, place])) for place, c in enumerate(clients)},
        credits=credits,
        rounds_scored={c: int((~np.isnan(table[:, place])).sum()) for place, c in enumerate(clients)},
        **about,
    )


@pytest.fixture
def three():
    """a is far above b and c, who are equally good."""
    rng = np.random.default_rng(1)
    return assessed(rng.normal(size=(40, 3)) + np.array([5, 0, 0]))


def test_scores_lie_in_the_middle_of_their_intervals(three):
    sure = uncertainty(three)
    for client, (low, high) in sure.intervals.items():
        assert low < three.scores[client] < high
        assert (low + high) / 2 == pytest.approx(three.scores[client])
        assert sure.mean_intervals[client] == pytest.approx((low / 40, high / 40))


def test_who_is_far_above_is_told_apart_and_who_ties_is_not(three):
    sure = uncertainty(three)
    assert sure.clients[0] == "a"
    assert [set(group) for group in sure.groups] == [{"a"}, {"b", "c"}]
    assert sure.rank_intervals == {"a": (1, 1), "b": (2, 3), "c": (2, 3)}
    assert sure.prob_above[0].tolist() == [0.5, 1, 1]
    assert 0.05 < sure.prob_above[1, 2] < 0.95
    second, third = sure.clients[1:]
    assert sure.rounds_to_settle["a", second] == 0
    assert sure.rounds_to_settle[second, third] >= 1


def test_a_higher_level_gives_wider_intervals(three):
    for client in "abc":
        narrow, wide = uncertainty(three, level=0.5).intervals[client], uncertainty(three, level=0.99).intervals[client]
        assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_blocks_cover_what_neighbouring_rounds_share():
    table = np.random.default_rng(0).normal(size=(40, 2))
    assert uncertainty(assessed(table)).block == 3
    assert uncertainty(assessed(table, dependence_span=6)).block == 7


def test_too_few_rounds_give_no_interval_and_say_so():
    sure = uncertainty(assessed(np.ones((8, 2)), dependence_span=2))
    assert sure.intervals == {"a": None, "b": None}
    assert sure.mean_intervals == sure.adjusted_intervals == {"a": None, "b": None}
    assert sure.rank_intervals == {"a": (1, 2), "b": (1, 2)}
    assert (sure.groups, sure.unknown) == ((), ("a", "b"))
    assert sure.rounds_to_settle == {("a", "b"): None}
    assert np.isnan(sure.prob_above).all()
    assert sure.note == "no intervals: they need 9 scored rounds or more; there are 8"
    assert "they need 9 scored rounds" in str(sure)
    assert json.loads(sure.to_json())["above"] == [[None, None], [None, None]]


def test_a_newcomer_has_no_interval_and_does_not_blur_the_others(three):
    table = np.random.default_rng(0).normal(size=(40, 3)) + np.array([5, 0, 9])
    table[:38, 2] = np.nan
    sure = uncertainty(assessed(table))
    assert sure.unknown == ("c",)
    assert sure.groups == (("a",), ("b",))
    assert sure.rank_intervals == {"a": (1, 2), "b": (2, 3), "c": (1, 3)}
    assert sure.coverage == {"a": 1, "b": 1, "c": 0.05}


def test_the_mean_does_not_reward_being_asked_more_often():
    table = np.random.default_rng(0).normal(size=(60, 2)) + np.array([4, 3])
    table[::2, 0] = np.nan
    by_total, by_mean = (uncertainty(assessed(table), by=by) for by in ("total", "mean"))
    assert (by_total.clients, by_mean.clients) == (("b", "a"), ("a", "b"))
    assert by_total.prob_above[0, 1] > 0.95
    assert by_mean.prob_above[0, 1] > 0.95
    assert by_total.intervals == by_mean.intervals
    assert by_mean.values["a"] == pytest.approx(np.nanmean(table[:, 0]))
    assert by_mean.coverage == {"a": 0.5, "b": 1}


def test_the_adjusted_mean_does_not_reward_the_rounds_that_a_client_was_in():
    fall = np.linspace(20, 0, 60)[:, None]  # the first rounds give more to everybody
    table = np.random.default_rng(0).normal(size=(60, 3)) + fall + np.array([3, 2, 0])
    table[:30, 0] = np.nan
    by_mean, by_adjusted = (uncertainty(assessed(table), by=by, margin=1) for by in ("mean", "adjusted-mean"))
    assert by_mean.clients[-1] == "a"
    assert by_adjusted.clients == ("a", "b", "c")
    assert by_adjusted.groups == (("a",), ("b",), ("c",))
    assert by_adjusted.values == pytest.approx(assessed(table).adjusted_mean)
    for client, (low, high) in by_adjusted.adjusted_intervals.items():
        assert by_mean.adjusted_intervals[client] == pytest.approx((low, high))
        assert (low + high) / 2 == pytest.approx(by_adjusted.values[client])
    assert f"{by_adjusted.values['a']:,.6g}" in str(by_adjusted)
    assert json.loads(by_adjusted.to_json())["adjusted_intervals"][0] == list(by_adjusted.adjusted_intervals["a"])


def test_where_everybody_was_always_there_the_adjusted_mean_is_the_mean(three):
    by_mean, by_adjusted = (uncertainty(three, by=by) for by in ("mean", "adjusted-mean"))
    assert by_adjusted.groups == by_mean.groups
    for client in "abc":
        assert by_adjusted.adjusted_intervals[client] == pytest.approx(by_mean.mean_intervals[client])


def test_clients_that_never_met_the_others_are_not_compared_by_the_adjusted_mean():
    table = np.random.default_rng(0).normal(size=(80, 5)) + np.array([9, 6, 3, 0, 0])
    table[::2, :3] = np.nan
    table[1::2, 3:] = np.nan
    by_adjusted, by_total = (uncertainty(assessed(table), by=by) for by in ("adjusted-mean", "total"))
    assert set(by_adjusted.unknown) == {"d", "e"}
    assert by_adjusted.groups == (("a",), ("b",), ("c",))
    assert by_total.adjusted_intervals["d"] is None
    assert by_total.intervals["d"] == pytest.approx(by_adjusted.intervals["d"])
    assert by_total.unknown == ()


def test_clients_that_met_others_in_one_round_alone_are_not_surely_above_them():
    table = np.random.default_rng(0).normal(size=(60, 4))
    table[30:, :2] = table[:30, 2:] = np.nan
    table[15, 2] = 0.5
    assert len(uncertainty(assessed(table), by="adjusted-mean").unknown) == 4
    assert uncertainty(assessed(table)).unknown == ()


@pytest.mark.parametrize("by", ["mean", "adjusted-mean"])
def test_a_client_that_was_never_seen_ranks_last_per_round(by):
    table = np.random.default_rng(0).normal(size=(30, 3)) - 5
    table[:, 1] = np.nan
    sure = uncertainty(assessed(table), by=by)
    assert sure.clients[-1] == "b"
    assert sure.intervals["b"] is None
    assert sure.adjusted_intervals["b"] is None
    assert sure.adjusted_intervals["a"] is not None


def test_only_rounds_that_the_scores_count_matter():
    table = np.random.default_rng(0).normal(size=(40, 2))
    table[:10] += 1000
    whole = assessed(table)
    late = assessed(table[10:])
    window = replace(whole, scores=late.scores, rounds_scored=late.rounds_scored, counted_rounds=tuple(range(11, 41)))
    assert uncertainty(window).intervals == uncertainty(late).intervals
    assert uncertainty(window).rounds == 30


def test_scores_that_are_no_sums_have_no_intervals(three):
    sure = uncertainty(replace(three, method="cgsv", scores={"a": 0.5, "b": 0.3, "c": 0.2}))
    assert sure.note == "no intervals: the scores of cgsv are not sums of its credits"
    assert set(sure.intervals.values()) == {None}


def test_the_same_seed_gives_the_same_answer(three):
    assert uncertainty(three, seed=3) == uncertainty(three, seed=3)
    assert uncertainty(three, seed=3).to_json() == uncertainty(three, seed=3).to_json()
    assert uncertainty(three, seed=3).intervals != uncertainty(three, seed=4).intervals


def test_the_order_of_the_clients_does_not_matter(three):
    mixed = replace(
        three,
        scores={c: three.scores[c] for c in "cab"},
        credits={n: {c: of[c] for c in "bca"} for n, of in three.credits.items()},
    )
    assert uncertainty(mixed) == uncertainty(three)


def test_twins_cannot_be_told_apart_however_long_one_looks():
    one = np.random.default_rng(0).normal(size=40)
    sure = uncertainty(assessed(np.stack([one, one], axis=1)))
    assert sure.prob_above.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert sure.groups == (("a", "b"),)
    assert sure.rounds_to_settle == {("a", "b"): math.inf}
    assert json.loads(sure.to_json())["rounds_to_settle"] == ["never"]
    assert "never" in str(sure)


@pytest.mark.parametrize("assessment", [Assessment("mine", {}), Assessment("mine", {"a": 0}, rounds_scored={"a": 0})])
def test_an_answer_without_credits_is_no_error(assessment):
    sure = uncertainty(assessment)
    assert sure.groups == ()
    assert sure.note
    assert json.loads(sure.to_json())["rounds"] == 0
    assert str(sure)


def test_a_lone_client_is_a_group(three):
    sure = uncertainty(assessed(np.random.default_rng(0).normal(size=(20, 1))))
    assert (sure.groups, sure.rank_intervals) == ((("a",),), {"a": (1, 1)})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 90}, r"got 90 \(did you mean 0.90\?\)"),
        ({"level": 1.0}, "level must lie between 0 and 1"),
        ({"level": True}, "level must lie between 0 and 1"),
        ({"level": "0.9"}, "level must lie between 0 and 1"),
        ({"draws": 10}, "draws must be an integer of at least 100; got 10"),
        ({"seed": -1}, "seed must be an integer of at least 0; got -1"),
        ({"by": "median"}, "by must be 'total', 'mean' or 'adjusted-mean'"),
    ],
)
def test_options_that_mean_nothing_are_refused(three, options, message):
    with pytest.raises(BadSetting, match=message):
        uncertainty(three, **options)


def test_nothing_of_it_can_be_changed(three):
    sure = uncertainty(three)
    with pytest.raises(FrozenInstanceError):
        sure.level = 1
    with pytest.raises(ValueError, match="read-only"):
        sure.prob_above[0, 0] = 1


def test_the_table_shows_names_as_text_and_fits_a_terminal(three):
    rude = "\x1b[2J[bold]boo[/bold]"
    renamed = replace(
        three,
        scores={rude if c == "a" else c: score for c, score in three.scores.items()},
        credits={n: {rude if c == "a" else c: x for c, x in of.items()} for n, of in three.credits.items()},
        rounds_scored={rude if c == "a" else c: 40 for c in "abc"},
    )
    text = str(uncertainty(renamed))
    assert r"\x1b[2J[bold]boo[/bold]" in text
    assert "\x1b[2J" not in text
    assert "90% interval" in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_json_has_everything_in_the_order_of_the_ranking(three):
    sure = uncertainty(three)
    data = json.loads(sure.to_json())
    assert (data["format"], data["version"], data["level"], data["block"]) == ("fedcoast-uncertainty", 1, 0.9, 3)
    assert [client["name"] for client in data["clients"]] == list(sure.clients)
    assert [tuple(interval) for interval in data["intervals"]] == [sure.intervals[c] for c in sure.clients]
    assert data["groups"] == [[0], [1, 2]]
    assert data["above"] == pytest.approx(sure.prob_above, abs=1e-4)


def test_a_real_assessment_of_coast_can_be_asked():
    assessment = show(CoAst(keep=0.5), federation(rounds=24))
    sure = uncertainty(assessment)
    assert (sure.rounds, sure.block) == (len(assessment.counted), assessment.dependence_span + 1)
    assert all(interval is not None for interval in sure.intervals.values())


@pytest.mark.parametrize("method", ["coast", "cosine", "norm", "cgsv", "chance", "constant"])
def test_every_kind_of_method_gets_an_answer_or_a_reason(method):
    assessment = show(METHODS[method].make(), federation(rounds=12))
    sure = uncertainty(assessment, draws=100)
    assert bool(sure.note) == all(interval is None for interval in sure.intervals.values())
    assert set(sure.clients) == set(assessment.clients)


def test_clients_that_the_method_cannot_order_are_never_told_apart(three):
    sure = uncertainty(three)
    best, second, last = sure.clients
    assert sure.groups == ((best,), (second, last))
    unsure = uncertainty(replace(three, unordered=((best, last),)))
    assert math.isinf(unsure.reach[0, 2])
    assert math.isinf(unsure.reach[2, 0])
    assert math.isnan(unsure.prob_above[0, 2])
    assert unsure.groups == ((best, second, last),)
    np.testing.assert_array_equal(unsure.reach[0, 1], sure.reach[0, 1])


def test_more_rounds_do_not_order_what_the_method_cannot(three):
    first, second, _ = uncertainty(three).clients
    sure = uncertainty(replace(three, unordered=((first, second),)))
    assert sure.rounds_to_settle[first, second] == math.inf
