import csv
import io
import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from fedcoast import Assessment, BadSetting, CoAst
from fedcoast.analysis.uncertainty import uncertainty
from fedcoast.methods import CGSV, METHODS, Cosine
from fedcoast.methods.notebook import as_html
from fedcoast.methods.text import as_text
from fedcoast.reports.assess_rounds import assess_rounds, build_report
from fedcoast.reports.forms import to_csv, to_json
from fedcoast.reports.markdown import markdown
from fedcoast.reports.overview import ends, groups, means, windows
from fedcoast.reports.phrasing import coverage, findings, interval, number, settling
from fedcoast.reports.report_data import report_data
from fedcoast.reports.tables import layers_table, ranking_table
from fedcoast.stats.client_line import LARGEST_FACTOR
from federations import federation, show, with_upload
from report_samples import MADE, clear, small


def text_of(passages):
    return " ".join("".join(part if isinstance(part, str) else part.name for part in parts) for parts in passages)


# --- which layers the credit came from


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"past_weight": 0},
        {"keep": 0.5, "horizon": 3},
        {"score_rounds": slice(2, None)},
        {"score_rounds": slice(-3, None)},
        {"incomplete_rounds": "truncate"},
        {"incomplete_rounds": "truncate", "score_rounds": slice(-2, None)},
        {"line_weight": 0},
        {"signal": "update"},
        {"reference": "movement", "horizon": 2, "past_weight": 0.5, "layers": "first+head"},
        {"reference": "movement", "signal": "pruned", "keep": 0.5},
        {"reference": "movement", "signal": "parameters", "baseline": "none"},
        {"reference": "votes", "signal": "update"},
        {"layers": ["head.*"]},
    ],
)
def test_layers_add_up_to_the_scores_and_change_no_answer(options):
    rounds = federation(rounds=9, present=lambda number, client: (number + len(client)) % 4 or client == "ann")
    layered = CoAst(**options, track_layers=True)
    assert show(layered, rounds) == show(CoAst(**options), rounds)
    by_layer, scores = layered.assessment().by_layer, layered.assessment().scores
    assert {client: row.sum() for client, row in by_layer.agreement.items()} == pytest.approx(scores, rel=1e-12)
    assert len(by_layer.names) == (2 if options.get("layers") == ["head.*"] else 5)
    most = (1 + layered.config.past_weight) * LARGEST_FACTOR
    for client, row in by_layer.votes.items():
        assert np.all(np.abs(by_layer.agreement[client]) <= most * row)


def test_a_layer_alone_has_the_credit_that_coast_gives_to_it_alone():
    """Where credits are counts. Among the other clients a round weighs what all layers together say."""
    rounds = federation(rounds=8)
    layered = CoAst(keep=0.5, reference="movement", track_layers=True)
    show(layered, rounds)
    found = layered.assessment().by_layer
    for place, name in enumerate(found.names):
        alone = show(CoAst(keep=0.5, reference="movement", layers=[name]), rounds).scores
        assert {client: row[place] for client, row in found.agreement.items()} == alone


def test_shares_of_votes_are_shown_with_the_digits_that_a_reader_can_use():
    """Credits among the other clients are fractions: never cut to whole numbers, never with all their digits."""
    record = clear()
    layered, paid, plain = layers_table(record), record.rewards.table(), record.assessment.table()
    for summary in record.summaries:
        assert all(f">{number(float(net))}<" in layered for net in record.layers.agreement[summary.client])
    shown = "\n".join([layered, as_text(paid), as_text(plain), as_html(record.assessment), markdown(record)])
    assert "." in shown
    assert not re.search(r"\d\.\d{5}", re.sub(r'data-\w+="[^"]*"', "", shown))


def test_before_the_first_round_no_layer_is_known():
    assert CoAst(track_layers=True).assessment().by_layer is None


# --- what fits on a page


@pytest.mark.parametrize(("count", "most"), [(1, 5), (5, 5), (6, 5), (1000, 45), (46, 45), (7, 4)])
def test_everyone_is_in_exactly_one_row_and_the_ends_are_alone(count, most):
    rows = groups(count, most)
    assert [place for row in rows for place in row.places] == list(range(count))
    assert len(rows) <= most
    assert rows[0].alone
    assert rows[-1].alone


