from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from fedcoast import BadRound, BFloat16, LazyModels, Recorder, Round, replay
from fedcoast.rounds.unmoved import layer_of, unmoved_in
from federations import federation, with_upload
from health import dying, of_before, record, with_unmoved
from strategies import federations, steady

START = {
    "block1.first.weight": np.zeros(4),
    "block1.first.bias": np.zeros(2),
    "scale": np.ones(()),
    "norm.running_mean": np.zeros(3),
    "steps": np.zeros(2, np.int64),
}


def upload(**changes):
    return {**START, **{name.replace("__", "."): np.asarray(value) for name, value in changes.items()}}


def shown(*uploads, **options):
    return Round(3, START, dict(enumerate(uploads)), START, **options)


def test_an_entry_counts_as_moved_if_one_client_moved_it():
    one = upload(block1__first__weight=[1.0, 0, 0, 0], block1__first__bias=[0.0, -1])
    other = upload(block1__first__weight=[0, 1e-300, 0, 0], scale=2.0)
    assert unmoved_in(shown(one, other)) == {"block1.first": 3 / 6, "scale": 0.0}
    assert unmoved_in(shown(one)) == {"block1.first": 4 / 6, "scale": 1.0}


def test_buffers_and_integers_do_not_count():
    busy = upload(norm__running_mean=[1.0, 2, 3], steps=[7, 7])
    assert unmoved_in(shown(busy)) == {"block1.first": 1.0, "scale": 1.0}


def test_an_upload_that_is_quarantined_does_not_count():
    mover = {name: array + 1 for name, array in START.items()}
    broken = {**mover, "scale": np.array(np.nan)}
    still = {"block1.first": 1.0, "scale": 1.0}
    assert unmoved_in(shown(START, broken)) == still
    assert unmoved_in(shown(START, mover, quarantined={1: "refused by the server"})) == still
    assert unmoved_in(shown(START, mover)) == {"block1.first": 0.0, "scale": 0.0}


def test_a_round_without_a_usable_upload_says_nothing(tmp_path):
    assert unmoved_in(shown(upload(scale=np.nan))) is None
    (back,) = replay(record(tmp_path / "run", [shown(upload(scale=np.nan))]))
    assert back.unmoved is None


def test_half_floats_are_compared_as_they_are():
    start = {"a.w": np.ones(4, np.float16), "b.w": BFloat16(np.ones(4, np.float32))}
    moved = {"a.w": np.float16([1, 1, 1, 2]), "b.w": BFloat16(np.float32([1, 2, 2, 2]))}
    assert unmoved_in(Round(1, start, {"x": moved}, start)) == {"a": 0.75, "b": 0.25}


@pytest.mark.parametrize(("name", "layer"), [("a.b.weight", "a.b"), ("w", "w"), (".w", ".w"), ("a.", "a")])
def test_a_layer_is_the_name_without_its_last_part(name, layer):
    assert layer_of(name) == layer


def by_definition(fl_round):
    """Entry by entry: still where every upload has the very number of the start."""
    found = {}
    for name, start in fl_round.start.items():
        for place in np.ndindex(start.shape):
            still = all(
                float(fl_round.local[client][name][place]) == float(start[place]) for client in fl_round.clients
            )
            found.setdefault(name.rpartition(".")[0] or name, []).append(still)
    return {layer: sum(entries) / len(entries) for layer, entries in found.items()}


@steady
@given(federations())
def test_it_is_what_the_definition_says_entry_by_entry(rounds):
    for fl_round in rounds:
        assert unmoved_in(fl_round) == by_definition(fl_round)


def test_uploads_are_loaded_one_at_a_time_and_once():
    (fl_round,) = federation(rounds=1)
    calls = []
    loaders = {c: lambda c=c: calls.append(c) or fl_round.local[c] for c in fl_round.clients}
    unmoved_in(replace(fl_round, local=LazyModels(loaders)))
    assert calls == list(fl_round.clients)


def test_a_recording_keeps_it_and_one_of_ballots_the_same(tmp_path):
    rounds = dying([0, 3, 6], frozen=1)
    wanted = [{"body": 0.0, "head": 0.25}, {"body": 0.3, "head": 0.25}, {"body": 0.6, "head": 0.25}]
    for name, options in (("whole", {}), ("ballots", {"ballot_keep": 0.1})):
        folder = record(tmp_path / name, rounds, **options)
        assert [back.unmoved for back in replay(folder)] == wanted


def test_what_a_recorder_quarantines_does_not_count(tmp_path):
    (first,) = dying([2])
    broken = {name: array * np.nan for name, array in first.local["ann"].items()}
    lazy = with_upload(with_upload(first, "ann", broken), "bob", first.start)
    (back,) = replay(record(tmp_path / "run", [lazy]))
    assert back.unmoved == {"body": 1.0, "head": 1.0}


@pytest.mark.parametrize("pruned", [None, 0.2])
def test_recording_a_replayed_round_keeps_it(tmp_path, pruned):
    once = record(tmp_path / "once", dying([0, 4]), ballot_keep=pruned)
    again = record(tmp_path / "again", replay(once))
    assert [back.unmoved for back in replay(again)] == [{"body": 0.0, "head": 0.0}, {"body": 0.4, "head": 0.0}]


def test_a_recording_of_before_is_read_and_whole_uploads_still_tell(tmp_path):
    whole = of_before(record(tmp_path / "whole", dying([0, 4])))
    assert [back.unmoved for back in replay(whole)] == [None, None]
    assert [back.unmoved for back in with_unmoved(replay(whole))] == [
        {"body": 0.0, "head": 0.0},
        {"body": 0.4, "head": 0.0},
    ]
    ballots = of_before(record(tmp_path / "ballots", dying([0, 4]), ballot_keep=0.1))
    assert [unmoved_in(back) for back in replay(ballots)] == [None, None]
    with Recorder(tmp_path / "ballots") as recorder:
        recorder.observe(dying([0, 0, 5])[2])
    assert [back.unmoved for back in replay(ballots)] == [None, None, {"body": 0.5, "head": 0.0}]


@pytest.mark.parametrize(
    "shares", [3, {"a": 2}, {"a": -0.1}, {"a": "much"}, {1: 0.5}, {"a": float("nan")}, {"a": True}]
)
def test_shares_that_are_none_are_refused(shares):
    with pytest.raises(BadRound, match="unmoved must map layers to shares from 0 to 1; got"):
        shown(START, unmoved=shares)


def test_a_part_of_a_round_does_not_speak_for_whole_layers():
    (fl_round,) = with_unmoved(dying([5]))
    assert fl_round.unmoved == {"body": 0.5, "head": 0.0}
    assert fl_round.part(fl_round.schema(), ["head.weight"]).unmoved is None
