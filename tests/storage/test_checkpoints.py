"""Plain checkpoint folders, as other people's training scripts leave them."""

import json
import logging

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from fedcoast import BadSetting, CoAst, Recorder, replay
from federations import bits, federation, round_bits, show

LAYERS = {"w": (4, 5), "b": (5,)}
ROUNDS = federation(seed=8, rounds=3, layers=LAYERS)


def tensors(model):
    return {name: torch.from_numpy(np.array(array)) for name, array in model.items()}


SAVE = {
    "npz": lambda model, file: np.savez(file, **model),
    "pt": lambda model, file: torch.save(tensors(model), file),
    "pth": lambda model, file: torch.save(tensors(model), file, _use_new_zipfile_serialization=False),
    "safetensors": lambda model, file: save_file(tensors(model), file),
}


def write(folder, rounds, ending="npz", name="round-{}", start=True, end=True):
    """Start and end of which rounds are written: all, none, or those in a set of numbers."""
    for fl_round in rounds:
        place = folder / name.format(fl_round.number)
        (place / "clients").mkdir(parents=True)
        if start is True or (start and fl_round.number in start):
            SAVE[ending](fl_round.start, place / f"start.{ending}")
        if end is True or (end and fl_round.number in end):
            SAVE[ending](fl_round.end, place / f"end.{ending}")
        for client, model in fl_round.local.items():
            SAVE[ending](model, place / "clients" / f"{client}.{ending}")
    return folder


def same(folder, rounds):
    assert [round_bits(fl_round) for fl_round in replay(folder)] == [round_bits(fl_round) for fl_round in rounds]


@pytest.mark.parametrize("ending", SAVE)
def test_checkpoints_of_every_kind_are_the_rounds_they_were_made_from(tmp_path, ending):
    same(write(tmp_path, ROUNDS, ending), ROUNDS)


@pytest.mark.parametrize("name", ["round-{}", "round_{:04d}", "{}", "epoch.{}", "Runde {}"])
def test_folders_may_have_any_name_that_ends_in_the_number(tmp_path, name):
    rounds = federation(seed=8, rounds=12, layers=LAYERS)
    same(write(tmp_path, rounds, name=name), rounds)


def test_starts_may_be_left_out_where_the_round_before_has_an_end(tmp_path):
    same(write(tmp_path, ROUNDS, start={1}), ROUNDS)


def test_ends_may_be_left_out_where_the_next_round_has_a_start(tmp_path):
    same(write(tmp_path, ROUNDS, end={3}), ROUNDS)


def test_kinds_of_files_may_be_mixed(tmp_path):
    write(tmp_path, ROUNDS)
    file = tmp_path / "round-2" / "clients" / "bob.npz"
    file.unlink()
    SAVE["pt"](ROUNDS[1].local["bob"], file.with_suffix(".PT"))
    same(tmp_path, ROUNDS)


def test_weights_are_read_where_they_are_given(tmp_path):
    write(tmp_path, ROUNDS)
    (tmp_path / "round-2" / "weights.json").write_text(json.dumps({"ann": 3, "bob": 2, "cid": 1}))
    assert [fl_round.weights for fl_round in replay(tmp_path)] == [None, {"ann": 3, "bob": 2, "cid": 1}, None]


@pytest.mark.parametrize("wrap", [
    lambda model: {"state_dict": model, "epoch": 7},
    lambda model: {"model_state_dict": model, "optimizer_state_dict": {"lr": 0.1}},
    lambda model: {"model": model},
    lambda model: {"model": {"state_dict": model}},
    lambda model: {"state_dict": {"model": {"model_state_dict": model}}},
])  # fmt: skip
def test_a_state_dict_in_its_usual_wrappings_is_found(tmp_path, wrap):
    write(tmp_path, ROUNDS, "pt")
    for file in tmp_path.rglob("*.pt"):
        torch.save(wrap(torch.load(file)), file)
    same(tmp_path, ROUNDS)


def test_a_real_networks_state_dict_is_a_model(tmp_path):
    place = tmp_path / "round-1"
    (place / "clients").mkdir(parents=True)
    network = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)).bfloat16()
    for file in ("start.pt", "end.pt", "clients/ann.pt"):
        torch.save(network.state_dict(), place / file)
    (fl_round,) = replay(tmp_path)
    assert bits(fl_round.local["ann"]) == bits(network.state_dict())
    assert bits(fl_round.start)["0.weight"][0] == "bfloat16"


def test_uploads_are_loaded_when_asked_for(tmp_path):
    write(tmp_path, ROUNDS)
    rounds = list(replay(tmp_path))
    for file in tmp_path.rglob("clients/bob.npz"):
        file.unlink()
    assert rounds[0].clients == ("ann", "bob", "cid")
    assert bits(rounds[0].local["ann"]) == bits(ROUNDS[0].local["ann"])
    assessment = show(CoAst(), rounds)
    assert [of.keys() for of in assessment.quarantined.values()] == [{"bob"}] * 3


def test_after_skips_rounds_and_still_knows_the_end_before(tmp_path):
    write(tmp_path, ROUNDS, start={1})
    assert [round_bits(fl_round) for fl_round in replay(tmp_path, after=2)] == [round_bits(ROUNDS[2])]


def test_hidden_files_and_other_folders_are_nobodys(tmp_path):
    write(tmp_path, ROUNDS)
    (tmp_path / "round-1" / "clients" / ".DS_Store").write_bytes(b"")
    (tmp_path / "logs-2024").mkdir()
    (tmp_path / "notes1").write_text("")
    same(tmp_path, ROUNDS)


def test_names_with_dots_and_other_letters_are_clients(tmp_path):
    odd = [*federation(seed=8, rounds=1, layers=LAYERS, clients=("a.b", "ü", "7"))]
    same(write(tmp_path, odd), odd)


DEEP = federation(seed=8, rounds=4, layers={"stem": (5, 4), "middle": (4, 4), "head": (4, 3)})


@pytest.mark.parametrize("imported", [False, True])
def test_where_files_keep_no_order_the_head_is_refused_and_the_ends_are_all_layers(tmp_path, caplog, imported):
    run = write(tmp_path / "checkpoints", DEEP, "safetensors")
    if imported:
        with Recorder(tmp_path / "run") as recorder:
            for fl_round in replay(run):
                recorder.observe(fl_round)
        run = tmp_path / "run"
    with caplog.at_level(logging.WARNING, "fedcoast"):
        assert show(CoAst(layers="first+head"), replay(run)).credits == show(CoAst(layers="all"), DEEP).credits
    assert show(CoAst(layers="first+head"), DEEP).credits != show(CoAst(layers="all"), DEEP).credits
    assert [record.getMessage() for record in caplog.records] == [
        "The layers of this model have no order, so first and head are unknown: all layers count"
    ]
    with pytest.raises(BadSetting, match=r"so its head is unknown; name it: layers='fc\.\*'"):
        show(CoAst(layers="head"), replay(run))


def test_a_state_remembers_that_layers_stand_in_no_order(tmp_path):
    rounds = list(replay(write(tmp_path / "checkpoints", DEEP, "safetensors")))
    first, second = CoAst(layers="first+head"), CoAst(layers="first+head")
    show(first, rounds[:2])
    first.save(tmp_path / "state")
    second.restore(tmp_path / "state")
    assert show(second, DEEP[2:]).credits == show(CoAst(layers="all"), DEEP).credits
