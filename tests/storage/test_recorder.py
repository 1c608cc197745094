import enum
import gc
import json
import os
import stat
import subprocess
import sys
import textwrap
import weakref
from collections import UserDict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import kinds
from fedcoast import BadFile, BadRound, BadSetting, BFloat16, CoAst, LazyModels, Recorder, Round, read_about, replay
from fedcoast.storage import run_folder as reading
from federations import federation, round_bits, show
from paper import research_code

ROUNDS = federation(seed=4, rounds=4)


def record(folder, rounds, **options):
    with Recorder(folder, **options) as recorder:
        for fl_round in rounds:
            recorder.observe(fl_round)
    return folder


def same_rounds(folder, rounds):
    assert [round_bits(fl_round) for fl_round in replay(folder)] == [round_bits(fl_round) for fl_round in rounds]


def test_what_was_shown_comes_back_to_the_last_bit(tmp_path):
    weighted = [replace(fl_round, weights={c: 0.1 * n for n, c in enumerate(fl_round.clients)}) for fl_round in ROUNDS]
    measured = [replace(fl_round, metrics={"accuracy": 0.1 + 0.2, "loss": 3}) for fl_round in weighted]
    same_rounds(record(tmp_path / "run", measured), measured)


def test_numbers_that_json_has_no_word_for_are_left_out_of_the_metrics(tmp_path):
    odd = {"loss": float("nan"), "gain": float("inf"), "accuracy": 0.5}
    folder = record(tmp_path / "run", [replace(ROUNDS[0], metrics=odd)])
    text = (folder / "rounds" / "0000000001" / "round.json").read_text()
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert [fl_round.metrics for fl_round in replay(folder)] == [{"accuracy": 0.5}]


def test_the_order_of_layers_comes_back_too(tmp_path):
    odd = Round(
        1,
        {"z": np.zeros(2), "a": np.zeros(2)},
        {1: {"a": np.ones(2), "z": np.ones(2)}},
        {"a": np.ones(2), "z": np.ones(2)},
    )
    (back,) = replay(record(tmp_path / "run", [odd]))
    assert list(back.start) == list(back.end) == list(back.local[1]) == ["z", "a"]


def test_a_start_is_stored_only_where_it_is_not_the_end_of_the_round_before(tmp_path):
    jumped = replace(ROUNDS[2], start={name: array + 1 for name, array in ROUNDS[2].start.items()})
    rounds = [ROUNDS[0], ROUNDS[1], jumped, ROUNDS[3]]
    folder = record(tmp_path / "run", rounds)
    stored = [(place / "start.safetensors").exists() for place in sorted((folder / "rounds").iterdir())]
    assert stored == [True, False, True, False]
    same_rounds(folder, rounds)


def test_a_start_that_differs_in_the_sign_of_a_zero_is_stored(tmp_path):
    zero, minus_zero = {"w": np.array([0.0])}, {"w": np.array([-0.0])}
    rounds = [Round(1, zero, {"a": zero}, zero), Round(2, minus_zero, {"a": zero}, zero)]
    folder = record(tmp_path / "run", rounds)
    assert (folder / "rounds" / "0000000002" / "start.safetensors").exists()
    same_rounds(folder, rounds)


def test_a_run_goes_on_after_its_last_round(tmp_path):
    folder = record(tmp_path / "run", ROUNDS[:2])
    with Recorder(folder) as recorder:
        assert recorder.last_round == 2
        for fl_round in ROUNDS[2:]:
            recorder.observe(fl_round)
    assert not (folder / "rounds" / "0000000003" / "start.safetensors").exists()
    same_rounds(folder, ROUNDS)


def test_a_run_that_goes_on_keeps_its_layers(tmp_path):
    folder = record(tmp_path / "run", ROUNDS[:2])
    other = federation(seed=4, rounds=1, layers={"w": (3,)}, first=3)
    with Recorder(folder) as recorder, pytest.raises(BadRound, match="the model changed its layers"):
        recorder.observe(other[0])


def test_numbers_may_skip_and_start_anywhere(tmp_path):
    rounds = [
        replace(fl_round, number=number) for fl_round, number in zip(ROUNDS, (0, 7, 9_999_999_999, 10**15), strict=True)
    ]
    folder = record(tmp_path / "run", rounds)
    same_rounds(folder, rounds)
    with Recorder(folder) as recorder:
        assert recorder.last_round == 10**15
    assert [fl_round.number for fl_round in replay(folder, after=7)] == [9_999_999_999, 10**15]


