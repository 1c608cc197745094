"""What holds for every way to share out."""

from fractions import Fraction

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from fedcoast import Assessment, BadSetting
from fedcoast.analysis.rewards import rewards
from fedcoast.stats.apportionment import apportion, split
from strategies import steady

numbers = st.integers(-(10**6), 10**6) | st.floats(-1e12, 1e12)
names = st.integers(-5, 5) | st.text(max_size=3)
scored = st.dictionaries(names, numbers, min_size=1, max_size=12)
rules = st.sampled_from(["proportional", "softmax", "rank"])
budgets = st.integers(0, 10**12)
temperatures = st.sampled_from([0.01, 0.5, 1.0, 20.0])


def assessed(scores):
    return Assessment("mine", scores, rounds_scored=dict.fromkeys(scores, 3))


def shared(scores, **options):
    assume(any(score > 0 for score in scores.values()))
    return rewards(assessed(scores), force=True, **options)


@steady
@given(scored, rules, budgets, temperatures)
def test_shares_add_up_to_exactly_one_and_cents_to_the_budget(scores, rule, cents, temperature):
    budget = f"{cents // 100}.{cents % 100:02}"
    paid = shared(scores, rule=rule, budget=budget, temperature=temperature)
    assert sum(paid.shares.values()) == 1
    assert sum(paid.cents.values()) == paid.budget == cents
    assert all(share >= 0 for share in paid.shares.values())
    assert all(abs(paid.cents[client] - paid.shares[client] * cents) < 1 for client in scores)
    assert sum(map(Fraction, paid.decimals().values())) == 1


