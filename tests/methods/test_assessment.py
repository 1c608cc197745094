import json
import time
from dataclasses import replace

import numpy as np
import pytest

from fedcoast import Assessment, BadFile, CoAst
from federations import federation, show

SMALL = Assessment(
    method="coast",
    scores={"ann": 3, "bob": -2, 7: 3},
    credits={1: {"ann": 3, "bob": -2, 7: 1}, 2: {7: 2}},
    pending=(3,),
    rounds_scored={"ann": 1, "bob": 1, 7: 2},
    quarantined={2: {"bob": "late"}},
    settings={"keep": 0.1},
)


def test_ranks_are_the_papers_and_the_ranking_lists_the_best_first():
    assert SMALL.clients == (7, "ann", "bob")
    assert SMALL.ranks == {7: 2, "ann": 2, "bob": 3}
    assert SMALL.ranking == (7, "ann", "bob")


def test_the_mean_is_the_score_per_round_seen():
    assert SMALL.mean == {7: 1.5, "ann": 3.0, "bob": -2.0}


def test_adjusted_means_compare_clients_as_if_all_had_been_in_every_counted_round():
    assert SMALL.adjusted_mean == pytest.approx({7: 1.5, "ann": 3.5, "bob": -1.5})
    last = replace(SMALL, counted_rounds=(2,))
    assert last.counted == (2,)
    assert last.adjusted_mean == pytest.approx({7: 2, "ann": np.nan, "bob": np.nan}, nan_ok=True)
    assert replace(SMALL, credits={1: {"ann": 10**30}}).adjusted_mean["ann"] == pytest.approx(1e30)
    everyone = show(CoAst(horizon=1), federation(seed=13, rounds=5))
    assert everyone.adjusted_mean == pytest.approx(everyone.mean)
    assert replace(SMALL, credits={}).adjusted_mean == pytest.approx(dict.fromkeys(SMALL.clients, np.nan), nan_ok=True)


def test_the_table_shows_adjusted_means_only_where_participation_varies():
    assert "adjusted mean" in str(SMALL)
    assert "adjusted mean" not in str(show(CoAst(horizon=1), federation(seed=13, rounds=5)))
    moving_average = replace(SMALL, scores={"ann": 0.5, "bob": 0.2, 7: 0.3})
    assert SMALL.additive
    assert not moving_average.additive
    assert "adjusted mean" not in str(moving_average)


def test_clients_that_no_chain_of_common_rounds_connects_are_disconnected():
    met = replace(SMALL, credits={1: {"ann": 3, "bob": -3}, 2: {"bob": 1, 7: 3}})
    apart = replace(SMALL, credits={1: {"ann": 3, "bob": -2}, 2: {7: 3}})
    assert not met.has_disconnected_clients
    assert apart.has_disconnected_clients
    assert not replace(SMALL, credits={1: {"ann": 1, "bob": 2}}).has_disconnected_clients  # 7 has nothing to compare
    assert "Some clients share no rounds" in str(apart)
    assert "Some clients share no rounds" not in str(met)
    assert "Some clients share no rounds" not in str(replace(apart, scores={"ann": 0.5, "bob": 0.2, 7: 0.3}))  # no sums


def test_scores_that_cancel_out_are_sums_still():
    credits = {1: {"ann": 0.1, "bob": 0.2}, 2: {"ann": 0.2, "bob": 0.1}, 3: {"ann": -0.3, "bob": -0.3}}
    assert Assessment("mine", {"ann": 0.0, "bob": 0.0}, credits, rounds_scored={"ann": 3, "bob": 3}).additive


def test_the_correlation_with_a_truth_does_not_depend_on_its_order():
    assert SMALL.spearman({"bob": 0, "ann": 5, 7: 5}) == pytest.approx(1)
    assert SMALL.spearman({7: 0, "ann": 0, "bob": 9}) == pytest.approx(-1)
    assert np.isnan(SMALL.spearman({7: 1, "ann": 1, "bob": 1}))