def test_a_number_too_long_for_a_file_name_is_refused():
    with pytest.raises(BadRound, match=r"from 0 to below 10\*\*18"):
        replace(ROUNDS[0], number=10**300)


def test_after_shows_only_later_rounds(tmp_path):
    folder = record(tmp_path / "run", ROUNDS)
    assert [round_bits(r) for r in replay(folder, after=2)] == [round_bits(r) for r in ROUNDS[2:]]
    assert list(replay(folder, after=4)) == []


# One client at a time


class Loaded:
    """Counts the models that are alive."""

    def __init__(self, fl_round):
        self._round, self.now, self.most, self.total = fl_round, 0, 0, 0

    def models(self):
        return LazyModels({client: lambda client=client: self._load(client) for client in self._round.clients})

    def _load(self, client):
        model = {name: array.copy() for name, array in self._round.local[client].items()}
        self.now += 1
        self.total += 1
        self.most = max(self.most, self.now)
        weakref.finalize(model["hidden.weight"], self._drop)
        return model

    def _drop(self):
        self.now -= 1


@pytest.mark.parametrize("observer", ["assessor", "assessor by votes", "recorder", "recorder of ballots"])
def test_at_most_one_lazily_loaded_model_is_in_memory(tmp_path, observer):
    (big,) = federation(seed=5, rounds=1, clients=tuple(range(20)))
    loaded = Loaded(big)
    lazy = replace(big, local=loaded.models())
    if "assessor" in observer:
        (CoAst(reference="votes") if "votes" in observer else CoAst()).observe(lazy)
    else:
        record(tmp_path / "run", [lazy], ballot_keep=0.1 if "ballots" in observer else None)
    assert (loaded.total, loaded.most, loaded.now) == (20, 1, 0)


def test_a_replayed_upload_is_read_only_when_it_is_asked_for_and_not_kept(tmp_path, monkeypatch):
    really_open, files, alive = reading.open_tensors, [], []

    class Watched(UserDict):
        def __getitem__(self, name):
            array = self.data[name]
            alive.append(weakref.ref(array))
            return array

    def watched(path, order, depth):
        files.append(path.name)
        tensors = Watched()
        tensors.data = really_open(path, order, depth)
        return tensors

    folder = record(tmp_path / "run", ROUNDS[:1])
    monkeypatch.setattr(reading, "open_tensors", watched)
    (fl_round,) = replay(folder)
    assert (files, alive) == (["start.safetensors", "end.safetensors"], [])
    assessor = CoAst()
    assessor.observe(fl_round)
    assert files[2:] == [f"client-{place:06d}.safetensors" for place in range(3)]
    gc.collect()
    assert [one() for one in alive] == [None] * len(alive)
    assert alive


# While it grows


def test_a_run_can_be_read_while_it_grows(tmp_path):
    with Recorder(tmp_path / "run") as recorder:
        assert list(replay(tmp_path / "run")) == []
        recorder.observe(ROUNDS[0])
        reader = replay(tmp_path / "run")
        assert next(reader).number == 1
        recorder.observe(ROUNDS[1])
        recorder.observe(ROUNDS[2])
        assert [fl_round.number for fl_round in reader] == [2, 3]


def test_a_round_that_is_being_written_is_not_shown(tmp_path):
    seen = []

    def peek():
        seen.append([fl_round.number for fl_round in replay(tmp_path / "run")])
        return ROUNDS[1].local["ann"]

    with Recorder(tmp_path / "run") as recorder:
        recorder.observe(ROUNDS[0])
        recorder.observe(replace(ROUNDS[1], local=LazyModels({"ann": peek})))
    assert seen == [[1]]
    assert [fl_round.number for fl_round in replay(tmp_path / "run")] == [1, 2]


