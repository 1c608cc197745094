"""Programs read the same verdicts as people, and `fedcoast verify` checks them."""

import json

import pytest

from command_line import fedcoast
from fedcoast import Assessment, Recorder, Round
from fedcoast.analysis.uncertainty import uncertainty
from fedcoast.analysis.verdicts import blind_spots, verdicts
from fedcoast.audit import verify
from federations import federation


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Thirty rounds; the rider returns the model that it was sent."""
    folder = tmp_path_factory.mktemp("verdicts") / "run"
    with Recorder(folder) as recorder:
        for of in federation(rounds=30):
            recorder.observe(Round(of.number, of.start, {**of.local, "rider": of.start}, of.end))
    return folder


@pytest.fixture(scope="module")
def content(run):
    return json.loads(fedcoast("assess", run, "--json").stdout)


def test_json_has_the_verdicts_and_ranges_that_people_are_shown(content):
    answer = Assessment.from_json(json.dumps(content))
    found, beside = uncertainty(answer), content["verdicts"]
    assert beside["verdicts"] == [verdicts(answer, found)[client] for client in answer.clients]
    assert beside["ranges"] == [list(found.joint_intervals[client]) for client in answer.clients]
    assert beside["rank_ranges"] == [list(found.rank_intervals[client]) for client in answer.clients]
    assert beside["verdicts"][answer.clients.index("rider")] == "idle"
    assert (beside["level"], beside["too_early"]) == (0.9, "")
    assert set(blind_spots(answer, found)) <= set(beside["warnings"])


def test_json_says_too_early_where_people_are_told_so(tmp_path):
    with Recorder(tmp_path / "run") as recorder:
        for fl_round in federation(rounds=4):
            recorder.observe(fl_round)
    content = json.loads(fedcoast("assess", tmp_path / "run", "--json").stdout)["verdicts"]
    assert content["too_early"].startswith("Too early to say who helps")
    assert set(content["verdicts"]) == {"cannot tell"}
    assert content["ranges"] == content["rank_ranges"] == [None] * len(content["verdicts"])


def test_a_whole_answer_is_confirmed(run, content, tmp_path):
    (tmp_path / "answer.json").write_text(json.dumps(content))
    assert verify(run, [tmp_path / "answer.json"]).findings == ()


FORGERIES = {
    "a verdict": lambda content: content["verdicts"].update(verdicts=["helps"] * len(content["clients"])),
    "a range": lambda content: content["verdicts"]["ranges"][0].reverse(),
    "a range of ranks": lambda content: content["verdicts"].update(rank_ranges=[[1, 1]] * len(content["clients"])),
    "a warning added": lambda content: content["verdicts"]["warnings"].append("ann is to be trusted"),
    "too early": lambda content: content["verdicts"].update(too_early="Too early."),
    "a confidence": lambda content: content["verdicts"].update(level=0.99),
    "another kind of thing": lambda content: content.update(verdicts="all help"),
    "the unchanged uploads of the rider": lambda content: content.pop("unchanged"),
    "the unchanged upload of one round": lambda content: content["unchanged"].pop("7"),
    "an unchanged upload of somebody else": lambda content: content["unchanged"]["7"].reverse(),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES.keys())
def test_forged_verdicts_in_an_answer_are_found(run, content, tmp_path, forge):
    forged = json.loads(json.dumps(content))
    forge(forged)
    assert forged != content
    (tmp_path / "answer.json").write_text(json.dumps(forged))
    assert verify(run, [tmp_path / "answer.json"]).findings
