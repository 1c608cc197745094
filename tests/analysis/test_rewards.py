import csv
import io
import json
import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import fixture_a
from fedcoast import Assessment, BadFile, BadSetting, CoAst, Recorder, Round
from fedcoast.analysis.money import cents
from fedcoast.analysis.rewards import rewards
from fedcoast.cli import rewarding
from fedcoast.cli.method_options import MethodOptions
from federations import federation

ROOT = Path(__file__).parents[2]
SCORES = {"ann": 600, "bob": 300, "cid": 100, "dan": 0, "eve": -400}


def assessed(scores, seen=None):
    return Assessment("mine", scores, rounds_scored=seen or dict.fromkeys(scores, 10))


ALL = assessed(SCORES)


def forced(assessment, *arguments, **options):
    """Paid although nothing says how much is luck: these answers have no credits by round."""
    return rewards(assessment, *arguments, force=True, **options)


def test_proportional_pays_positive_scores():
    paid = forced(ALL, budget=1000)
    assert paid.shares == {"ann": Fraction(3, 5), "bob": Fraction(3, 10), "cid": Fraction(1, 10), "dan": 0, "eve": 0}
    assert paid.cents == {"ann": 60000, "bob": 30000, "cid": 10000, "dan": 0, "eve": 0}


def test_rank_pays_places_and_softmax_by_temperature():
    paid = forced(ALL, rule="rank")
    assert [paid.shares[c] for c in SCORES] == [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6), 0, 0]
    cold, hot = (forced(ALL, rule="softmax", temperature=t).shares for t in (0.05, 100))
    assert cold["ann"] > Fraction(99, 100)
    assert max(hot.values()) - hot["cid"] < Fraction(1, 100)
    assert cold["eve"] == hot["eve"] == 0


def test_floor_and_cap_are_the_decimals_that_were_written():
    paid = forced(ALL, floor=0.15, cap="0.5")
    assert paid.shares["ann"] == Fraction(1, 2)
    assert paid.shares["cid"] == Fraction(15, 100)
    assert paid.options["floor"] == "3/20"


def test_the_mean_pays_for_the_round_and_not_for_being_asked():
    paid = forced(assessed({"ann": 600, "bob": 300}, {"ann": 20, "bob": 5}), by="mean")
    assert paid.shares == {"ann": Fraction(1, 3), "bob": Fraction(2, 3)}


def test_the_adjusted_mean_pays_neither_for_being_asked_nor_for_the_rounds():
    credits = {1: {"ann": 9, "bob": 8}, 2: {"bob": 2, "cid": 1}, 3: {"bob": 2, "cid": 1}}
    scores, seen = {"ann": 9, "bob": 12, "cid": 2, "dan": 0}, {"ann": 1, "bob": 3, "cid": 2, "dan": 0}
    paid = forced(Assessment("mine", scores, credits, rounds_scored=seen), by="adjusted-mean")
    assert [float(paid.scores[client]) for client in scores] == pytest.approx([5, 4, 3, 0])
    assert paid.clients == ("ann", "bob", "cid", "dan")
    assert paid.options["by"] == "adjusted-mean"
    assert sum(paid.shares.values()) == 1


def test_by_the_adjusted_mean_the_total_still_says_who_earned_and_who_did_harm():
    fall = range(40, 0, -1)
    credits = {n: {"ann": 6 * f, "bob": 5 * f, ("late" if f <= 20 else "early"): 0} for n, f in enumerate(fall)}
    scores = {"ann": 6 * sum(fall), "bob": 5 * sum(fall), "late": 0, "early": 0}
    idle = Assessment("mine", scores, credits, rounds_scored={"ann": 40, "bob": 40, "late": 20, "early": 20})
    assert idle.adjusted_mean["late"] > 10 > -10 > idle.adjusted_mean["early"]  # of it, zero means nothing
    paid = forced(idle, by="adjusted-mean")
    assert (paid.shares["late"], paid.shares["early"]) == (0, 0)


@pytest.mark.parametrize("everybody", [True, False])
def test_clients_that_did_alike_are_paid_alike_whatever_rounding_says(everybody):
    for seed in range(10):
        table = np.random.default_rng(seed).integers(0, 900, (30, 3)) / 7
        table[:, 1] = table[::-1, 0] if everybody else table[:, 0]
        rows = [row if everybody or n % 3 else row[:2] for n, row in enumerate(table.tolist())]
        credits = {n: dict(zip("abc", row, strict=False)) for n, row in enumerate(rows)}
        scores = {c: sum(of.get(c, 0) for of in credits.values()) for c in "abc"}
        seen = {c: sum(c in of for of in credits.values()) for c in "abc"}
        answer = Assessment("mine", scores, credits, rounds_scored=seen)
        paid = forced(answer, rule="rank", by="adjusted-mean", equal_pay_ties=False)
        assert paid.shares["a"] == paid.shares["b"]