@pytest.mark.parametrize(("count", "most"), [(0, 5), (1, 5), (5, 5), (6, 5), (1000, 200), (999, 200)])
def test_every_round_is_in_exactly_one_window(count, most):
    columns = windows(range(count), most)
    assert [place for window in columns for place in window] == list(range(count))
    assert len(columns) <= most


def test_the_ends_are_the_best_and_the_worst():
    assert ends(1000, 5) == (0, 1, 2, 998, 999)


def test_the_mean_of_a_block_counts_only_who_was_there():
    table = np.array([[1.0, 2.0, np.nan], [3.0, np.nan, np.nan]])
    found = means(table, [(0, 1)], [(0, 1), (2,)])
    assert found[0, 0] == 2.0
    assert np.isnan(found[0, 1])


# --- the record


def test_standings_are_in_the_order_of_the_ranking_with_the_numbers_of_the_assessment():
    record = small()
    assert [summary.client for summary in record.summaries] == list(record.assessment.ranking)
    for summary in record.summaries:
        assert summary.score == record.assessment.scores[summary.client]
        assert summary.rank == record.assessment.ranks[summary.client]
        low, high = summary.interval
        assert low <= summary.score <= high
    assert sum(record.rewards.shares.values()) == 1
    assert math.isclose(sum(summary.share for summary in record.summaries), 1)


def test_the_timeline_ends_at_the_scores():
    record = small()
    assert record.cumulative[:, -1].tolist() == [summary.score for summary in record.summaries]


def test_only_counted_rounds_are_shown_and_the_others_named():
    rounds = federation(rounds=10)
    record = assess_rounds(rounds, CoAst(score_rounds=slice(3, None)), made=MADE)
    assert (record.rounds, record.uncounted) == ((4, 5, 6, 7, 8, 9), (1, 2, 3))
    assert record.additive


def test_a_verdict_needs_a_zero_that_means_something_and_an_interval():
    assert {summary.verdict for summary in small().summaries} <= {"helps", "hurts", "cannot tell"}
    few = small(rounds=4)
    assert [summary.verdict for summary in few.summaries] == ["cannot tell"] * 3
    assert few.too_early.startswith("Too early to say who helps: 3 rounds are scored, and ranges need 9")
    literal = assess_rounds(federation(rounds=30), CoAst.paper(), made=MADE)
    assert not literal.zero_is_idle
    assert [summary.verdict for summary in literal.summaries] == [None] * 3


@pytest.mark.parametrize(
    ("interval", "verdict"), [((1, 2), "helps"), ((-2, -1), "hurts"), ((-1, 1), "cannot tell"), ((0, 1), "cannot tell")]
)
def test_a_verdict_is_where_the_range_lies(interval, verdict):
    assessment = Assessment("coast", {"a": 0}, {1: {"a": 0}}, rounds_scored={"a": 1}, zero_is_idle=True)
    sure = uncertainty(assessment)
    sure = sure.__class__(**{**vars(sure), "joint_intervals": {"a": interval}})
    assert report_data(assessment, uncertainty=sure).summaries[0].verdict == verdict


def test_scores_that_are_no_sums_are_said_to_be_none():
    record = assess_rounds(federation(rounds=12), CGSV(), made=MADE)
    assert not record.additive
    assert "not sums" in record.range_note
    assert record.level is None


def test_methods_are_compared_on_the_same_rounds():
    record = small(others={"cosine": Cosine()}, truth={"ann": 3, "bob": 2, "cid": 1})
    assert list(record.comparison.assessments) == ["coast", "cosine"]
    assert [summary.true_rank for summary in record.summaries] == [1, 2, 3]


def test_a_truth_about_others_is_left_out():
    assert small(truth={"ann": 1}).summaries[0].true_rank is None


def test_when_the_method_itself_fails_the_report_does():
    with pytest.raises(BadSetting, match="coast has no answer"):
        assess_rounds(federation(rounds=4), CoAst(layers=["nothing"]), {"cosine": Cosine()})


def test_nobody_earned_anything_so_there_are_no_shares():
    assessment = Assessment("coast", {"a": -1, "b": -3}, {1: {"a": -1, "b": -3}}, rounds_scored={"a": 1, "b": 1})
    assert build_report(assessment).rewards is None
    with pytest.raises(BadSetting, match="too uncertain to pay for"):
        build_report(assessment, budget="100")


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if not method.needs])
def test_any_method_can_be_reported(method):
    record = assess_rounds(federation(rounds=5, clients=("a", "b", "c", "d")), METHODS[method].make(), made=MADE)
    assert record.measures == METHODS[record.method].measures
    assert len(record.summaries) == 4


