"""Rounds held in files give the answers of rounds held in memory, and no file is trusted that should not be."""

import gc
import json
import logging
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcoast import BadFile, BadSetting, CoAst
from fedcoast.kernels import ballot_encoder
from fedcoast.methods.coast import coast
from fedcoast.storage import spill as spilling
from fedcoast.storage.tensors import read_tensors, write_tensors
from federations import federation, show
from strategies import federations, options, steady

ROUNDS = federation(seed=21, rounds=6, present=lambda number, client: (number, client) != (2, "bob"))


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.CRITICAL, logger="fedcoast")


def by_movement(**settings):
    """CoAst against the movement of the global model, which is held too."""
    return CoAst(**{"reference": "movement", "horizon": 2, "past_weight": 0.5, "layers": "first+head", **settings})


def files(folder):
    return sorted(path.name for path in folder.glob("*.held"))


@steady
@given(federations(rounds=st.integers(2, 5)), options(), st.sampled_from([None, 0, "1KB", "1GB"]))
def test_where_rounds_are_held_makes_no_difference(tmp_path_factory, rounds, settings, memory):
    folder = tmp_path_factory.mktemp("spill")
    spilling = by_movement(**settings, spill_dir=folder, memory_limit=memory)
    assert show(spilling, rounds) == show(by_movement(**settings), rounds)
    num_files = min(len(rounds), settings["horizon"]) + (
        settings["past_weight"] > 0 and settings["reference"] == "movement"
    )
    assert memory is None or len(files(folder)) <= num_files
    assert memory is not None or len(files(folder)) == num_files


def test_how_many_threads_there_are_makes_no_difference(monkeypatch):
    monkeypatch.setattr(coast, "PARALLEL_FROM", 1)
    monkeypatch.setattr(ballot_encoder, "WORTHWHILE", 1)
    monkeypatch.setattr(ballot_encoder, "SHARED", 64)
    rounds = federation(seed=3, rounds=4, layers={"w": (90, 40), "b": (40,), "x": (1, 1)})
    for settings in (
        {},
        {"reference": "others"},
        {"reference": "votes", "signal": "update"},
        {"signal": "pruned", "step": "avg"},
    ):
        one, two = (show(by_movement(**settings, num_threads=threads), rounds) for threads in (1, 2))
        assert one == two
        assert any(one.scores.values())


def test_a_round_that_is_done_with_leaves_the_folder(tmp_path):
    assessor = by_movement(spill_dir=tmp_path)
    for count, round in enumerate(ROUNDS, start=1):
        assessor.observe(round)
        assert len(files(tmp_path)) == min(count, 2) + 1  # and the model before them
    del assessor
    gc.collect()
    assert files(tmp_path) == []


def test_a_round_that_raises_leaves_nothing_behind(tmp_path):
    bad = {name: np.full_like(array, np.nan) for name, array in ROUNDS[1].start.items()}
    assessor = by_movement(spill_dir=tmp_path, bad_uploads="raise")
    assessor.observe(ROUNDS[0])
    before = files(tmp_path)
    with pytest.raises(ValueError, match="must be finite"):
        assessor.observe(replace(ROUNDS[1], local={**ROUNDS[1].local, "zoe": bad}))
    assert files(tmp_path) == before
    assert show(assessor, ROUNDS[1:]) == show(by_movement(bad_uploads="raise"), ROUNDS)


def test_what_is_held_in_memory_stays_within_the_budget(tmp_path):
    for settings in ({}, {"reference": "others"}, {"reference": "votes", "signal": "parameters"}):
        assessor, most = by_movement(spill_dir=tmp_path, memory_limit="1KB", horizon=4, **settings), 0
        for round in ROUNDS:
            assessor.observe(round)
            in_memory = [one.in_memory for one in assessor._state.in_store]
            most = max(most, sum(in_memory))
            assert len(files(tmp_path)) == in_memory.count(0)
        assert 0 < most <= 1000
        assert files(tmp_path)
        del assessor
        gc.collect()