def test_what_cannot_be_adjusted_is_not_paid_for():
    with pytest.raises(BadSetting, match="the scores of mine are not sums of credits"):
        forced(ALL, by="adjusted-mean")
    apart = Assessment("mine", {"ann": 3, "bob": 1}, {1: {"ann": 3}, 2: {"bob": 1}}, rounds_scored={"ann": 1, "bob": 1})
    with pytest.raises(BadSetting, match="some clients share no rounds"):
        forced(apart, by="adjusted-mean")


def test_nothing_earned_is_nothing_to_share():
    with pytest.raises(BadSetting, match="none of the 2 clients has a score above 0"):
        forced(assessed({"ann": 0, "eve": -3}))
    with pytest.raises(BadSetting, match="none of the 0 clients"):
        forced(assessed({}))


def noisy(worths, rounds=40):
    rng = np.random.default_rng(1)
    credits = {n: {c: float(w + rng.normal()) for c, w in worths.items()} for n in range(rounds)}
    scores = {c: sum(of[c] for of in credits.values()) for c in worths}
    return Assessment("mine", scores, credits, rounds_scored=dict.fromkeys(worths, rounds))


def test_clients_that_cannot_be_told_apart_are_paid_equally():
    assessment = noisy({"ann": 5, "bob": 1, "cid": 1})
    paid = rewards(assessment)
    assert paid.shares["bob"] == paid.shares["cid"] < paid.shares["ann"]
    assert sum(paid.shares.values()) == 1
    assert paid.options["equal_pay_ties"] == 0.9
    assert not paid.forced
    plain = rewards(assessment, equal_pay_ties=False)
    assert plain.shares["bob"] != plain.shares["cid"]
    assert plain.options["equal_pay_ties"] is None


def test_every_share_has_a_range_that_holds_it():
    paid = rewards(noisy({"ann": 5, "bob": 1, "cid": 0.5}), budget=1000)
    for client, (low, high) in paid.ranges.items():
        assert low <= float(paid.shares[client]) <= high
        cheap, dear = paid.range_cents(client)
        assert cheap <= paid.cents[client] <= dear
    assert " to " in str(paid)


@pytest.mark.parametrize("rule", ["softmax", "rank"])
def test_ranges_are_by_the_rule_that_pays(rule):
    paid = rewards(noisy({"ann": 5, "bob": 1, "cid": 0.5}), rule=rule)
    assert all(low <= float(paid.shares[client]) <= high for client, (low, high) in paid.ranges.items())


def test_a_budget_is_not_paid_where_nothing_is_certain():
    short = noisy({"ann": 5, "bob": 1}, rounds=4)
    with pytest.raises(BadSetting, match=r"they need 6 scored rounds or more; there are 4.*--force"):
        rewards(short)
    with pytest.raises(BadSetting, match=r"a single client cannot be compared with others.*--force"):
        rewards(noisy({"ann": 5}))
    with pytest.raises(BadSetting, match="no credits by round"):
        rewards(ALL)
    paid = forced(short)
    assert paid.forced
    assert set(paid.ranges.values()) == {None}
    assert "Forced: the share of luck here is unknown." in str(paid)


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        ("100000", 10_000_000),
        ("0.07", 7),
        ("12.5", 1250),
        ("1e3", 100_000),
        ("1.000000000000000000000000000000000000", 100),
        (0, 0),
        (Decimal("99.99"), 9999),
        (10**16, 10**18),
    ],
)
def test_budgets_are_read_to_the_cent(budget, expected):
    assert cents(budget) == expected