def test_what_an_interrupted_recorder_left_is_swept_away(tmp_path):
    folder = record(tmp_path / "run", ROUNDS[:1])
    half = folder / "rounds" / ".0000000002"
    half.mkdir()
    (half / "end.safetensors").write_bytes(b"half")
    (folder / ".run.json.part").write_bytes(b"{")
    (folder / "rounds" / ".DS_Store").write_bytes(b"a file of the system's, left alone")
    assert [fl_round.number for fl_round in replay(folder)] == [1]
    with Recorder(folder) as recorder:
        assert not half.exists()
        recorder.observe(ROUNDS[1])
    assert (folder / "rounds" / ".DS_Store").exists()
    same_rounds(folder, ROUNDS[:2])


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_while_a_round_is_written_leaves_the_folder_as_it_was(tmp_path, error):
    def interrupted():
        raise error

    with Recorder(tmp_path / "run") as recorder:
        recorder.observe(ROUNDS[0])
        before = sorted((tmp_path / "run").rglob("*"))
        with pytest.raises(error):
            recorder.observe(
                replace(ROUNDS[1], local=LazyModels({"ann": lambda: ROUNDS[1].local["ann"], "bob": interrupted}))
            )
        assert sorted((tmp_path / "run").rglob("*")) == before
        recorder.observe(ROUNDS[1])
    same_rounds(tmp_path / "run", ROUNDS[:2])


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize(("reference", "step"), [("others", "pair_tables"), ("movement", "round_agreement")])
def test_an_interrupt_while_a_round_is_assessed_leaves_the_assessor_as_it_was(error, reference, step, monkeypatch):
    assessor = CoAst(reference=reference, horizon=1, keep=0.3)
    show(assessor, ROUNDS[:2])
    with monkeypatch.context() as patch:
        patch.setattr(f"fedcoast.methods.coast.coast.{step}", lambda *_, **__: (_ for _ in ()).throw(error))
        with pytest.raises(error):
            assessor.observe(ROUNDS[2])
    assert show(assessor, ROUNDS[2:]) == show(CoAst(reference=reference, horizon=1, keep=0.3), ROUNDS)


def test_everything_is_on_disk_before_a_round_gets_its_name(tmp_path, monkeypatch):
    steps = []

    def fsync(handle):
        steps.append(Path(f"/proc/self/fd/{handle}").readlink().name)

    rename = Path.rename

    def renamed(path, target):
        steps.append(f"{path.name} becomes {Path(target).name}")
        return rename(path, target)

    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc")
    with Recorder(tmp_path / "run") as recorder:
        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(Path, "rename", renamed)
        recorder.observe(ROUNDS[0])
    files = ["start", "end", "client-000000", "client-000001", "client-000002"]
    assert steps == [
        *(f".{name}.safetensors.part" for name in files),
        ".round.json.part",
        ".link.json.part",
        ".0000000001",
        ".0000000001 becomes 0000000001",
        "rounds",
    ]


# Whose folder it is


def test_a_second_recorder_is_refused_while_the_first_holds_the_folder(tmp_path):
    first = Recorder(tmp_path / "run")
    with pytest.raises(BadFile, match="another process is recording to"):
        Recorder(tmp_path / "run")
    first.close()
    Recorder(tmp_path / "run").close()


def test_another_process_is_refused_too_and_a_dead_one_holds_nothing(tmp_path):
    code = "import sys; from fedcoast import Recorder; Recorder(sys.argv[1])"
    command = [sys.executable, "-c", code, str(tmp_path / "run")]
    with Recorder(tmp_path / "run"):
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "another process is recording to" in refused.stderr
    assert subprocess.run(command, check=False).returncode == 0
    Recorder(tmp_path / "run").close()


def test_a_closed_recorder_writes_no_more(tmp_path):
    recorder = Recorder(tmp_path / "run")
    recorder.observe(ROUNDS[0])
    recorder.close()
    recorder.close()
    with pytest.raises(BadFile, match="was closed"):
        recorder.observe(ROUNDS[1])
    same_rounds(tmp_path / "run", ROUNDS[:1])


def test_a_folder_with_other_files_is_not_recorded_to(tmp_path):
    (tmp_path / "thesis.tex").write_text("dear to someone")
    with pytest.raises(BadFile, match="holds other files"):
        Recorder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "run").write_text("")
    for folder in (tmp_path / "run", tmp_path / "run" / "deeper"):
        with pytest.raises(BadFile, match="cannot be a folder to record to"):
            Recorder(folder)


