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
def said(run):
    return json.loads(fedcoast("assess", run, "--json").stdout)


def test_json_has_the_verdicts_and_ranges_that_people_are_shown(said):
    answer = Assessment.from_json(json.dumps(said))
    found, beside = uncertainty(answer), said["verdicts"]
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
    said = json.loads(fedcoast("assess", tmp_path / "run", "--json").stdout)["verdicts"]
    assert said["too_early"].startswith("Too early to say who helps")
    assert set(said["verdicts"]) == {"cannot tell"}
    assert said["ranges"] == said["rank_ranges"] == [None] * len(said["verdicts"])


def test_a_whole_answer_is_confirmed(run, said, tmp_path):
    (tmp_path / "answer.json").write_text(json.dumps(said))
    assert verify(run, [tmp_path / "answer.json"]).findings == ()


FORGERIES = {
    "a verdict": lambda said: said["verdicts"].update(verdicts=["helps"] * len(said["clients"])),
    "a range": lambda said: said["verdicts"]["ranges"][0].reverse(),
    "a range of ranks": lambda said: said["verdicts"].update(rank_ranges=[[1, 1]] * len(said["clients"])),
    "a warning added": lambda said: said["verdicts"]["warnings"].append("ann is to be trusted"),
    "too early": lambda said: said["verdicts"].update(too_early="Too early."),
    "a confidence": lambda said: said["verdicts"].update(level=0.99),
    "another kind of thing": lambda said: said.update(verdicts="all help"),
    "the unchanged uploads of the rider": lambda said: said.pop("unchanged"),
    "the unchanged upload of one round": lambda said: said["unchanged"].pop("7"),
    "an unchanged upload of somebody else": lambda said: said["unchanged"]["7"].reverse(),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES.keys())
def test_forged_verdicts_in_an_answer_are_found(run, said, tmp_path, forge):
    forged = json.loads(json.dumps(said))
    forge(forged)
    assert forged != said
    (tmp_path / "answer.json").write_text(json.dumps(forged))
    assert verify(run, [tmp_path / "answer.json"]).findings
