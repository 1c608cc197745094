"""A run valued in pieces gives the answer of one machine, to the last integer and the last word; without Ray."""

import logging
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcoast import BadFile, BadRound, BadSetting, BadUpload, CoAst, Recorder, replay
from fedcoast.integrations.ray.assess import assess_in_shards
from fedcoast.integrations.ray.shard_worker import score_shard
from fedcoast.storage.tensors import open_tensors, write_tensors
from federations import LAYERS, federation, show, with_upload
from strategies import federations, options, steady

ROUNDS = federation(seed=3, rounds=9, clients=("ann", "bob", "cid", 7))


def record(folder, rounds, **settings):
    with Recorder(folder, **settings) as recorder:
        for fl_round in rounds:
            recorder.observe(fl_round)
    return folder


def checkpoints(folder, rounds):
    for fl_round in rounds:
        place = folder / f"round-{fl_round.number}"
        (place / "clients").mkdir(parents=True)
        np.savez(place / "start.npz", **fl_round.start)
        np.savez(place / "end.npz", **fl_round.end)
        for client, model in fl_round.local.items():
            np.savez(place / "clients" / f"{client}.npz", **model)
    return folder


def backwards(tasks):
    """As a cluster would: through pickles, and in another order."""
    for place, task in reversed(list(enumerate(tasks))):
        yield place, pickle.loads(pickle.dumps(score_shard(pickle.loads(pickle.dumps(task)))))


def in_pieces(run, assessor, pieces=5):
    return assess_in_shards(run, assessor, pieces, backwards)


def spoil(run, number, index, change):
    """Alter a recorded upload behind the recorder's back."""
    file = run / "rounds" / f"{number:010d}" / f"client-{index:06d}.safetensors"
    arrays = {name: np.array(array) for name, array in open_tensors(file).items()}
    change(arrays)
    write_tensors(file, {name: (array, array.dtype.name) for name, array in arrays.items()})


def not_finite(layer):
    def change(arrays):
        arrays[layer][...] = np.nan

    return change


@steady
@given(federations(rounds=st.integers(1, 7)), options(), st.integers(1, 9))
def test_any_run_in_any_pieces_has_the_same_assessment(tmp_path_factory, rounds, settings, pieces):
    run = record(tmp_path_factory.mktemp("any") / "run", rounds)
    assert in_pieces(run, CoAst(**settings), pieces) == show(CoAst(**settings), replay(run))


@pytest.mark.parametrize("reference", ["others", "movement", "votes"])
@pytest.mark.parametrize("layers", ["all", "head", "hidden.*"])
@pytest.mark.parametrize("pieces", [1, 4, 30])
def test_a_client_bad_in_one_layer_is_out_of_the_round_in_all(tmp_path, reference, layers, pieces):
    run = record(tmp_path / "run", ROUNDS)
    spoil(run, 4, 1, not_finite("head.bias"))
    spoil(run, 4, 2, not_finite("hidden.bias"))
    spoil(run, 4, 2, not_finite("head.weight"))
    spoil(run, 5, 0, lambda arrays: arrays.update(scale=np.zeros(3, np.float32)))
    spoil(run, 6, 3, lambda arrays: arrays.pop("scale"))
    (run / "rounds" / f"{8:010d}" / "client-000002.safetensors").write_bytes(b"torn")
    coast = CoAst(keep=0.3, reference=reference, layers=layers)
    alone = show(CoAst(keep=0.3, reference=reference, layers=layers), replay(run))
    assert in_pieces(run, coast, pieces) == alone
    assert {number: len(reasons) for number, reasons in alone.quarantined.items()} == {4: 2, 5: 1, 6: 1, 8: 1}


@pytest.mark.parametrize("pieces", [1, 4, 30])
def test_a_client_bad_in_a_buffer_is_out_for_the_reason_that_one_machine_meets_first(tmp_path, pieces):
    run = record(tmp_path / "run", [replace(fl_round, buffers=["hidden.bias", "head.bias"]) for fl_round in ROUNDS])
    for layer in ("head.bias", "hidden.bias", "head.weight"):
        spoil(run, 4, 2, not_finite(layer))
    spoil(run, 5, 1, not_finite("head.bias"))
    alone = show(CoAst(keep=0.3, layers="all"), replay(run))
    assert in_pieces(run, CoAst(keep=0.3, layers="all"), pieces) == alone
    assert {number: len(reasons) for number, reasons in alone.quarantined.items()} == {4: 1, 5: 1}


def test_what_the_recording_knows_to_be_bad_stays_so(tmp_path):
    bad = with_upload(ROUNDS[3], "bob", {name: array * np.nan for name, array in ROUNDS[3].start.items()})
    run = record(tmp_path / "run", [*ROUNDS[:3], bad, *ROUNDS[4:]])
    coast = CoAst.paper(keep=0.3, tiny_layers="one")
    answer = in_pieces(run, coast)
    assert answer == show(CoAst.paper(keep=0.3, tiny_layers="one"), replay(run))
    assert "must be finite" in answer.quarantined[4]["bob"]


