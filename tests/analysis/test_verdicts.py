"""One verdict per client, and what operators met before there was one (a trial as three new users would do it)."""

import io
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from rich.console import Console

from fedcoast import Assessment, BadSetting, CoAst, Round
from fedcoast.analysis import uncertainty as reading
from fedcoast.analysis.rewards import rewards
from fedcoast.analysis.uncertainty import uncertainty
from fedcoast.analysis.verdicts import blind_spots, too_early, unchanged_shares, verdict, verdicts
from fedcoast.reports.assess_rounds import build_report
from fedcoast.reports.phrasing import findings, settling
from federations import federation


def answered(credits, unchanged=None):
    clients = list(dict.fromkeys(client for of in credits.values() for client in of))
    return Assessment(
        "coast",
        {client: sum(of.get(client, 0) for of in credits.values()) for client in clients},
        credits,
        rounds_scored={client: sum(client in of for of in credits.values()) for client in clients},
        settings={"signal": "ballot", "keep": 0.1},
        zero_is_idle=True,
        unchanged=unchanged or {},
    )


def streams(worths, rounds=40, spread=8.0, seed=0):
    rng = np.random.default_rng(seed)
    return {n: {c: float(w + spread * rng.normal()) for c, w in worths.items()} for n in range(rounds)}


def words(report):
    passages = [*findings(report), settling(report)]
    return " ".join("".join(part if isinstance(part, str) else part.name for part in passage) for passage in passages)


def fifty():
    """Fifty clients of slowly falling quality; one returns the model unchanged, two hurt."""
    worths = {f"c{n:02d}": 14.0 - 0.25 * n for n in range(47)} | {"h1": -12.0, "h2": -13.0}
    credits = {n: {**of, "rider": 0.0} for n, of in streams(worths).items()}
    return answered(credits, dict.fromkeys(credits, ("rider",)))


# --- the rule


@pytest.mark.parametrize(
    ("interval", "unchanged", "expected"),
    [
        ((1, 2), 0.0, "helps"),
        ((-2, -1), 0.0, "hurts"),
        ((0, 1), 0.0, "cannot tell"),
        (None, 0.0, "cannot tell"),
        ((0, 0), 0.51, "idle"),
        ((1, 2), 0.5, "helps"),
    ],
)
def test_a_verdict_follows_from_the_range_and_the_unchanged_uploads(interval, unchanged, expected):
    assert verdict(interval, unchanged) == expected


def test_ranges_that_hold_for_all_clients_are_wider_than_those_of_one():
    found = uncertainty(answered(streams(dict.fromkeys("abcdefghij", 1.0))))
    for client, (low, high) in found.joint_intervals.items():
        own = found.intervals[client]
        assert low < own[0] < own[1] < high


def test_one_hundred_worthless_clients_are_rarely_called_anything():
    wrong = 0
    for seed in range(10):
        answer = answered(streams({f"c{n}": 0.0 for n in range(100)}, seed=seed))
        wrong += any(found != "cannot tell" for found in verdicts(answer, uncertainty(answer)).values())
    assert wrong <= 4  # 10% of the runs, at 90% confidence for all clients together


def test_the_margin_of_the_method_widens_every_range():
    answer = answered(streams({"a": 3.0, "b": 1.0}))
    one, two = uncertainty(answer, margin=1.0), uncertainty(answer, margin=2.0)
    for client in answer.clients:
        (low, high), (lower, higher) = one.joint_intervals[client], two.joint_intervals[client]
        assert higher - lower == pytest.approx(2 * (high - low))
    assert reading.METHOD_MARGIN >= 1.0


# --- idle


def with_rider(rounds, name="rider", every=1):
    """The same rounds with a client that returns the model it was sent."""
    for fl_round in rounds:
        local = dict(fl_round.local)
        if fl_round.number % every == 0:
            local[name] = fl_round.start
        yield Round(fl_round.number, fl_round.start, local, fl_round.end)