@pytest.mark.parametrize(
    "budget",
    ["0.001", "1.00000000000000000000000000000000000001", "-1", "nan", "inf", "ten", "", "1,000", 1.5, True, None,
     "1e99999999999", "1e-99999999999", 10**17, Decimal("NaN"), Decimal("sNaN")],
)  # fmt: skip
def test_what_is_no_budget_is_refused(budget):
    with pytest.raises(BadSetting, match="budget must be an amount with at most two decimals"):
        cents(budget)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "lottery"}, "rule must be 'proportional', 'softmax' or 'rank'; got 'lottery'"),
        ({"by": "size"}, "by must be 'total', 'mean' or 'adjusted-mean'"),
        ({"temperature": 0}, "temperature must be a number above 0; got 0"),
        ({"temperature": float("nan")}, "temperature must be a number above 0; got nan"),
        ({"floor": -0.1}, "floor must lie between 0 and 1, the share of a client; got -0.1"),
        ({"floor": 0.5}, "floor must lie between 0 and 1/3, an equal share of 3; got 0.5"),
        ({"cap": 0.2}, "cap must be at least 1/3"),
        ({"cap": 50}, "cap must lie between 0 and 1"),
        ({"cap": "half"}, "cap must lie between 0 and 1"),
        ({"cap": float("nan")}, "cap must lie between 0 and 1"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, message):
    with pytest.raises(BadSetting, match=message):
        forced(ALL, **options)


def test_scores_that_are_no_numbers_cannot_be_paid_for():
    with pytest.raises(BadSetting, match="client 'ann' has inf"):
        forced(assessed({"ann": float("inf")}))


def test_json_and_csv_add_up_as_printed():
    paid = forced(assessed({"ann": 1, "bob": 1, "cid": 1, "eve": -1}), budget="100")
    data = json.loads(paid.to_json())
    assert sum(map(Decimal, data["shares"])) == 1
    assert sum(map(Decimal, data["amounts"])) == Decimal(data["budget"]) == 100
    rows = list(csv.DictReader(io.StringIO(paid.to_csv())))
    assert [row["amount"] for row in rows] == ["33.34", "33.33", "33.33", "0.00"]
    assert sum(Decimal(row["share"]) for row in rows) == 1
    assert [row["verdict"] for row in rows] == ["cannot tell"] * 4


def test_without_a_budget_there_are_shares_alone():
    paid = forced(ALL)
    assert (paid.budget, paid.cents) == (None, None)
    assert json.loads(paid.to_json())["amounts"] is None
    assert "amount" not in str(paid)


def test_names_are_text_in_tables_and_no_formula_in_csv():
    rude = "=cmd\x1b[2J[bold]"
    paid = forced(assessed({rude: 5, "eve\x07": -1}), budget=10)
    assert r"=cmd\x1b[2J[bold]" in str(paid)
    assert r"no score above 0: eve\x07" in str(paid)
    assert all(character.isprintable() or character == "\n" for character in str(paid))
    assert list(csv.reader(io.StringIO(paid.to_csv())))[1][0] == "'" + rude


def test_no_name_begins_a_row_of_its_own_in_a_payment_file():
    rude = ["evil\r=1+1", "evil\n=1+1", "evil\r\n=1+1"]
    paid = forced(assessed({**dict.fromkeys(rude, 5), "ann": 1}), budget=10)
    rows = list(csv.reader(io.StringIO(paid.to_csv(), newline="")))
    assert sorted(row[0] for row in rows[1:]) == sorted([*rude, "ann"])


def test_a_thousand_clients_are_paid_to_the_cent():
    rng = np.random.default_rng(0)
    scores = {n: float(score) for n, score in enumerate(rng.normal(size=1000))}
    paid = forced(assessed(scores), budget="1000000.01", floor="0.0001", cap="0.003")
    assert sum(paid.cents.values()) == 100_000_001
    assert all(paid.cents[client] == 0 for client, score in scores.items() if score < 0)


def run_command(*arguments):
    app = typer.Typer()
    app.command()(rewarding.rewards)
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_a_run_is_assessed_and_paid(run):
    done = run_command(run, "--budget", "100", "--json", "--force")
    data = json.loads(done.stdout)
    assert sum(map(Decimal, data["amounts"])) == 100
    assert data["method"] == "coast"
    assert "amount" in run_command(run, "--budget", "100", "--force").stdout
    assert run_command(run, "--csv", "--force").stdout.startswith(
        "client,type,score,share,share low,share high,amount,verdict\n"
    )


def test_a_saved_answer_is_paid_like_the_run(run, tmp_path):
    assessor = CoAst(keep=0.5)
    for fl_round in fixture_a.rounds("observer"):
        assessor.observe(fl_round)
    answer = assessor.assessment()
    (tmp_path / "answer.json").write_text(answer.to_json(), encoding="utf-8")
    (tmp_path / "answer.csv").write_text(answer.to_csv(), encoding="utf-8")
    options = ("--rule", "rank", "--budget", "0.05", "--csv", "--force")
    paid = [run_command(tmp_path / name, *options).stdout for name in ("answer.json", "answer.csv")]
    assert paid[0] == paid[1] == forced(answer, rule="rank", budget="0.05").to_csv()