@steady
@given(scored, rules, budgets, temperatures, st.data())
def test_a_higher_score_never_gets_less(scores, rule, cents, temperature, data):
    count = max(1, sum(score > 0 for score in scores.values()))
    floor = data.draw(st.fractions(0, Fraction(1, count), max_denominator=1000))
    cap = data.draw(st.fractions(Fraction(1, count), 1, max_denominator=1000))
    paid = shared(scores, rule=rule, budget=cents // 100, temperature=temperature, floor=str(floor), cap=str(cap))
    for one in scores:
        for other in scores:
            if scores[one] > scores[other]:
                assert paid.shares[one] >= paid.shares[other]
                assert paid.cents[one] >= paid.cents[other]
            elif scores[one] == scores[other]:
                assert paid.shares[one] == paid.shares[other]
                assert abs(paid.cents[one] - paid.cents[other]) <= 1


@steady
@given(scored, rules, budgets, st.randoms(use_true_random=False))
def test_the_order_of_the_clients_does_not_matter(scores, rule, cents, random):
    mixed = {client: scores[client] for client in random.sample(list(scores), len(scores))}
    options = {"rule": rule, "budget": cents // 100}
    one, other = shared(scores, **options), shared(mixed, **options)
    assert one == other
    assert one.to_json() == other.to_json()
    assert one.to_csv() == other.to_csv()


@steady
@given(scored, rules, st.data())
def test_floor_and_cap_hold_for_everyone_who_takes_part(scores, rule, data):
    part = [client for client in scores if scores[client] > 0]
    assume(part)
    floor = data.draw(st.fractions(0, Fraction(1, len(part)), max_denominator=1000))
    cap = data.draw(st.fractions(Fraction(1, len(part)), 1, max_denominator=1000))
    paid = shared(scores, rule=rule, floor=str(floor), cap=str(cap))
    assert all(floor <= paid.shares[client] <= cap for client in part)
    assert all(paid.shares[client] == 0 for client in scores if client not in part)


@steady
@given(scored, rules, budgets)
def test_a_score_at_or_below_zero_gets_nothing(scores, rule, cents):
    paid = shared(scores, rule=rule, budget=cents // 100)
    assert all(paid.cents[client] == 0 for client, score in scores.items() if score <= 0)


@steady
@given(scored, st.integers(1, 1000))
def test_the_unit_of_the_scores_does_not_matter(scores, factor):
    whole = {client: int(score) for client, score in scores.items()}
    larger = {client: score * factor for client, score in whole.items()}
    for rule in ("proportional", "rank"):
        assert shared(whole, rule=rule).shares == shared(larger, rule=rule).shares


def streams(worths, seed, rounds=15, spread=2.0):
    """Credits by round of clients of those worths, with the luck of the rounds."""
    rng = np.random.default_rng(seed)
    return {n: {f"c{place}": float(w + spread * rng.normal()) for place, w in enumerate(worths)} for n in range(rounds)}


def answered(credits, unchanged=()):
    clients = list(dict.fromkeys(client for of in credits.values() for client in of))
    scores = {client: sum(of[client] for of in credits.values()) for client in clients}
    return Assessment(
        "coast",
        scores,
        credits,
        rounds_scored=dict.fromkeys(clients, len(credits)),
        zero_is_idle=True,
        unchanged={number: tuple(unchanged) for number in credits} if unchanged else {},
    )


worths = st.lists(st.integers(1, 9), min_size=2, max_size=6)
seeds = st.integers(0, 2**32 - 1)


def paid_for(assessment, rule):
    assume(any(score > 0 for score in assessment.scores.values()))
    try:
        return rewards(assessment, "1000.00", rule, draws=100)
    except BadSetting as refusal:
        assume("no client to reward" not in str(refusal))
        raise


@steady
@given(worths, seeds, rules)
def test_identical_clients_are_paid_alike_within_a_cent(worths, seed, rule):
    credits = {n: {**of, "twin": of["c0"]} for n, of in streams(worths, seed).items()}
    paid = paid_for(answered(credits), rule)
    assert paid.shares["twin"] == paid.shares["c0"]
    assert abs(paid.cents["twin"] - paid.cents["c0"]) <= 1


@steady
@given(worths, seeds, rules)
def test_an_idle_client_changes_nobodys_amount_and_is_never_paid(worths, seed, rule):
    credits = streams(worths, seed)
    before = paid_for(answered(credits), rule)
    after = paid_for(answered({n: {**of, "rider": 0.0} for n, of in credits.items()}, ["rider"]), rule)
    assert after.cents.pop("rider") == 0
    assert after.named("idle") == ("rider",)
    assert after.cents == before.cents


@steady
@given(worths, seeds)
def test_a_copy_of_a_client_raises_the_sum_by_no_more_than_the_page_says(worths, seed):
    """docs/rewards.md: from a share p to 2p / (1 + p), and never to more than twice."""
    credits = streams(worths, seed)
    before = paid_for(answered(credits), "proportional")
    after = paid_for(answered({n: {**of, "copy": of["c0"]} for n, of in credits.items()}), "proportional")
    p = before.shares["c0"]
    assert after.shares["c0"] + after.shares["copy"] <= 2 * p / (1 + p)


@steady
@given(worths, seeds, rules)
def test_hurting_clients_are_never_paid(worths, seed, rule):
    credits = {n: {**of, "bad": -30.0 - of["c0"]} for n, of in streams(worths, seed).items()}
    paid = paid_for(answered(credits), rule)
    assert paid.named("hurts") == ("bad",)
    assert paid.cents["bad"] == 0


weights = st.lists(st.fractions(0, 1000, max_denominator=50), min_size=1, max_size=12)


@steady
@given(weights, st.data())
def test_a_split_is_the_weights_bent_by_one_rate(parts, data):
    """λ·w, at least the floor and at most the cap: no two clients between the bounds have another rate."""
    floor = data.draw(st.fractions(0, Fraction(1, len(parts)), max_denominator=500))
    cap = data.draw(st.fractions(Fraction(1, len(parts)), 1, max_denominator=500))
    shares = split(parts, floor, cap)
    assert sum(shares) == 1
    rates = {s / w for s, w in zip(shares, parts, strict=True) if w and floor < s < cap}
    assert len(rates) <= 1
    for rate in rates:
        assert all(s == min(cap, max(floor, rate * w)) for s, w in zip(shares, parts, strict=True))


@steady
@given(weights.filter(any), st.integers(0, 10**15))
def test_no_unit_is_lost_and_none_is_moved_further_than_one(parts, units):
    shares = [part / sum(parts) for part in parts]
    whole = apportion(shares, units)
    assert sum(whole) == units
    assert all(abs(got - share * units) < 1 for got, share in zip(whole, shares, strict=True))