def test_a_client_that_returns_the_model_is_called_idle_and_no_honest_client_is():
    assessor = CoAst()
    for fl_round in with_rider(federation(rounds=30)):
        assessor.observe(fl_round)
    answer = assessor.assessment()
    found = verdicts(answer, uncertainty(answer))
    assert [client for client, of in found.items() if of == "idle"] == ["rider"]
    assert unchanged_shares(answer)["rider"] == 1.0
    assert answer.unchanged[1] == ("rider",)


def test_who_is_idle_survives_json_csv_and_a_saved_state(tmp_path):
    first, second = CoAst(), CoAst()
    rounds = list(with_rider(federation(rounds=30)))
    for fl_round in rounds[:12]:
        first.observe(fl_round)
    first.save(tmp_path / "coast.state")
    second.restore(tmp_path / "coast.state")
    for fl_round in rounds[12:]:
        second.observe(fl_round)
    answer = second.assessment()
    assert len(answer.unchanged) == 30
    assert Assessment.from_json(answer.to_json()).unchanged == answer.unchanged
    assert Assessment.from_csv(answer.to_csv()).unchanged == answer.unchanged
    assert Assessment.from_csv(answer.to_csv()).credits == answer.credits


def test_a_client_that_is_idle_now_and_then_is_not_called_idle():
    assessor = CoAst()
    for fl_round in federation(rounds=30):
        local = dict(fl_round.local)
        if fl_round.number % 3 == 0:
            local["ann"] = fl_round.start
        assessor.observe(Round(fl_round.number, fl_round.start, local, fl_round.end))
    answer = assessor.assessment()
    assert verdicts(answer, uncertainty(answer))["ann"] != "idle"


# --- what operators met


def test_idle_and_hurting_clients_are_named_and_never_paid_like_helpers():
    """Trial 1.1: chains of neighbours put 48 of 50 clients into one group that was paid alike."""
    paid = rewards(fifty(), budget=100_000)
    assert paid.named("idle") == ("rider",)
    assert paid.cents["rider"] == paid.cents["h1"] == paid.cents["h2"] == 0
    assert {"h1", "h2"} <= set(paid.named("hurts"))
    assert paid.cents["c00"] > 1.5 * paid.cents["c35"] > 0
    assert "Not paid, idle: rider." in str(paid)
    assert "Not paid, hurts:" in str(paid)


@pytest.mark.parametrize("seed", [1, 2])
def test_who_is_paid_has_the_verdict_of_every_other_place_however_many_are_idle(seed):
    worths = {f"c{n}": 4.5 + 0.1 * n for n in range(25)} | {f"lazy{n}": 0.0 for n in range(30)}
    lazy = tuple(name for name in worths if name.startswith("lazy"))
    answer = answered(credits := streams(worths, seed=seed), {n: lazy for n in credits if n % 5})
    assert rewards(answer).verdicts == verdicts(answer, uncertainty(answer))


def test_four_identical_clients_are_paid_alike():
    """Trial 1.5: they were paid 354.84, 258.06, 231.67 and 155.43."""
    paid = rewards(answered(streams(dict.fromkeys("abcd", 6.0), spread=20.0)), budget=1000)
    assert set(paid.cents.values()) == {25000}


def test_no_amount_is_cut_in_eighty_columns():
    long = "university hospital of the capital, department of radiology"
    paid = rewards(answered(streams({long: 50.0, "without_a_space_" * 4: 30.0, "c": -30.0})), budget=123_456_789)
    console = Console(width=80, file=io.StringIO())
    console.print(paid)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    for client in paid.clients:
        for cents in (paid.cents[client], *paid.range_cents(client)):
            assert f"{cents // 100:,}.{cents % 100:02}" in text


def test_one_scored_round_decides_no_budget():
    """Trial 1.5: one round paid 73.68, 26.32 and 0 %, without a warning and in the wrong order."""
    once = answered({1: {"a": 14.0, "b": 5.0, "c": -3.0}})
    with pytest.raises(BadSetting, match=r"they need .* scored rounds or more; there are 1; force=True"):
        rewards(once, budget=100)