def test_a_method_of_ones_own_can_be_reported():
    assert "its own" in report_data(Assessment("mine", {"a": 1}, rounds_scored={"a": 1})).measures


def test_quarantined_uploads_are_on_record():
    rounds = federation(rounds=6)
    bad = {name: array * np.nan for name, array in rounds[2].local["bob"].items()}
    record = assess_rounds([*rounds[:2], with_upload(rounds[2], "bob", bad), *rounds[3:]], made=MADE)
    ((number, client, reason),) = record.quarantined
    assert (number, client) == (3, "bob")
    assert "finite" in reason


def test_who_missed_rounds_is_compared_by_the_adjusted_mean_and_nobody_else_hears_of_it():
    def absent(fl_round):
        return replace(fl_round, local={client: fl_round.local[client] for client in fl_round.local if client != "bob"})

    rounds = [absent(fl_round) if fl_round.number % 3 else fl_round for fl_round in federation(rounds=30)]
    some, everybody = assess_rounds(rounds, made=MADE), small()
    level = some.assessment.adjusted_mean
    assert {summary.client: summary.adjusted_mean for summary in some.summaries} == level
    assert "compare the adjusted means" in coverage(some)
    for text in (markdown(some), ranking_table(some)):
        assert "adjusted mean" in text
        assert number(level["bob"]) in text
        assert interval(some.summaries[0].adjusted_interval) in text
    data = json.loads(to_json(some))["clients"]
    assert [of["adjusted_mean"] for of in data] == [summary.adjusted_mean for summary in some.summaries]
    head, first, *_ = csv.reader(io.StringIO(to_csv(some), newline=""))
    low, high = some.summaries[0].adjusted_interval
    assert [float(first[head.index(f"adjusted{end}")]) for end in (" mean", " low", " high")] == [
        some.summaries[0].adjusted_mean,
        low,
        high,
    ]
    assert not any(summary.adjusted_mean for summary in assess_rounds(rounds, CGSV(), made=MADE).summaries)
    assert "adjusted" not in coverage(everybody) + markdown(everybody) + ranking_table(everybody)


# --- in words


def test_the_findings_name_the_best_the_worst_and_what_is_pending():
    text = text_of(findings(clear()))
    assert text.startswith("ann contributed most.")
    assert "Round 45 has no score: a score needs later rounds." in text
    two = text_of(findings(assess_rounds(federation(rounds=30), CoAst(horizon=2), made=MADE)))
    assert "Rounds 29–30 have no score: a score needs later rounds." in two


def test_no_rounds_and_one_client_have_words_too():
    assert (
        text_of(findings(small(rounds=1)))
        == "Too early to say anything: no round has been scored yet. Rounds so far: 1."
    )
    assert "Too early to say who helps: 1 round is scored" in text_of(findings(small(rounds=2)))
    assert "There is one client." in text_of(findings(small(clients=("ann",))))


def test_those_who_cannot_be_told_apart_are_named_with_what_it_would_take():
    record = clear(clients=("ann", "bob", "cid", "dan"))
    text = text_of([settling(record)])
    together = [group for group in record.groups if len(group) > 1]
    assert together
    assert len(record.groups) > 1
    for place in together[0]:
        assert record.summaries[place].name in text
    assert "neighbours apart" in text or "hardly" in text


def test_numbers_and_names_of_clients_cannot_be_confused():
    record = assess_rounds(federation(rounds=4, clients=(7, "7", "")), made=MADE)
    assert {summary.name for summary in record.summaries} == {"client 7", "7", "client ''"}


def test_where_everybody_missed_a_round_it_is_said_in_words():
    """Trial 1.17: "0 of 50 clients took part in all"."""
    credits = {n: {client: 1.0 for at, client in enumerate("abc") if (n + at) % 3} for n in range(12)}
    scores = {client: float(sum(client in of for of in credits.values())) for client in "abc"}
    report = build_report(Assessment("mine", scores, credits, rounds_scored={c: int(s) for c, s in scores.items()}))
    assert coverage(report).startswith(
        "No client took part in all 12 valued rounds. Totals favour clients that took part often"
    )
