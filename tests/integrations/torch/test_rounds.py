"""A round whose uploads stayed on their device is assessed as any other, to the same integers and the same words."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedcoast import BadRound, BadSetting, BadUpload, CoAst, LazyModels, Recorder, Round, replay
from fedcoast.integrations.torch import ballot_round
from federations import federation, show
from strategies import federations, keeps, steady


def tensors(model, device="cpu", dtype=None):
    return {name: torch.from_numpy(np.array(array)).to(device, dtype) for name, array in model.items()}


def on_device(fl_round, keep, device="cpu", dtype=None, **bad):
    local = {client: tensors(fl_round.local[client], device, dtype) for client in fl_round.clients}
    start, end = tensors(fl_round.start, device, dtype), tensors(fl_round.end, device, dtype)
    return ballot_round(fl_round.number, start, {**local, **bad}, end, keep)


@steady
@given(federations(rounds=st.integers(2, 5)), keeps, st.sampled_from(["ballot", "pruned"]), st.booleans())
def test_credits_are_those_of_whole_uploads(rounds, keep, target, by_votes):
    settings = {"keep": keep, "signal": target, "reference": "votes" if by_votes else "movement", "horizon": 1}
    assert show(CoAst(**settings), [on_device(r, keep) for r in rounds]) == show(CoAst(**settings), rounds)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_floats_count_as_in_whole_uploads(device, dtype):
    rounds = federation(seed=5, rounds=5)
    whole = [
        Round(
            r.number,
            tensors(r.start, dtype=dtype),
            {client: tensors(model, dtype=dtype) for client, model in r.local.items()},
            tensors(r.end, dtype=dtype),
        )
        for r in rounds
    ]
    reduced = [on_device(r, 0.3, device, dtype) for r in rounds]
    assert show(CoAst(keep=0.3), reduced) == show(CoAst(keep=0.3), whole)


BAD = {
    "not finite": lambda model: {**model, "hidden.bias": torch.tensor([0, 1, float("inf"), 3, float("nan")])},
    "another shape": lambda model: {**model, "scale": torch.zeros(3)},
    "another type": lambda model: {**model, "scale": torch.zeros((), dtype=torch.int64)},
    "a layer missing": lambda model: {name: tensor for name, tensor in model.items() if name != "scale"},
    "a layer too many": lambda model: {**model, "extra": torch.zeros(2)},
    "no tensor": lambda model: {**model, "scale": "big"},
    "sparse": lambda model: {**model, "hidden.weight": model["hidden.weight"].to_sparse()},
    "without data": lambda model: {**model, "hidden.bias": torch.zeros(5, device="meta")},
    "no model": lambda model: 7,
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_upload_is_quarantined_in_the_usual_words(kind):
    (fl_round,) = federation(seed=5, rounds=1)
    spoilt = BAD[kind](tensors(fl_round.start))
    whole = Round(1, fl_round.start, {**fl_round.local, "bob": spoilt}, fl_round.end)
    reduced = on_device(fl_round, 0.1, bob=spoilt)
    shown = [show(CoAst(), [one]) for one in (reduced, whole)]
    assert shown[0].quarantined == shown[1].quarantined
    assert shown[0].quarantined[1].keys() == {"bob"}
    with pytest.raises(BadUpload, match="client 'bob': round 1, "):
        CoAst(bad_uploads="raise").observe(reduced)


def test_buffers_and_counters_are_carried_and_do_not_vote(device):
    start = {"w": torch.zeros(4), "bn.running_mean": torch.zeros(2), "bn.num_batches_tracked": torch.tensor(3)}
    start = {name: tensor.to(device) for name, tensor in start.items()}
    local = {**start, "w": torch.tensor([4.0, -3.0, 2.0, 1.0], device=device), "bn.running_mean": start["w"][:2] + 9}
    rounds = [ballot_round(number, start, {"a": local}, local, keep=0.5) for number in (1, 2)]
    assert show(CoAst(keep=0.5, horizon=1), rounds).scores == {"a": 0}  # the end stood still
    assert rounds[0].local["a"]["bn.running_mean"].tolist() == [0, 0]


def test_a_broken_buffer_costs_its_client_unless_it_was_broken_before(device):
    start = {"w": torch.zeros(4, device=device), "bn.running_mean": torch.zeros(2, device=device)}
    broken = {**start, "bn.running_mean": torch.tensor([0.0, torch.nan], device=device)}
    for before, quarantined in ((start, ["a"]), (broken, [])):
        shown = show(CoAst(), [ballot_round(1, before, {"a": broken, "b": before}, before)])
        assert list(shown.quarantined.get(1, {})) == quarantined


def test_models_that_change_afterwards_change_nothing():
    (fl_round,) = federation(seed=5, rounds=1)
    start, end = tensors(fl_round.start), tensors(fl_round.end)
    local = {client: tensors(model) for client, model in fl_round.local.items()}
    reduced = ballot_round(1, start, local, end, keep=0.3)
    before = [reduced.local["ann"]["hidden.weight"].copy(), reduced.end["hidden.weight"].copy()]
    for model in (start, end, *local.values()):
        for tensor in model.values():
            tensor.fill_(7)
    after = [reduced.local["ann"]["hidden.weight"], reduced.end["hidden.weight"]]
    assert [one.tolist() for one in before] == [one.tolist() for one in after]


def test_uploads_are_loaded_one_at_a_time_and_held_as_two_bits():
    start = {"w": torch.zeros(80_000)}
    alive, most = [0], [0]

    class Tracked(dict):
        def __init__(self):
            super().__init__(w=torch.ones(80_000))
            alive[0] += 1
            most[0] = max(most[0], alive[0])

        def __del__(self):
            alive[0] -= 1

    reduced = ballot_round(1, start, LazyModels(dict.fromkeys(range(9), Tracked)), start, keep=0.1)
    assert (alive[0], most[0]) == (0, 1)
    planes = reduced.local._loaders[3].args[2]
    assert sum(plane.nbytes for plane in planes.values()) == 2 * 80_000 // 8


def test_a_loader_that_fails_costs_only_its_client():
    def fail():
        raise OSError("the link is down")

    model = {"w": torch.zeros(4)}
    local = LazyModels({"a": lambda: {"w": torch.ones(4)}, "b": fail})
    shown = show(CoAst(), [ballot_round(1, model, local, model)])
    assert "the upload cannot be read (OSError: the link is down)" in shown.quarantined[1]["b"]


def test_it_can_be_recorded_and_replayed(tmp_path):
    rounds = [on_device(fl_round, 0.3) for fl_round in federation(seed=5, rounds=4)]
    with Recorder(tmp_path / "run") as recorder:
        for fl_round in rounds:
            recorder.observe(fl_round)
    assert show(CoAst(keep=0.3), replay(tmp_path / "run")) == show(CoAst(keep=0.3), rounds)


def test_bad_rounds_and_settings_are_refused():
    model = {"w": torch.zeros(4)}
    with pytest.raises(BadRound, match="local must map each client to its model; got list"):
        ballot_round(1, model, [model], model)
    with pytest.raises(BadRound, match="global model before: a model is a mapping"):
        ballot_round(1, 7, {"a": model}, model)
    with pytest.raises(BadRound, match=r"ballot_keep must lie in \(0, 1\]; got 10"):
        ballot_round(1, model, {"a": model}, model, keep=10)
    with pytest.raises(BadRound, match="global model after: layer 'w' must be finite"):
        CoAst().observe(ballot_round(1, model, {"a": model}, {"w": torch.full((4,), torch.nan)}))
    with pytest.raises(BadSetting, match="needs the whole uploads"):
        CoAst(keep=0.2).observe(ballot_round(1, model, {"a": model}, model, keep=0.1))


def test_without_torch_the_right_thing_to_install_is_said():
    code = "import sys; sys.modules['torch'] = None\nimport fedcoast.integrations.torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "MissingExtra: this needs torch, which is not installed; run: pip install 'fedcoast[lab]'" in done.stderr