def test_a_lock_that_cannot_be_made_is_our_own_error(tmp_path):
    (tmp_path / "run" / ".lock").mkdir(parents=True)
    with pytest.raises(BadFile, match="is not a plain file; remove it"):
        Recorder(tmp_path / "run")


def test_a_folder_that_vanishes_is_our_own_error(tmp_path):
    with Recorder(tmp_path / "run") as recorder:
        (tmp_path / "run" / "rounds").rmdir()
        with pytest.raises(BadFile, match="cannot be written"):
            recorder.observe(ROUNDS[0])


# What a run says about itself


def test_facts_about_a_run_are_kept_when_it_is_new(tmp_path):
    about = {"truth": [3, 2, 1], "name": "ünï", "nested": {"a": (1, 2)}}
    Recorder(tmp_path / "run", about=about).close()
    assert read_about(tmp_path / "run") == {"truth": [3, 2, 1], "name": "ünï", "nested": {"a": [1, 2]}}
    Recorder(tmp_path / "run", about=about).close()
    Recorder(tmp_path / "run").close()
    assert read_about(tmp_path / "run")["truth"] == [3, 2, 1]


def test_a_run_about_something_else_is_not_gone_on_with_and_let_go_of(tmp_path):
    Recorder(tmp_path / "run", about={"seed": 1}).close()
    with pytest.raises(BadFile, match="holds another run") as caught:
        Recorder(tmp_path / "run", about={"seed": 2})
    Recorder(tmp_path / "run", about={"seed": 1}).close()
    assert caught.traceback


