import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from fedcoast.analysis.health import Health
from fedcoast.reports.assess_rounds import assess_rounds
from fedcoast.reports.following import RunFollower
from fedcoast.reports.forms import to_json
from fedcoast.reports.markdown import markdown
from fedcoast.reports.page import page, poster, view
from fedcoast.reports.terminal import screen
from health import dying, of_before, record, with_unmoved
from report_samples import MADE, SCRIPT, small


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda handle: None)


def reported(lost, **options):
    return assess_rounds(with_unmoved(dying(lost, **options)), title="a run", made=MADE)


def test_the_warning_stands_near_the_top_of_the_page():
    text = page(reported([0, 0, 3, 4, 5]))
    place = text.index('<p class="warning"><strong>Health of the model:</strong> 50% of body was moved by no client')
    assert text.index('<p class="lead">') < place < text.index('<section id="ranking"')


def test_a_picture_of_the_answer_has_the_warning_too():
    assert '<p class="warning">' in poster(reported([0, 0, 3, 4, 5]))


def test_a_table_has_every_layer_over_the_rounds():
    html = view(reported([0, 0, 3, 4, 9]))["sections"]
    section = html[html.index('<section id="health"') :].partition("</section>")[0]
    assert '<a href="#health">Health of the model</a>' in view(reported([0, 0, 3]))["contents"]
    body = section[section.index("<bdi>body</bdi>") :].partition("</tr>")[0]
    assert "<td>90.0%</td><td>90.0%</td><td>round 3</td>" in body
    assert "▁▁▃▄█" in body
    by_round = section[section.index('id="health-rounds"') :]
    assert '<th scope="col">round 5</th>' in by_round
    assert "<td>0.0%</td><td>0.0%</td><td>30.0%</td><td>40.0%</td><td>90.0%</td>" in by_round


def test_a_healthy_model_is_shown_without_a_warning():
    text = page(reported([0, 5, 1]))
    assert 'class="warning"' not in text
    assert "At most 10.0% of a layer (body) was moved by no client in the last round." in text


def test_where_nothing_is_known_nothing_is_shown():
    text = page(small(rounds=6))
    assert 'id="health"' not in text
    assert 'class="warning"' not in text
    assert json.loads(to_json(small(rounds=6)))["health"] is None


def test_names_of_layers_are_escaped_in_every_form():
    report = reported([0, 3, 5], layer=SCRIPT + "|*b*")
    text = page(report)
    assert SCRIPT not in text
    assert "50% of &lt;script&gt;alert(1)&lt;/script&gt;|*b* was moved by no client" in text
    assert r"50% of &lt;script&gt;alert(1)&lt;/script&gt;\|\*b\* was moved" in markdown(report)


def test_of_very_many_layers_the_worst_are_shown_and_that_is_said():
    shares = {f"layer{place}": place / 100 for place in range(100)}
    html = view(replace(small(rounds=4), health=Health({1: shares})))["sections"]
    assert "(the 60 worst of 100 layers)" in html
    assert "<bdi>layer40</bdi>" in html
    assert "<bdi>layer39</bdi>" not in html


def test_many_rounds_share_columns():
    shares = {number: {"body": number / 100} for number in range(1, 101)}
    html = view(replace(small(rounds=4), health=Health(shares)))["sections"]
    assert '<th scope="col">rounds 1–9</th>' in html
    assert "<td>5.0%</td>" in html


def test_programs_get_the_shares_of_all_rounds():
    found = json.loads(to_json(reported([0, 4])))["health"]
    assert (found["layer"], found["since"], found["rounds"]) == ("body", 2, [1, 2])
    assert found["unmoved_by_round"] == {"body": [0.0, 0.4], "head": [0.0, 0.0]}


def test_a_run_that_is_followed_shows_its_health_as_it_grows(tmp_path):
    rounds = dying([0, 0, 3, 4])
    follower = RunFollower(record(tmp_path / "run", rounds[:2]))
    follower.catch_up()
    assert 'class="warning"' not in view(follower.report())["summary"]
    record(tmp_path / "run", rounds[2:])
    follower.catch_up()
    assert "40% of body was moved by no client in round 4" in view(follower.report())["summary"]
    out = io.StringIO()
    Console(file=out, width=200).print(screen(follower))
    assert "40% of body was moved by no client in round 4" in out.getvalue()


def test_of_an_older_recording_that_is_followed_the_last_round_is_known(tmp_path):
    follower = RunFollower(of_before(record(tmp_path / "run", dying([0, 0, 4]))))
    follower.catch_up()
    assert follower.report().health.shares == {1: None, 2: None, 3: {"body": 0.4, "head": 0.0}}
    assert "earlier rounds do not tell" in follower.report().health.warning()