def test_the_table_shows_every_client_its_numbers_and_what_is_not_final():
    text = str(SMALL)
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if line.startswith("│")]
    assert rows == [
        ["2", "7", "3", "2", "1.50", "1.50", ""],
        ["2", "ann", "3", "1", "3.00", "3.50", ""],
        ["3", "bob", "−2", "1", "−2.00", "−1.50", "1"],
    ]
    assert "Not final yet: round 3" in text


def test_the_table_cannot_be_forged_by_a_name():
    forged = Assessment("coast", scores={"a\n│ 1 │ me │ 99 │": 0, "[red]b[/red]": 1, "\x1b[2J": 2}, rounds_scored={
        "a\n│ 1 │ me │ 99 │": 1, "[red]b[/red]": 1, "\x1b[2J": 1})  # fmt: skip
    text = str(forged)
    assert "\x1b" not in text
    assert r"\x1b[2J" in text
    assert "[red]b[/red]" in text
    assert r"a\n│ 1 │ me" in text
    assert not any(line.startswith("│ 1 │ me") for line in text.splitlines())


def test_json_holds_numbers_as_numbers_and_clients_with_their_type():
    data = json.loads(SMALL.to_json())
    assert (data["format"], data["version"]) == ("fedcoast-assessment", 1)
    assert data["clients"] == [
        {"name": "7", "type": "int"}, {"name": "ann", "type": "str"}, {"name": "bob", "type": "str"},
    ]  # fmt: skip
    assert data["scores"] == [3, 3, -2]
    assert data["credits"] == {"1": [1, 3, -2], "2": [2, None, None]}
    assert data["quarantined"] == {"2": [None, None, "late"]}


def test_csv_has_a_row_a_client_and_a_column_a_round():
    head, *rows = SMALL.to_csv().splitlines()
    assert head == "client,type,rank,score,mean,seen,quarantined,method,settings,round 1,round 2,round 3 pending"
    assert rows[0] == '7,int,2,3,1.5,2,0,coast,"{""keep"": 0.1}",1,2,'
    assert rows[2] == 'bob,str,3,-2,-2.0,1,1,coast,"{""keep"": 0.1}",-2,quarantined: late,'


def changed(key, value):
    return json.dumps({**json.loads(SMALL.to_json()), key: value})


@pytest.mark.parametrize("text", [
    "", "{}", "[]", "null", "3", "{", "[" * 100_000, '{"format": "fedcoast-assessment"}',
    '{"format": "other", "version": 1}', '{"format": "fedcoast-assessment", "version": 2}', SMALL.to_json()[:-20],
    SMALL.to_json().replace('"int"', '"float"'), SMALL.to_json().replace('"7"', '"seven"'),
    SMALL.to_json().replace('"1": [', '"one": ['), SMALL.to_json().replace('"scores": [', '"scores": [1,'),
    SMALL.to_json().replace('"pending": [', '"pending": 3, "x": ['),
    *(changed(key, [value, 1, 1]) for key in ("scores", "seen") for value in (None, "3", True, [])),
    changed("scores", [float("nan"), 1, 1]), changed("credits", {"1": ["3", None, None]}),
    changed("quarantined", {"1": [3, None, None]}), changed("method", None), changed("settings", []),
    changed("pending", ["3"]),
])  # fmt: skip
def test_json_that_is_no_assessment_is_refused_by_our_own_error(text):
    with pytest.raises(BadFile):
        Assessment.from_json(text)


@pytest.mark.parametrize("text", [
    "", "client", "a,b,c\n1,2,3\n", SMALL.to_csv().splitlines()[0], SMALL.to_csv().replace("7,int", "seven,int"),
    SMALL.to_csv().replace("round 1", "round one"), SMALL.to_csv().replace("round 1", "first"),
    SMALL.to_csv().replace(",3,1.5,2,", ",3,1.5,two,"), SMALL.to_csv() + "x\n", SMALL.to_csv() + '\n"a\rb\n',
    SMALL.to_csv().replace(",3,1.5,2,", ",nan,1.5,2,"), SMALL.to_csv().replace('"{""keep"": 0.1}"', "3"),
    SMALL.to_csv().replace("{", "("), SMALL.to_csv() + "a\rb", "x" * 200_000, SMALL.to_csv().replace("round 1", ""),
])  # fmt: skip
def test_csv_that_is_no_assessment_is_refused_by_our_own_error(text):
    with pytest.raises(BadFile, match="CSV"):
        Assessment.from_csv(text)