@pytest.mark.parametrize("stop", range(1, 7))
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"reference": "others", "horizon": 1},
        {"reference": "others", "horizon": 2},
        {"reference": "votes"},
        {"signal": "pruned"},
        {"memory_limit": "0.5KB", "horizon": 3},
    ],
)
def test_a_restored_assessor_goes_on_with_its_files(tmp_path, stop, settings):
    first = by_movement(spill_dir=tmp_path / "spill", **settings)
    show(first, ROUNDS[:stop])
    first.save(tmp_path / "state")
    show(first, ROUNDS[stop:])  # its later rounds never reached a state
    del first
    gc.collect()
    other = by_movement(spill_dir=tmp_path / "spill", **settings)
    other.restore(tmp_path / "state")
    plain = by_movement(**{option: value for option, value in settings.items() if option != "memory_limit"})
    assert show(other, ROUNDS[stop:]) == show(plain, ROUNDS)


def test_a_state_with_files_is_small_and_names_them(tmp_path):
    assessor = by_movement(spill_dir=tmp_path / "spill")
    show(assessor, ROUNDS)
    assessor.save(tmp_path / "state")
    tensors, header = read_tensors(tmp_path / "state")
    assert set(tensors) == {"1.followed", "2.followed"}
    assert sorted(one["sheaf"]["file"] for one in header["facts"]["pending"]) == files(tmp_path / "spill")
    json.dumps(header)


def test_only_the_files_of_the_last_state_are_kept_for_it(tmp_path):
    assessor = by_movement(spill_dir=tmp_path / "spill")
    for round in ROUNDS[:3]:
        assessor.observe(round)
    assessor.save(tmp_path / "state")
    named = set(files(tmp_path / "spill"))
    for round in ROUNDS[3:]:
        assessor.observe(round)
        assert named <= set(files(tmp_path / "spill"))
        assert len(files(tmp_path / "spill")) <= 6
    assessor.save(tmp_path / "state")
    assert len(files(tmp_path / "spill")) == 3
    del assessor
    gc.collect()
    assert len(files(tmp_path / "spill")) == 3


def left_behind(folder):
    """What a killed process leaves: files nobody names, one of them half written."""
    folder.mkdir(exist_ok=True)
    (folder / "round-0000000001-0123456789abcdef.held").write_bytes(b"\1" * 640)
    (folder / "round-0000000002-0123456789abcdef.held").write_bytes(b"")
    (folder / "notes.txt").write_text("mine")


def test_what_a_dead_process_left_is_cleared_away_and_nothing_else(tmp_path):
    left_behind(tmp_path / "spill")
    assert show(by_movement(spill_dir=tmp_path / "spill"), ROUNDS) == show(by_movement(), ROUNDS)
    gc.collect()
    assert sorted(path.name for path in (tmp_path / "spill").iterdir()) == [".lock", "notes.txt"]


def test_restoring_clears_what_the_state_does_not_name(tmp_path):
    first = by_movement(spill_dir=tmp_path / "spill")
    show(first, ROUNDS[:4])
    first.save(tmp_path / "state")
    del first
    gc.collect()
    left_behind(tmp_path / "spill")
    other = by_movement(spill_dir=tmp_path / "spill")
    other.restore(tmp_path / "state")
    assert len(files(tmp_path / "spill")) == 3
    assert show(other, ROUNDS[4:]) == show(by_movement(), ROUNDS)


@pytest.mark.parametrize("harm", ["torn", "altered", "gone", "swapped"])
def test_a_file_that_is_not_as_it_was_is_refused_and_nothing_changes(tmp_path, harm):
    first = by_movement(spill_dir=tmp_path / "spill")
    show(first, ROUNDS[:4])
    first.save(tmp_path / "state")
    del first
    gc.collect()
    one, two, _ = (tmp_path / "spill" / name for name in files(tmp_path / "spill"))
    content = one.read_bytes()
    if harm == "torn":
        one.write_bytes(content[:-64])
    elif harm == "altered":
        one.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    elif harm == "gone":
        one.unlink()
    else:
        one.write_bytes(two.read_bytes())
    other = by_movement(spill_dir=tmp_path / "spill")
    before = other.assessment()
    with pytest.raises(BadFile, match=r"torn or altered|missing but referenced by the saved state"):
        other.restore(tmp_path / "state")
    assert other.assessment() == before
    assert two.exists()


def test_a_folder_has_one_assessor_at_a_time(tmp_path):
    first, second = by_movement(spill_dir=tmp_path), by_movement(spill_dir=tmp_path)
    first.observe(ROUNDS[0])
    with pytest.raises(BadFile, match=r"another process is spilling to .*; give each a folder of its own"):
        second.observe(ROUNDS[0])
    del first
    gc.collect()
    assert show(second, ROUNDS) == show(by_movement(), ROUNDS)