def test_nothing_is_most_or_least_without_a_claim_behind_it():
    """Trial 1.6: "most was contributed by X" stood above "no intervals"."""
    early = build_report(answered(streams({"a": 9.0, "b": 1.0}, rounds=4)))
    text = words(early)
    assert text.startswith("Too early to say who helps: 4 rounds are scored, and ranges need")
    assert "most" not in text
    twins = words(build_report(answered(streams({"a": 3.0, "b": 3.0}))))
    assert "most" not in twins.replace("most rounds", "")
    assert "least" not in twins
    assert "First place is open between" in twins
    clear = words(build_report(answered(streams({"a": 30.0, "b": 1.0}))))
    assert clear.startswith("a contributed most. b contributed least.")


def test_a_free_rider_is_named_in_the_first_sentences():
    """Trial 1.7: an unchanged upload in every round read "0, range 0 to 0, cannot be told"."""
    assert "1 client is idle and returned the model unchanged in most rounds: rider." in words(build_report(fifty()))


@pytest.mark.parametrize("seed", range(6))
def test_a_report_never_contradicts_itself_about_first_place(seed):
    """Trial 1.9: an open first place stood beside "everyone is surely above all later groups"."""
    report = build_report(answered(streams({"a": 4.0, "b": 2.5, "c": 2.0, "d": -4.0}, seed=seed)))
    rivals = {place for place, summary in enumerate(report.summaries) if summary.ranks[0] == 1}
    assert rivals <= set(report.groups[0])
    for place, summary in enumerate(report.summaries):
        group = next(of for of in report.groups if place in of)
        assert min(group) + 1 <= summary.ranks[0] <= summary.ranks[1] <= max(group) + 1


def test_one_client_is_not_said_to_help_in_comparison_and_gets_nothing_unforced():
    """Trial 1.12: one client "helps with 90 % confidence" and gets the whole budget."""
    alone = answered(streams({"a": 9.0}))
    assert "There is one client." in words(build_report(alone))
    with pytest.raises(BadSetting, match="a single client cannot be compared"):
        rewards(alone, budget=10)


def test_pending_rounds_are_explained_and_not_called_unfinished():
    """Trial 1.13: "Not final yet: rounds 39–40" on finished federations."""
    assessor = CoAst.votes(horizon=2)
    for fl_round in federation(rounds=12):
        assessor.observe(fl_round)
    assert "no score: a score needs later rounds." in words(build_report(assessor.assessment()))


def test_blind_spots_are_said_where_they_matter():
    tied = answered({n: {"a": 6.0, "b": 6.0} for n in range(20)})
    assert any("All clients tie" in text and "keep=1.0" in text for text in blind_spots(tied, uncertainty(tied)))
    tiny = answered({n: {"a": 6.0 + n % 2, "b": 5.0} for n in range(20)})
    tiny = replace(tiny, settings={**tiny.settings, "reference": "movement"})
    assert any("very few votes" in text for text in blind_spots(tiny, uncertainty(tiny)))
    means = replace(tiny, settings={**tiny.settings, "reference": "others"})  # of many votes, too, they can be small
    assert not any("very few votes" in text for text in blind_spots(means, uncertainty(means)))
    below = answered(streams({"a": -400.0, "b": -300.0}))
    assert any("differences or gradients" in text for text in blind_spots(below, uncertainty(below)))
    fine = answered(streams({"a": 400.0, "b": 300.0}))
    assert blind_spots(fine, uncertainty(fine)) == []
    assert too_early(fine, uncertainty(fine)) == ""


def test_pairs_without_an_order_are_named():
    scores = dict.fromkeys(["ann", "bob", "cid", "dan"], 1.0) | {"ann": 2.0}
    credits = {1: dict.fromkeys(scores, 1.0)}
    some = Assessment("mine", scores, credits, unordered=(("ann", "bob"),), zero_is_idle=True)
    assert any("cannot tell the order" in line and "ann and bob" in line for line in blind_spots(some, None))
    pairs = tuple(combinations(scores, 2))
    nobody = Assessment("mine", scores, credits, unordered=pairs, zero_is_idle=True)
    assert any("neither end is clearly better" in line for line in blind_spots(nobody, None))