@pytest.mark.parametrize(
    "about", [{"a": object()}, {"a": np.zeros(2)}, {"a": float("nan")}, 3, "words", [1], {(1, 2): 3}]
)
def test_facts_that_json_cannot_hold_are_refused_before_anything_is_written(tmp_path, about):
    with pytest.raises(BadSetting, match="about must be facts"):
        Recorder(tmp_path / "run", about=about)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "options",
    [{"bad_uploads": value} for value in ("ignore", None, ["raise"])]
    + [{"ballot_keep": value} for value in (0, 10, "0.1", float("nan"), True)],
)
def test_settings_out_of_range_are_refused_before_anything_is_written(tmp_path, options):
    with pytest.raises(BadSetting, match=next(iter(options)).split("_")[0]):
        Recorder(tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


# Names


NAMES = ["../x", "/etc/passwd", "a/b", "con", "NUL", ".", "..", "", "x" * 256, "a\0b", "a\nb", "\u202egpj.exe", "🙂",
         "\ud800", "client-000000.safetensors", "rounds", "~", "$HOME", "a\\b", "*", "%s", " ", "-rf", "é", "e\u0301",
         7423646701073919812, -1, 0, 2**63, 2**200, "0"]  # fmt: skip


def test_any_name_survives_recording_and_nothing_is_created_outside_the_folder(tmp_path):
    start, end = {"w": np.zeros(4)}, {"w": np.ones(4)}
    local = {name: {"w": np.full(4, float(place))} for place, name in enumerate(NAMES)}
    rounds = [Round(number, start, local, end, weights=dict.fromkeys(NAMES, 1.0)) for number in (1, 2, 3)]
    folder = record(tmp_path / "deep" / "run", rounds)
    same_rounds(folder, rounds)
    assert [fl_round.clients for fl_round in replay(folder)] == [rounds[0].clients] * 3
    assert show(CoAst(), replay(folder)).to_json() == show(CoAst(), rounds).to_json()
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["run"]
    files = [path.name for path in folder.rglob("*") if path.is_file()]
    assert all(
        name in (".lock", "run.json", "round.json", "link.json") or name.endswith(".safetensors") for name in files
    )
    assert len(files) == 2 + 3 * (len(NAMES) + 4)


@pytest.mark.parametrize("name", NAMES)
def test_any_name_survives_quarantine_and_resuming(tmp_path, name):
    bad = replace(ROUNDS[0], local={**ROUNDS[0].local, name: None})
    folder = record(tmp_path / "run", [bad])
    (back,) = replay(folder)
    assert list(back.quarantined) == [name]
    assessor = CoAst()
    assessor.observe(back)
    assessor.save(tmp_path / "state")
    other = CoAst()
    other.restore(tmp_path / "state")
    assert other.assessment() == assessor.assessment()


def test_numpy_integers_and_enumerations_are_plain_names(tmp_path):
    class Site(str, enum.Enum):  # noqa: UP042 (its str() is not its value, which is the point)
        OSLO = "oslo"

    local = {np.int64(5): ROUNDS[0].start, Site.OSLO: ROUNDS[0].start}
    odd = replace(ROUNDS[0], local=local, weights={np.int64(5): 1, Site.OSLO: 2}, quarantined={np.int8(9): "late"})
    assert odd.clients == (5, "oslo")
    assert [type(client) for client in odd.clients] == [int, str]
    (back,) = replay(record(tmp_path / "run", [odd]))
    assert back.weights == {5: 1.0, "oslo": 2.0}
    assert back.quarantined == {9: "late"}


def test_a_quarantined_client_keeps_its_reason_and_needs_no_upload(tmp_path):
    only = Round(1, {"w": np.zeros(2)}, {}, {"w": np.zeros(2)}, quarantined={"ann": "timed out"})
    (back,) = replay(record(tmp_path / "run", [only]))
    assert (back.clients, back.quarantined) == ((), {"ann": "timed out"})


# Kinds of arrays


@pytest.mark.parametrize("kind", kinds.ALL)
def test_every_kind_of_array_comes_back_to_the_last_bit(tmp_path, kind):
    def model(seed):
        return {
            "w": np.float32([seed, 1]),
            **{f"x{place}": value for place, value in enumerate(kinds.some(kind, seed))},
        }

    def upload(n):
        return {**model(n - 1), "w": np.float32([n + 10, 1])}  # not finite where the start is not either

    buffers = ["x*"]  # so that every bit pattern, NaN included, is carried
    rounds = [Round(n, model(n - 1), {"a": upload(n)}, model(n), buffers=buffers) for n in (1, 2, 3)]
    folder = record(tmp_path / "run", rounds)
    same_rounds(folder, rounds)
    assert not (folder / "rounds" / "0000000002" / "start.safetensors").exists()


@pytest.mark.parametrize("kind", kinds.FLOATS)
def test_every_kind_of_float_is_assessed_alike_live_and_replayed(tmp_path, kind):
    rounds = [
        Round(n, kinds.model(kind, n - 1), {c: kinds.model(kind, 10 * n + c) for c in range(3)}, kinds.model(kind, n))
        for n in range(1, 6)
    ]
    live = show(CoAst(keep=0.3), rounds)
    assert any(live.scores.values())
    assert show(CoAst(keep=0.3), replay(record(tmp_path / "whole", rounds))).to_json() == live.to_json()
    assert (
        show(CoAst(keep=0.3), replay(record(tmp_path / "ballots", rounds, ballot_keep=0.3))).to_json() == live.to_json()
    )


def test_integers_may_come_in_another_width(tmp_path):
    def model(steps):
        return {"w": np.zeros(2, np.float32), "steps": steps}

    odd = Round(1, model(np.int64(3)), {"a": model(np.int32(4)), "b": model(np.array(5, np.uint8))}, model(np.int16(6)))
    (back,) = replay(record(tmp_path / "run", [odd], bad_uploads="raise"))
    assert round_bits(back) == round_bits(odd)


def test_buffers_named_like_patterns_stay_themselves(tmp_path):
    def model(value):
        return {"w": np.full(3, value), "*": np.int64(1), "[ab]": np.ones(2), "a": np.full(2, value)}

    odd = [Round(n, model(n - 1.0), {"x": model(n + 1.0)}, model(float(n)), buffers=["[[]ab]"]) for n in (1, 2, 3)]
    back = list(replay(record(tmp_path / "run", odd)))
    assert [entry.name for entry in back[0].schema().trainable] == ["w", "a"]
    assert show(CoAst(keep=1), back) == show(CoAst(keep=1), odd)


def test_values_that_are_not_bfloat16_are_not_recorded_as_if_they_were(tmp_path):
    finer = {"w": BFloat16(np.float32([0.1]))}
    with Recorder(tmp_path / "run") as recorder, pytest.raises(BadFile, match="holds values of more bits"):
        recorder.observe(Round(1, finer, {"a": finer}, finer))


# Recordings of ballots


def test_a_recording_of_ballots_takes_a_sixteenth_of_the_room(tmp_path):
    (one,) = federation(seed=6, rounds=1, layers={"w": (100, 400)})
    whole, ballots = record(tmp_path / "whole", [one]), record(tmp_path / "ballots", [one], ballot_keep=0.1)

    def size(folder):
        return (folder / "rounds" / "0000000001" / "client-000000.safetensors").stat().st_size

    assert size(ballots) * 15 < size(whole)


@pytest.mark.parametrize("settings", [{"keep": 0.2}, {"signal": "update"}, {"tiny_layers": "raw"},
                                      {"reference": "movement", "signal": "parameters"},
                                      {"reference": "movement", "signal": "pruned", "step": "avg"}])  # fmt: skip
def test_ballots_are_refused_where_they_would_give_another_answer(tmp_path, settings):
    folder = record(tmp_path / "run", ROUNDS, ballot_keep=0.1)
    with pytest.raises(BadSetting, match=r"holds ballots of keep=0\.1 only"):
        show(CoAst(**{"keep": 0.1} | settings), replay(folder))


def test_ballots_do_for_the_research_code_where_no_layer_is_too_small(tmp_path):
    rounds = federation(seed=7, rounds=4, layers={"w": (10, 4), "b": (10,)})
    folder = record(tmp_path / "run", rounds, ballot_keep=0.1)
    assert show(research_code.coast(), replay(folder)) == show(research_code.coast(), rounds)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_ballots_survive_where_a_step_would_vanish(tmp_path, dtype):
    most = np.finfo(dtype).max / 2
    start, local = np.array([most, -most, most / 2, 1], dtype), np.array([-most, most, most, 1], dtype)
    fl_round = Round(1, {"w": start}, {"a": {"w": local}}, {"w": start})
    folder = record(tmp_path / "run", [fl_round, replace(fl_round, number=2, end={"w": local})], ballot_keep=0.75)
    shown = [
        show(CoAst.votes(keep=0.75, horizon=1), rounds) for rounds in (replay(folder), record_again(tmp_path, folder))
    ]
    assert [one.scores for one in shown] == [{"a": 3}, {"a": 3}]


def record_again(tmp_path, folder):
    return replay(record(tmp_path / "again", replay(folder)))


def test_what_cannot_vote_comes_back_as_the_starts(tmp_path):
    start = {"w": np.float32([1, 2]), "bn.running_mean": np.float32([5])}
    local = {"w": np.float32([2, 2]), "bn.running_mean": np.float32([9])}
    (back,) = replay(record(tmp_path / "run", [Round(1, start, {"a": local}, start)], ballot_keep=0.5))
    assert back.local["a"]["bn.running_mean"].tolist() == [5]
    assert back.ballot_keep == 0.5


def test_ballots_can_be_recorded_again(tmp_path):
    first = record(tmp_path / "first", ROUNDS, ballot_keep=0.3)
    second = record(tmp_path / "second", replay(first))
    third = record(tmp_path / "third", replay(first), ballot_keep=0.9)
    live = show(CoAst(keep=0.3), ROUNDS).to_json()
    assert [show(CoAst(keep=0.3), replay(one)).to_json() for one in (first, second, third)] == [live] * 3


# The folder is plain


def test_a_run_is_json_and_safetensors_that_anyone_can_read(tmp_path):
    folder = record(tmp_path / "run", ROUNDS[:1], about={"a": 1})
    about = json.loads((folder / "run.json").read_text())
    assert about == {"format": "fedcoast-run", "version": 1, "chain": "sha256", "about": {"a": 1}}
    facts = json.loads((folder / "rounds" / "0000000001" / "round.json").read_text())
    assert facts["number"] == 1
    assert [one["client"]["name"] for one in facts["clients"]] == ["ann", "bob", "cid"]
    loaded = load_file(folder / "rounds" / "0000000001" / facts["clients"][1]["file"])
    assert all(np.array_equal(loaded[name], array) for name, array in ROUNDS[0].local["bob"].items())


def test_files_are_made_with_the_permissions_the_user_set(tmp_path):
    code = """
        import os, sys, numpy
        from fedcoast import Recorder, Round
        os.umask(0o077)
        model = {"w": numpy.zeros(2)}
        with Recorder(sys.argv[1]) as recorder:
            recorder.observe(Round(1, model, {"a": model}, model))
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "run")], check=True)
    for path in (tmp_path / "run").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