def test_bad_uploads_raise_what_one_machine_would_have_raised_first(tmp_path):
    run = record(tmp_path / "run", ROUNDS)
    spoil(run, 4, 2, not_finite("hidden.bias"))
    spoil(run, 4, 1, not_finite("head.bias"))
    with pytest.raises(BadUpload) as alone:
        show(CoAst(bad_uploads="raise"), replay(run))
    with pytest.raises(BadUpload) as together:
        in_pieces(run, CoAst(bad_uploads="raise"), 9)
    assert str(together.value) == str(alone.value)


def test_a_quarantine_that_comes_to_light_is_logged_once(tmp_path, caplog):
    run = record(tmp_path / "run", ROUNDS)
    spoil(run, 4, 2, not_finite("hidden.bias"))
    with caplog.at_level(logging.WARNING, "fedcoast"):
        assess_in_shards(run, CoAst(), 4, lambda tasks: map(quietly, enumerate(tasks)))
    (message,) = [record.message for record in caplog.records]
    assert message.startswith("quarantined for this round: client 'bob': round 4, layer 'hidden.bias' must be finite")


def quietly(numbered):
    place, task = numbered
    logging.disable()
    try:
        return place, score_shard(task)
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    "settings", [{}, {"incomplete_rounds": "truncate", "horizon": 3}, {"signal": "pruned", "reference": "movement"}]
)
def test_ballots_alone_are_shared_out_too(tmp_path, settings):
    run = record(tmp_path / "run", ROUNDS, ballot_keep=0.25)
    coast, same = (CoAst(keep=0.25, **settings) for _ in range(2))
    assert in_pieces(run, coast) == show(same, replay(run))


def test_ballots_are_refused_as_on_one_machine(tmp_path):
    run = record(tmp_path / "run", ROUNDS, ballot_keep=0.25)
    with pytest.raises(BadSetting, match=r"holds ballots of keep=0\.25 only"):
        in_pieces(run, CoAst(keep=0.1))


def test_checkpoints_are_shared_out_by_rounds(tmp_path):
    folder = checkpoints(tmp_path / "checkpoints", ROUNDS)
    shared = []

    def work(tasks):
        shared.extend(task.shard for task in tasks)
        return backwards(tasks)

    coast = CoAst(reference="votes", keep=0.5)
    assert assess_in_shards(folder, coast, 4, work) == show(CoAst(reference="votes", keep=0.5), replay(folder))
    assert len(shared) == 4
    assert all(set(shard.layers) == set(LAYERS) for shard in shared)


def test_a_client_that_comes_late_or_never_again_is_counted_where_it_was(tmp_path):
    rounds = [replace(r, local={c: m for c, m in r.local.items() if c != 7 or r.number == 9}) for r in ROUNDS]
    run = record(tmp_path / "run", rounds)
    answer = in_pieces(run, CoAst(horizon=1))
    assert answer == show(CoAst(horizon=1), replay(run))
    assert (answer.scores[7], answer.rounds_scored[7]) == (0, 0)


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_runs_too_short_for_an_answer_say_the_same(tmp_path, rounds):
    run = record(tmp_path / "run", ROUNDS[:rounds])
    assert in_pieces(run, CoAst()) == show(CoAst(), replay(run))


def test_a_bad_global_model_is_refused_at_the_first_round_that_has_one(tmp_path):
    run = record(tmp_path / "run", ROUNDS)
    for number, layer in ((7, "hidden.weight"), (4, "head.bias")):
        file = run / "rounds" / f"{number:010d}" / "end.safetensors"
        arrays = {name: np.array(array) for name, array in open_tensors(file).items()}
        arrays[layer][...] = np.inf
        write_tensors(file, {name: (array, array.dtype.name) for name, array in arrays.items()})
    with pytest.raises(BadRound, match=r"round 4, global model after: layer 'head\.bias' must be finite"):
        in_pieces(run, CoAst())


def test_a_layer_that_is_not_there_and_a_folder_that_is_none_are_said_at_once(tmp_path):
    run = record(tmp_path / "run", ROUNDS[:2])
    with pytest.raises(BadSetting, match="chooses none of the model's layers"):
        in_pieces(run, CoAst(layers="fc.*"))
    with pytest.raises(BadFile, match="is not a folder"):
        in_pieces(tmp_path / "nowhere", CoAst())


def test_a_shard_reads_the_layers_it_needs_and_no_uploads_of_the_future(tmp_path, monkeypatch):
    import fedcoast.storage.tensors as tensors

    read = []
    really = tensors._MappedTensors.__getitem__

    def watched(self, name):
        read.append((self._path.parent.name.lstrip("0"), self._path.name, name))
        return really(self, name)

    monkeypatch.setattr(tensors._MappedTensors, "__getitem__", watched)
    run = record(tmp_path / "run", ROUNDS)
    tasks = []
    with pytest.raises(KeyError):  # nobody works, so nothing comes of it
        assess_in_shards(run, CoAst(horizon=1, reference="movement"), 12, lambda given: iter(tasks.extend(given) or ()))
    first = next(task for task in tasks if task.shard.future)
    read.clear()
    score_shard(first)
    assert {layer for _, _, layer in read} == set(first.shard.layers)
    uploads = {number for number, file, _ in read if file.startswith("client")}
    assert uploads == {str(number) for number in first.shard.rounds}