def test_a_state_with_files_wants_its_folder(tmp_path):
    assessor = by_movement(spill_dir=tmp_path / "spill")
    show(assessor, ROUNDS[:3])
    assessor.save(tmp_path / "state")
    with pytest.raises(BadSetting, match="spill_dir= named; name the same one"):
        by_movement().restore(tmp_path / "state")
    with pytest.raises(BadFile, match="missing but referenced by the saved state"):
        by_movement(spill_dir=tmp_path / "elsewhere").restore(tmp_path / "state")


def test_a_state_in_memory_can_be_gone_on_with_in_files_and_back(tmp_path):
    first = by_movement()
    show(first, ROUNDS[:3])
    first.save(tmp_path / "state")
    second = by_movement(spill_dir=tmp_path / "spill")
    second.restore(tmp_path / "state")
    assert show(second, ROUNDS[3:]) == show(by_movement(), ROUNDS)


def test_a_state_of_an_earlier_fedcoast_is_refused_in_words(tmp_path):
    assessor = by_movement()
    show(assessor, ROUNDS[:3])
    assessor.save(tmp_path / "state")
    tensors, header = read_tensors(tmp_path / "state")
    del header["facts"]["form"]
    write_tensors(tmp_path / "state", {name: (array, array.dtype.name) for name, array in tensors.items()}, header)
    with pytest.raises(BadFile, match="is of an earlier fedcoast, which held a byte for every entry; show the rounds"):
        by_movement().restore(tmp_path / "state")


@pytest.mark.parametrize(
    "array", [np.zeros((2, 1), np.uint8), np.zeros((1, 2), np.uint64), np.zeros((2, 99), np.uint64)]
)
def test_planes_of_another_form_are_refused(tmp_path, array):
    assessor = by_movement()
    show(assessor, ROUNDS[:3])
    assessor.save(tmp_path / "state")
    tensors, header = read_tensors(tmp_path / "state")
    tensors["1.claim.0"] = array
    write_tensors(tmp_path / "state", {name: (one, one.dtype.name) for name, one in tensors.items()}, header)
    with pytest.raises(BadFile, match=r"holds planes of .*; it was altered"):
        by_movement().restore(tmp_path / "state")


@pytest.mark.parametrize("settings", [{}, {"reference": "votes"}])
def test_a_trace_of_another_form_is_refused(tmp_path, settings):
    assessor = by_movement(**settings)
    show(assessor, ROUNDS[:3])
    assessor.save(tmp_path / "state")
    tensors, header = read_tensors(tmp_path / "state")
    tensors["1.trace.0"] = np.zeros((3, 3), np.float32)
    write_tensors(tmp_path / "state", {name: (one, one.dtype.name) for name, one in tensors.items()}, header)
    with pytest.raises(BadFile, match="holds neither a model nor votes"):
        by_movement(**settings).restore(tmp_path / "state")


@pytest.mark.parametrize("memory", ["500", "lots", -1, 1.5, True, "5 XB"])
def test_an_amount_of_memory_that_is_none_is_refused(tmp_path, memory):
    with pytest.raises(BadSetting, match="a size must be a number of bytes, or a text such as '500MB'"):
        by_movement(spill_dir=tmp_path, memory_limit=memory)


def test_a_budget_without_a_folder_and_a_folder_that_is_none_are_refused(tmp_path):
    with pytest.raises(
        BadSetting, match="memory_limit='1MB' needs a folder for what exceeds it; name one with spill_dir="
    ):
        by_movement(memory_limit="1MB")
    with pytest.raises(BadSetting, match="spill_dir must be a folder, for what does not fit in memory; got 3"):
        by_movement(spill_dir=3)
    (tmp_path / "taken").write_text("")
    with pytest.raises(BadFile, match="cannot be a folder to spill to"):
        by_movement(spill_dir=tmp_path / "taken").observe(ROUNDS[0])


def test_a_full_disk_costs_the_round_and_nothing_else(tmp_path, monkeypatch):
    assessor = by_movement(spill_dir=tmp_path)
    show(assessor, ROUNDS[:3])
    before = assessor.assessment(), files(tmp_path)

    def full(self, *pieces):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(spilling.SpillFile, "_append", full)
        with pytest.raises(BadFile, match=r"cannot be used to spill to .*No space left"):
            assessor.observe(ROUNDS[3])
    assert (assessor.assessment(), files(tmp_path)) == before
    assert show(assessor, ROUNDS[3:]) == show(by_movement(), ROUNDS)