@pytest.mark.parametrize(("name", "value"), [
    ("horizon", "five"), ("horizon", None), ("past_weight", "half"), ("past_weight", True),
    ("score_rounds", ["a", 3]), ("score_rounds", 5),
])  # fmt: skip
def test_a_setting_that_reports_count_with_is_refused_by_name_where_a_file_altered_it(name, value):
    answer = show(CoAst(horizon=1), federation(seed=13, rounds=3))
    altered = replace(answer, settings={**answer.settings, name: value})
    for read, text in ((Assessment.from_json, altered.to_json()), (Assessment.from_csv, altered.to_csv())):
        with pytest.raises(BadFile, match=name):
            read(text)
    assert Assessment.from_json(replace(altered, method="another").to_json()).settings[name] == value


def test_a_round_in_which_nobody_could_be_used_survives_both_forms():
    rounds = federation(seed=13, rounds=3)
    empty = Assessment("mine", {"a": 0}, credits={1: {}}, rounds_scored={"a": 0}, quarantined={1: {"a": "bad"}})
    assert Assessment.from_csv(empty.to_csv()) == Assessment.from_json(empty.to_json()) == empty
    assert show(CoAst(horizon=1), rounds) == Assessment.from_csv(show(CoAst(horizon=1), rounds).to_csv())


def test_an_assessment_of_thousands_of_clients_is_written_quickly():
    clients = range(5000)
    many = Assessment(
        "mine", dict.fromkeys(clients, 1), {1: dict.fromkeys(clients, 1)}, rounds_scored=dict.fromkeys(clients, 1)
    )
    before = time.perf_counter()
    assert Assessment.from_json(many.to_json()) == many
    assert Assessment.from_csv(many.to_csv()) == many
    assert time.perf_counter() - before < 5


def test_pairs_without_an_order_come_back_from_json():
    scored = dict.fromkeys(["ann", "bob", 3], 0)
    answer = Assessment(
        "mine", {"ann": 2.0, "bob": 1.0, 3: 0.0}, rounds_scored=scored, unordered=(("bob", 3), ("ann", 3))
    )
    assert set(map(frozenset, Assessment.from_json(answer.to_json()).unordered)) == {
        frozenset(pair) for pair in answer.unordered
    }
    assert '"unordered"' not in replace(answer, unordered=()).to_json()


@pytest.mark.parametrize("pairs", [[[0, 0]], [[0, 9]], [[0]], [[0.0, 1]], [[True, 1]], 7])
def test_pairs_of_nobody_are_refused(pairs):
    data = json.loads(replace(SMALL, unordered=(("ann", "bob"),)).to_json()) | {"unordered": pairs}
    with pytest.raises(BadFile, match="not an assessment in JSON"):
        Assessment.from_json(json.dumps(data))


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999"])
def test_settings_that_json_cannot_hold_are_refused(value):
    text = show(CoAst(), federation(rounds=3)).to_json().replace('"past_weight": 0.42', f'"past_weight": {value}')
    with pytest.raises(BadFile):
        Assessment.from_json(text)
    table = show(CoAst(), federation(rounds=3)).to_csv().replace('""past_weight"": 0.42', f'""past_weight"": {value}')
    assert value in table
    with pytest.raises(BadFile):
        Assessment.from_csv(table)


def test_settings_of_a_strangers_method_are_numbers_too():
    text = replace(SMALL, method="theirs").to_json().replace('"keep": 0.1', '"keep": Infinity')
    with pytest.raises(BadFile, match="not JSON compliant"):
        Assessment.from_json(text)
    table = replace(SMALL, method="theirs").to_csv().replace('""keep"": 0.1', '""keep"": Infinity')
    with pytest.raises(BadFile, match="not JSON compliant"):
        Assessment.from_csv(table)