@pytest.mark.parametrize("form", ["json", "csv"])
def test_names_in_a_saved_answer_keep_their_line_ends(tmp_path, form):
    odd = assessed({"a\rb": 3, "a\r\nb": 2, "a\nb": 1})
    file = tmp_path / f"answer.{form}"
    file.write_bytes((odd.to_json() if form == "json" else odd.to_csv()).encode())
    assert rewarding.answer(file, MethodOptions()).scores == odd.scores


def test_the_command_refuses_what_the_function_refuses(run, tmp_path):
    for options, message in (
        (("--budget", "1.001"), "two decimals"),
        ((), "too uncertain to pay for: no intervals: they need"),
    ):
        done = run_command(run, *options)
        assert isinstance(done.exception, BadSetting)
        assert message in str(done.exception)
    (tmp_path / "noise").write_bytes(b"\xff\xfe\x00")
    assert isinstance(run_command(tmp_path / "noise").exception, BadFile)


def test_too_few_rounds_are_said_in_words(tmp_path):
    with Recorder(tmp_path / "run") as recorder:
        recorder.observe(next(iter(fixture_a.rounds("observer"))))
    done = run_command(tmp_path / "run")
    assert done.exit_code == 4
    assert "Too early to say anything" in done.stdout


def test_the_worked_example_of_the_page_is_what_is_paid():
    """docs/rewards.md: bob and cid cannot be told apart and are paid for the middle, dan is idle, eve hurts."""
    rng = np.random.default_rng(3)
    scores = {"ann": 600, "bob": 300, "cid": 260, "dan": 0, "eve": -400}
    credits = {number: {} for number in range(40)}
    for client, score in scores.items():
        luck = rng.integers(-8, 9, size=40) * (client != "dan")
        luck[-1] -= luck.sum()
        for number in credits:
            credits[number][client] = score / 40 + float(luck[number])
    assessment = Assessment(
        "coast",
        {client: float(score) for client, score in scores.items()},
        credits,
        rounds_scored=dict.fromkeys(scores, 40),
        zero_is_idle=True,
        unchanged=dict.fromkeys(credits, ("dan",)),
    )
    paid = rewards(assessment, budget=1000)
    rows = re.findall(
        r"^\| (\w+) \| −?\d+ \| (\w+) \|.*\| ([\d.]+) \|$",
        (ROOT / "docs" / "rewards.md").read_text("utf-8"),
        flags=re.MULTILINE,
    )
    assert [row[0] for row in rows] == list(scores)
    for client, verdict, amount in rows:
        assert paid.verdicts[client] == verdict
        assert Decimal(amount) * 100 == paid.cents[client]


def test_clients_that_the_method_cannot_order_are_paid_equally():
    credits = {n: {"ann": 9.0 + n % 2, "bob": 5.0 + n % 3, "cid": 1.0 + n % 2} for n in range(30)}
    scores = {client: sum(of[client] for of in credits.values()) for client in ("ann", "bob", "cid")}
    answer = Assessment("mine", scores, credits, rounds_scored=dict.fromkeys(scores, 30), zero_is_idle=True)
    apart, tied = rewards(answer), rewards(replace(answer, unordered=(("ann", "bob"),)))
    assert apart.shares["ann"] > apart.shares["bob"]
    assert tied.shares["ann"] == tied.shares["bob"] > tied.shares["cid"]


def paid_for_rounds(change, seed):
    """What CoAst's default pays for a federation whose rounds were changed."""
    assessor = CoAst()
    for of in federation(seed=seed, rounds=20, clients=("ann", "bob", "cid", "dan")):
        assessor.observe(Round(of.number, of.start, change(dict(of.local), of.start), of.end))
    return rewards(assessor.assessment(), budget=100_000)


@pytest.mark.parametrize("seed", range(3))
def test_from_uploads_to_cents_riders_change_nobodys_amount_and_twins_are_paid_alike(seed):
    honest = paid_for_rounds(lambda local, start: local, seed)
    ridden = paid_for_rounds(lambda local, start: local | {"rider": start, "another": start}, seed)
    assert ridden.named("idle") == ("another", "rider")
    assert {client: ridden.cents[client] for client in honest.cents} == honest.cents
    assert ridden.cents["rider"] == ridden.cents["another"] == 0
    twins = paid_for_rounds(lambda local, start: local | {"twin": local["ann"]}, seed)
    assert abs(twins.cents["twin"] - twins.cents["ann"]) <= 1
