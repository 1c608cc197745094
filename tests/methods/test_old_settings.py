"""Files that earlier versions wrote under other option names are still read."""

import json

import pytest

from fedcoast import Assessment, CoAst, Recorder
from fedcoast.audit import verify
from fedcoast.methods import CoAstConfig
from fedcoast.methods.remaking import remade
from fedcoast.storage.old_settings import RENAMED, translated
from fedcoast.storage.tensors import read_tensors, write_tensors
from federations import federation, show
from paper import research_code

ROUNDS = federation(seed=12, rounds=6)


def in_old_words(settings):
    old = {new: name for name, new in RENAMED["coast"].items()}
    words = {old.get(name, name): value for name, value in settings.items()}
    return {name: "ends" if value == "first+head" else value for name, value in words.items()}


def old_answer(assessment):
    data = json.loads(assessment.to_json())
    return {**data, "settings": in_old_words(data["settings"])}


def test_every_old_name_stands_for_an_option_of_today():
    assert set(RENAMED["coast"].values()) <= {*CoAstConfig.options()}
    assert not RENAMED["coast"].keys() & CoAstConfig.options().keys()


def test_settings_of_today_stay_as_they_are():
    settings = CoAst(layers=["ends.*"]).settings
    assert translated("coast", settings) == settings


@pytest.mark.parametrize("make", [CoAst, CoAst.paper, research_code.coast])
def test_an_old_answer_is_read_and_its_method_made_again(make):
    answer = show(make(score_rounds=slice(1, None)), ROUNDS)
    read = Assessment.from_json(json.dumps(old_answer(answer)))
    assert read == answer
    assert remade("coast", in_old_words(answer.settings)).settings == answer.settings
    new, old = (json.dumps(of).replace('"', '""') for of in (answer.settings, in_old_words(answer.settings)))
    table = answer.to_csv().replace(new, old)
    assert '""past""' in table
    assert Assessment.from_csv(table) == answer


def test_a_run_whose_credits_were_kept_under_old_names_goes_on_and_is_verified(tmp_path):
    coast = CoAst(keep=0.3)
    with Recorder(tmp_path / "run", ledger=coast) as recorder:
        for fl_round in ROUNDS[:4]:
            coast.observe(fl_round)
            recorder.observe(fl_round)
    for path in (tmp_path / "run").rglob("credits.json"):
        data = json.loads(path.read_text())
        path.write_text(json.dumps({**data, "settings": in_old_words(data["settings"])}))
    with Recorder(tmp_path / "run", ledger=coast) as recorder:
        for fl_round in ROUNDS[4:]:
            coast.observe(fl_round)
            recorder.observe(fl_round)


def test_an_old_state_is_restored_and_old_claims_are_verified(tmp_path):
    with Recorder(tmp_path / "run") as recorder:
        for fl_round in ROUNDS:
            recorder.observe(fl_round)
    coast = CoAst(keep=0.3)
    answer = show(coast, ROUNDS)
    coast.save(tmp_path / "new.state")
    tensors, header = read_tensors(tmp_path / "new.state")
    header["settings"] = in_old_words(header["settings"])
    arrays = {name: (array, array.dtype.name) for name, array in tensors.items()}
    write_tensors(tmp_path / "old.state", arrays, header)
    restored = CoAst(keep=0.3)
    restored.restore(tmp_path / "old.state")
    assert restored.assessment() == answer
    (tmp_path / "old.json").write_text(json.dumps(old_answer(answer)))
    found = verify(tmp_path / "run", [tmp_path / "old.state", tmp_path / "old.json"])
    assert found.findings == ()
