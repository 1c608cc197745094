"""`fedcoast verify` always ends in an answer or in one line that says why not."""

import json
import os
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audit.runs import coast, rounds
from command_line import fedcoast
from fedcoast import Recorder


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    assessor = coast()
    with Recorder(folder, ledger=assessor) as recorder:
        for fl_round in rounds(4):
            assessor.observe(fl_round)
            recorder.observe(fl_round)
    assessor.save(folder / "coast.state")
    (folder / "answer.json").write_text(assessor.assessment().to_json())
    (folder / "printed.json").write_text(fedcoast("assess", folder, "--keep", 0.5, "--json").stdout)
    return folder


@pytest.fixture
def run(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


def ends_well(run):
    done = fedcoast("verify", run)  # an exception would come through
    assert done.code in (0, 1, 3)
    return done


@pytest.mark.parametrize("value", ["x", 3, None, [], [["a", 1]]])
def test_settings_that_are_none_in_the_credits(run, value):
    path = run / "rounds" / "0000000002" / "credits.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "settings": value}))
    assert ends_well(run).code == 1


@pytest.mark.parametrize("file", ["answer.json", "printed.json"])
def test_an_integer_beyond_all_floats_is_no_score(run, file):
    content = json.loads((run / file).read_text())
    content["scores"][0] = 10**400
    (run / file).write_text(json.dumps(content))
    done = ends_well(run)
    assert done.code == 1
    assert f"DIFFERS: {file}: cannot be checked" in done.stdout


def test_a_link_to_itself(run):
    (run / "a.json").symlink_to("a.json")
    (run / "b.state").symlink_to("b.state")
    assert ends_well(run).code in (0, 1)


@pytest.mark.parametrize("name", ["pipe.json", "pipe.html", "pipe.state"])
def test_a_pipe_in_the_folder(run, name):
    os.mkfifo(run / name)
    ends_well(run)


FILES = ["run.json", "answer.json", "printed.json", "rounds/0000000002/round.json", "rounds/0000000003/link.json",
         "rounds/0000000003/credits.json"]  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(file=st.sampled_from(FILES), data=st.data())
def test_any_value_in_any_place_of_any_json(whole, tmp_path_factory, file, data):
    run = tmp_path_factory.mktemp("fuzz") / "run"
    shutil.copytree(whole, run)
    content = json.loads((run / file).read_text())
    place = content
    while isinstance(place, dict | list) and place:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            place[key] = data.draw(VALUES)
            break
        place = place[key]
    (run / file).write_text(json.dumps(content))
    ends_well(run)
    shutil.rmtree(run)
