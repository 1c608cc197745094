"""An assessor saved, and taken up by another: the same answer, or a clear word why not."""

import json
import logging

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import torn
from fedcoast import BadFile, BadSetting, CoAst, FedcoastError
from fedcoast.storage.tensors import read_tensors, write_tensors
from federations import federation, show

ROUNDS = federation(seed=12, rounds=6, present=lambda number, client: (number, client) != (2, "bob"))


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.CRITICAL, logger="fedcoast")


def saved(path, rounds=ROUNDS[:4], **settings):
    assessor = CoAst(**settings)
    show(assessor, rounds)
    assessor.save(path)
    return assessor


@pytest.mark.parametrize("stop", range(7))
def test_a_restored_assessor_goes_on_as_if_nothing_had_happened(tmp_path, stop):
    saved(tmp_path / "state", ROUNDS[:stop])
    other = CoAst()
    other.restore(tmp_path / "state")
    assert other.last_round == (stop or None)
    assert show(other, ROUNDS[stop:]).to_json() == show(CoAst(), ROUNDS).to_json()


def test_a_state_is_one_file_without_pickles(tmp_path):
    for settings, kinds in ({}, {"uint64", "float64"}), ({"reference": "movement"}, {"uint64", "float32", "int64"}):
        saved(tmp_path / "state", **settings)
        assert [path.name for path in tmp_path.iterdir()] == ["state"]
        arrays = load_file(tmp_path / "state")
        assert {array.dtype.name for array in arrays.values()} == kinds


def test_saving_twice_leaves_the_later_state(tmp_path):
    assessor = saved(tmp_path / "state")
    show(assessor, ROUNDS[4:])
    assessor.save(tmp_path / "state")
    other = CoAst()
    other.restore(tmp_path / "state")
    assert other.assessment() == assessor.assessment()


def test_restoring_forgets_what_was_there(tmp_path):
    assessor = saved(tmp_path / "state")
    other = CoAst()
    show(other, federation(seed=99, rounds=6, clients=("x", "y")))
    other.restore(tmp_path / "state")
    assert other.assessment() == assessor.assessment()


OTHERS = {
    "keep": 0.2, "step": 0.5, "horizon": 3, "past_weight": 0, "signal": "update", "reference": "votes",
    "baseline": "none", "layers": "head", "score_rounds": slice(1, None), "incomplete_rounds": "truncate",
    "ulp_tolerance": 0, "tiny_layers": "none", "bad_uploads": "raise",
}  # fmt: skip


@pytest.mark.parametrize("option", OTHERS)
def test_a_state_of_other_settings_is_refused_by_the_name_of_the_option(tmp_path, option):
    saved(tmp_path / "state")
    other = CoAst(**{option: OTHERS[option]})
    before = other.assessment()
    with pytest.raises(BadSetting, match=rf"state was saved with {option}=.*; this assessor has {option}="):
        other.restore(tmp_path / "state")
    assert other.assessment() == before


def test_the_first_option_that_differs_is_named_always_the_same(tmp_path):
    saved(tmp_path / "state")
    with pytest.raises(
        BadSetting, match=r"saved with keep=0\.1; this assessor has keep=0\.2\. Make it with the same settings$"
    ):
        CoAst(**{option: value for option, value in OTHERS.items() if option != "bad_uploads"}).restore(
            tmp_path / "state"
        )


def header_of(path):
    return read_tensors(path)[1]


def rewrite(path, change):
    tensors, header = read_tensors(path)
    write_tensors(path, {name: (array, array.dtype.name) for name, array in tensors.items()}, change(header))


HEADERS = {
    "nothing": lambda header: None,
    "a list": lambda header: [header],
    "a number": lambda header: 3,
    "another format": lambda header: header | {"format": "other"},
    "a later version": lambda header: header | {"version": 2},
    "another method": lambda header: header | {"method": "shapley"},
    **{f"no {key}": lambda header, key=key: {k: v for k, v in header.items() if k != key}
       for key in ("format", "version", "method", "settings", "last_round", "layout", "ledger", "facts")},
    "settings that are none": lambda header: header | {"settings": None},
    "settings that are a list": lambda header: header | {"settings": ["keep"]},
    "a layout that is none": lambda header: header | {"layout": [{"name": "w"}]},
    "a layout of numbers": lambda header: header | {"layout": [3]},
    "a ledger that is none": lambda header: header | {"ledger": None},
    "a ledger without credits": lambda header: header | {"ledger": {"quarantined": [], "met": []}},
    "credits that are numbers": lambda header: header | {"ledger": header["ledger"] | {"credits": [3]}},
    "a client that is none": lambda header: header
    | {"ledger": header["ledger"] | {"met": [{"name": 3, "type": "str"}]}},
    "facts that are none": lambda header: header | {"facts": None},
    "facts without pending": lambda header: header | {"facts": {}},
    "pending rounds that are not there": lambda header: header
    | {"facts": {"pending": [{"number": n, "clients": [{"name": "a", "type": "str"}] * 9} for n in range(2)]}},
}  # fmt: skip


@pytest.mark.parametrize("case", HEADERS)
def test_an_altered_state_is_refused_by_our_own_error_and_changes_nothing(tmp_path, case):
    saved(tmp_path / "state")
    rewrite(tmp_path / "state", HEADERS[case])
    other = CoAst()
    show(other, ROUNDS[:2])
    before, last = other.assessment(), other.last_round
    with pytest.raises(FedcoastError):
        other.restore(tmp_path / "state")
    assert (other.assessment(), other.last_round) == (before, last)
    assert show(other, ROUNDS[2:]) == show(CoAst(), ROUNDS)


def test_a_torn_state_is_refused_by_our_own_error_and_changes_nothing(tmp_path):
    saved(tmp_path / "state")
    good = (tmp_path / "state").read_bytes()
    other = CoAst()
    for content in [*(good[:length] for length in torn.cuts(good)), *torn.SAFETENSORS.values()]:
        (tmp_path / "state").write_bytes(content)
        with pytest.raises(BadFile):
            other.restore(tmp_path / "state")
    assert other.assessment() == CoAst().assessment()


def test_a_state_whose_arrays_are_gone_is_refused(tmp_path):
    saved(tmp_path / "state")
    tensors, header = read_tensors(tmp_path / "state")
    tensors.pop("0.claim.0")
    write_tensors(tmp_path / "state", {name: (array, array.dtype.name) for name, array in tensors.items()}, header)
    with pytest.raises(BadFile, match="is not as an assessor saves it"):
        CoAst().restore(tmp_path / "state")


def test_weights_of_someone_else_are_no_state(tmp_path):
    save_file({"w": np.zeros(3)}, tmp_path / "model.safetensors")
    with pytest.raises(BadFile, match="holds no assessor state"):
        CoAst().restore(tmp_path / "model.safetensors")


def test_files_that_are_not_there_are_our_own_errors(tmp_path):
    with pytest.raises(BadFile, match="cannot be read"):
        CoAst().restore(tmp_path / "nothing")
    with pytest.raises(BadFile, match="cannot be written"):
        CoAst().save(tmp_path / "no" / "such" / "folder")
    (tmp_path / "taken").mkdir()
    with pytest.raises(BadFile, match="cannot be written"):
        saved(tmp_path / "taken")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["taken"]


def test_a_state_says_what_it_is(tmp_path):
    saved(tmp_path / "state")
    header = header_of(tmp_path / "state")
    assert (header["format"], header["version"], header["method"], header["last_round"]) == (
        "fedcoast-state",
        1,
        "coast",
        4,
    )
    assert json.loads(json.dumps(header)) == header
