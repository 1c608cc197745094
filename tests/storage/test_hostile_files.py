"""Run folders, models and datasets that somebody made to do harm; each test is a reproduction that once did."""

import gzip
import json
import logging
import mmap
import os
import stat
import threading
import zipfile

import numpy as np
import pytest

from command_line import fedcoast
from fedcoast import BadFile, BadRound, CoAst, Recorder, Round, replay
from fedcoast.errors import BadSetting
from fedcoast.reports.assess_rounds import assess_rounds
from fedcoast.reports.forms import write
from fedcoast.rounds.clients import look_alikes, tidy_name
from fedcoast.simulation.datasets.decoded import read_cached, read_cached_title
from fedcoast.simulation.datasets.fashion import read_idx
from fedcoast.simulation.datasets.pickles import read_pickle
from fedcoast.simulation.datasets.source_files import File, read_folder
from fedcoast.storage.files import read_json, sole_writer, write_json
from fedcoast.storage.limits import limit
from fedcoast.storage.model_files import load_model
from fedcoast.storage.tensors import open_tensors, read_tensors, write_tensors
from federations import federation, show

ROUNDS = federation(rounds=4)
SECRET = "ssh-ed25519 AAAA of mine"


@pytest.fixture
def run(tmp_path):
    with Recorder(tmp_path / "run") as recorder:
        for fl_round in ROUNDS:
            recorder.observe(fl_round)
    return tmp_path / "run"


@pytest.fixture
def mine(tmp_path):
    """A file of the user's own that a link leads to."""
    (tmp_path / "mine").write_text(SECRET)
    return tmp_path / "mine"


# Links, pipes and devices


@pytest.mark.parametrize("name", [".lock", ".run.json.part", "run.json"])
def test_recording_never_writes_through_a_link(tmp_path, mine, name):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(mine)
    try:
        with Recorder(tmp_path / "run") as recorder:
            recorder.observe(ROUNDS[0])
    except BadFile:
        assert name != ".run.json.part"
    assert mine.read_text() == SECRET


def test_a_folder_behind_a_link_is_never_cleaned(tmp_path):
    home = tmp_path / "home"
    (home / ".1password").mkdir(parents=True)
    (home / ".0000000001").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "rounds").symlink_to(home)
    with pytest.raises(BadFile, match="rounds is a symbolic link"):
        Recorder(tmp_path / "run")
    assert sorted(path.name for path in home.iterdir()) == [".0000000001", ".1password"]


def test_cleaning_removes_what_a_kill_left_and_nothing_else(run, mine):
    rounds = run / "rounds"
    (rounds / ".0000000009").mkdir()
    (rounds / ".0000000010").symlink_to(mine.parent)
    (rounds / ".1password").mkdir()
    Recorder(run).close()
    assert sorted(path.name for path in rounds.glob(".*")) == [".1password"]
    assert mine.read_text() == SECRET


@pytest.mark.parametrize("file", ["run.json", "rounds/0000000002/round.json", "rounds/0000000002/end.safetensors"])
@pytest.mark.parametrize("target", ["/dev/zero", "link", "pipe"])
def test_a_file_that_is_a_link_a_pipe_or_a_device_is_refused_at_once(run, tmp_path, file, target):
    real = tmp_path / "elsewhere"
    (run / file).rename(real)
    if target == "pipe":
        os.mkfifo(run / file)
    else:
        (run / file).symlink_to(real if target == "link" else target)
    with pytest.raises(BadFile, match=r"symbolic link, which is not followed|is not a plain file"):
        show(CoAst(), replay(run))


def test_an_upload_that_is_a_link_costs_its_client_alone(run):
    upload = run / "rounds" / "0000000002" / "client-000000.safetensors"
    upload.unlink()
    upload.symlink_to("/dev/zero")
    answer = show(CoAst(), replay(run))
    (reason,) = answer.quarantined[2].values()
    assert "symbolic link" in reason


def test_a_round_folder_that_is_a_link_is_refused_and_found(run, tmp_path):
    place = run / "rounds" / "0000000002"
    place.rename(tmp_path / "moved")
    place.symlink_to(tmp_path / "moved")
    with pytest.raises(BadFile, match="symbolic link"):
        list(replay(run))
    done = fedcoast("verify", run)
    assert done.code == 1
    assert "rounds/0000000002: is a symbolic link; no recorder writes this" in done.stdout


def test_a_lock_that_is_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / ".lock")
    with pytest.raises(BadFile, match="is not a plain file"), sole_writer(tmp_path):
        pass


def test_everything_that_is_written_is_private(run, tmp_path):
    with Recorder(tmp_path / "credits", ledger=(coast := CoAst())) as recorder:
        for fl_round in ROUNDS:
            coast.observe(fl_round)
            recorder.observe(fl_round)
    coast.save(tmp_path / "credits" / "coast.state")
    write(assess_rounds(replay(run)), tmp_path / "report.html")
    files = [*run.rglob("*"), *(tmp_path / "credits").rglob("*"), tmp_path / "report.html"]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in files if path.is_file()}
    assert {"round.json", "credits.json", "link.json", "report.html", "coast.state", "run.json"} <= modes.keys()
    assert set(modes.values()) == {0o600}


# Bombs


def test_an_npz_that_unpacks_to_more_than_the_limit_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDCOAST_MAX_MODEL", "10MB")
    np.savez_compressed(tmp_path / "bomb.npz", w=np.zeros(4_000_000, np.float32))
    assert (tmp_path / "bomb.npz").stat().st_size < 100_000
    with pytest.raises(BadFile, match="set FEDCOAST_MAX_MODEL to a larger size"):
        load_model(tmp_path / "bomb.npz")
    monkeypatch.setenv("FEDCOAST_MAX_MODEL", "20 MB")
    assert load_model(tmp_path / "bomb.npz")["w"].size == 4_000_000


@pytest.mark.parametrize("member", ["w.npy", "w"])
def test_an_array_that_promises_more_than_its_member_holds_is_refused(tmp_path, member):
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999,)}".ljust(117) + b"\n"
    with zipfile.ZipFile(tmp_path / "liar.npz", "w") as archive:
        archive.writestr(member, b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(BadFile, match="needs 399,999,999,996 bytes of memory"):
        load_model(tmp_path / "liar.npz")


def test_a_tensor_that_repeats_one_number_is_refused_by_the_room_it_would_take(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"w": torch.zeros(1).expand(1_200_000_000)}, tmp_path / "bomb.pt")
    assert (tmp_path / "bomb.pt").stat().st_size < 5000
    with pytest.raises(BadFile, match="needs 4,800,000,000 bytes"):
        load_model(tmp_path / "bomb.pt")


def test_a_model_as_large_as_the_disk_says_is_read_whatever_the_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDCOAST_MAX_MODEL", "1KB")
    np.savez(tmp_path / "large.npz", w=np.arange(100_000.0))
    assert load_model(tmp_path / "large.npz")["w"][-1] == 99_999


@pytest.mark.parametrize("reader", [read_tensors, open_tensors])
def test_a_file_of_a_terabyte_of_holes_is_refused(tmp_path, reader):
    with (tmp_path / "holes.safetensors").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(BadFile, match="needs 1,099,511,627,776 bytes"):
        reader(tmp_path / "holes.safetensors")


def test_json_longer_than_the_limit_is_refused(tmp_path, monkeypatch):
    write_json(tmp_path / "long.json", ["x" * 5000])
    monkeypatch.setenv("FEDCOAST_MAX_JSON", "1000")
    with pytest.raises(BadFile, match="set FEDCOAST_MAX_JSON"):
        read_json(tmp_path / "long.json")


@pytest.mark.parametrize("size", ["plenty", "9" * 400 + "GB", "-1"])
def test_a_limit_that_is_no_size_is_told(monkeypatch, size):
    monkeypatch.setenv("FEDCOAST_MAX_JSON", size)
    with pytest.raises(BadSetting, match="FEDCOAST_MAX_JSON must be a size such as '8GB'"):
        limit("FEDCOAST_MAX_JSON")


def _same_tuple_twice(depth):
    """A key whose hash takes 2**depth steps."""
    return b"\x80\x02}(K\x01\x85" + b"q\x00h\x00\x86" * depth + b"K\x01u."


PICKLES = {
    "a key that takes for ever to hash": _same_tuple_twice(60),
    "a memory of two thousand million places": b"\x80\x02}r\xff\xff\xff\x7f}\x86.",
    "tuples nested deep enough to end the process": b"\x80\x02}(" + b"K\x01" + b"\x85" * 200_000 + b"K\x01u.",
    "lists nested deep enough to end the process": b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".",
    "a duplicate that doubles": b"\x80\x02]" + b"2l" * 50 + b".",
}


@pytest.mark.parametrize("data", PICKLES.values(), ids=PICKLES.keys())
def test_a_pickle_that_would_take_time_or_memory_is_refused_at_once(data):
    with pytest.raises(BadFile, match="batch: wanted"):
        read_pickle(File("batch", data))


@pytest.mark.parametrize("shape", [(2**32 - 1, 2**32 - 1, 0), (0, 2**31, 2**31), (2**32 - 1,) * 3])
def test_an_idx_file_whose_shape_overflows_is_refused(shape):
    data = bytes((0, 0, 8, 3)) + b"".join(size.to_bytes(4, "big") for size in shape)
    with pytest.raises(BadFile, match="images: wanted"):
        read_idx(File("images", data), 3)


def test_a_gzipped_dataset_that_unpacks_to_more_than_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDCOAST_MAX_DATASET", "1MB")
    with gzip.open(tmp_path / "images.gz", "wb") as stream:
        stream.write(bytes(5_000_000))
    with pytest.raises(BadFile, match="set FEDCOAST_MAX_DATASET"):
        read_folder(tmp_path, ["images"])


def test_a_kept_dataset_that_unpacks_to_more_than_the_limit_is_not_read(tmp_path, monkeypatch):
    content = {"stamp": "s", "name": "x", "title": "X", "classes": ["a"]}
    arrays = dict.fromkeys(("train_images", "train_labels", "test_images", "test_labels"), np.zeros((1, 1, 1, 1)))
    np.savez_compressed(tmp_path / "x.decoded.npz", **content, **arrays, bomb=np.zeros(4_000_000))
    monkeypatch.setenv("FEDCOAST_MAX_DATASET", "10MB")
    assert read_cached_title(tmp_path / "x.decoded.npz", "s") is None
    assert read_cached(tmp_path / "x.decoded.npz", "s") is None
    monkeypatch.setenv("FEDCOAST_MAX_DATASET", "100MB")
    assert read_cached_title(tmp_path / "x.decoded.npz", "s") == "X"


STATES = {
    "a credit of somebody who never answered": lambda header: header["ledger"]["met"].pop(),
    "a credit of 1e308": lambda header: header["ledger"]["credits"][0][1][0].__setitem__(1, 1e308),
    "a credit that is text": lambda header: header["ledger"]["credits"][0][1][0].__setitem__(1, "much"),
    "a round that is text": lambda header: header["ledger"]["credits"][0].__setitem__(0, "first"),
    "a last round that is text": lambda header: header.__setitem__("last_round", "last"),
    "rounds that are pending and absent": lambda header: header["facts"].__setitem__("pending", []),
}


@pytest.mark.parametrize("forge", STATES.values(), ids=STATES.keys())
def test_a_state_that_no_assessor_writes_is_refused(tmp_path, forge):
    coast = CoAst()
    show(coast, ROUNDS)
    coast.save(tmp_path / "good.state")
    tensors, header = read_tensors(tmp_path / "good.state")
    CoAst().restore(tmp_path / "good.state")
    forge(header)
    write_tensors(tmp_path / "bad.state", {name: (array, array.dtype.name) for name, array in tensors.items()}, header)
    with pytest.raises(BadFile, match="it was altered"):
        CoAst().restore(tmp_path / "bad.state")


# Numbers and files that change


def test_a_start_of_three_hundred_digits_is_refused(run):
    path = run / "rounds" / "0000000002" / "round.json"
    facts = json.loads(path.read_text())
    path.write_text(json.dumps({**facts, "start": "end of round " + "9" * 300}))
    with pytest.raises(BadFile, match="names the file"):
        list(replay(run))


def test_a_mapped_file_that_was_cut_off_is_an_error_and_not_the_end_of_the_process(run):
    (first, *_) = replay(run)
    array = first.start["hidden.weight"] if "hidden.weight" in first.start else next(iter(first.start.values()))
    file = run / "rounds" / "0000000001" / "start.safetensors"
    os.truncate(file, 100)
    with pytest.raises(BadRound, match="was cut off or replaced meanwhile"):
        first.read_start(first.schema())
    assert array is not None
    assert mmap.PAGESIZE > 100


# Names and logs


def test_nothing_that_a_name_or_a_path_holds_can_forge_a_line_or_move_the_cursor(tmp_path, caplog):
    name = "x\n2026-11-18 INFO all clients verified\x1b[2J"
    bad = Round(1, ROUNDS[0].start, {**ROUNDS[0].local, name: None}, ROUNDS[0].end)
    with caplog.at_level(logging.WARNING):
        CoAst().observe(bad)
    assert "quarantined for this round" in caplog.text
    assert "\x1b" not in caplog.text
    assert len(caplog.text.splitlines()) == 1
    done = fedcoast("assess", tmp_path / "\x1b[2Jnowhere\nforged")
    assert "nowhere" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "\x1b" not in str(BadFile(f"{tmp_path}/\x1b[2J"))


@pytest.mark.parametrize("name", ["berlin ", " berlin", "berlin\u200b", "ber\u00adlin", "berlin\x00"])
def test_a_name_from_outside_has_one_spelling(name):
    assert tidy_name(name) == "berlin"


@pytest.mark.parametrize("name", ["Berlin", "berlіn", "berlin ", "berlin\u200b", "ｂerlin", "ber lin", "berIin"])
def test_names_that_look_alike_are_marked(name):
    assert look_alikes(["oslo", "berlin", name]) == [tuple(sorted(["berlin", name]))]
    assert look_alikes(["oslo", "berlin", 7, 8]) == []


def test_a_capital_i_is_an_i_and_may_be_taken_for_an_l():
    assert look_alikes(["Ines", "ines", "all", "ali"]) == [("Ines", "ines")]
    assert look_alikes(["all", "aIl"]) == [("aIl", "all")]


def test_an_import_of_a_bomb_writes_nothing_and_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDCOAST_MAX_MODEL", "1MB")
    clients = tmp_path / "models" / "round-1" / "clients"
    clients.mkdir(parents=True)
    for file in (clients.parent / "start.npz", clients.parent / "end.npz", clients / "berlin.npz"):
        np.savez_compressed(file, w=np.zeros(4_000_000, np.float32))
    done = fedcoast("import", tmp_path / "models", tmp_path / "run")
    assert done.code == 3
    assert "FEDCOAST_MAX_MODEL" in done.stderr
    assert sum(path.stat().st_size for path in (tmp_path / "run").rglob("*") if path.is_file()) < 10_000


def test_an_overlong_name_is_refused():
    with pytest.raises(BadRound, match="at most 256 characters; got 100,000"):
        Round(1, ROUNDS[0].start, {"x" * 100_000: ROUNDS[0].end}, ROUNDS[0].end)


@pytest.mark.parametrize("rounds_scored", [0.1, 0, 4])
def test_an_answer_with_a_score_near_the_end_of_floats_is_refused_in_one_line(tmp_path, rounds_scored):
    answer = json.loads(show(CoAst(), ROUNDS).to_json())
    answer["scores"][0], answer["seen"][0] = 1e308, rounds_scored
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    for command in (["report", tmp_path / "answer.json", "-o", tmp_path / "report.html"],
                    ["rewards", tmp_path / "answer.json", "--force"]):  # fmt: skip
        done = fedcoast(*command)
        assert done.code == 3
        assert "numbers up to 1e+100 can be counted with" in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("kind", ["str", "int"])
@pytest.mark.parametrize("form", ["json", "csv"])
def test_an_answer_with_an_overlong_name_is_refused_in_a_short_sentence(tmp_path, form, kind):
    answer = show(CoAst(), ROUNDS)
    text = answer.to_json() if form == "json" else answer.to_csv()
    if kind == "int":
        text = text.replace('"type": "str"', '"type": "int"', 1).replace("ann,str", "ann,int")
    (tmp_path / f"answer.{form}").write_text(text.replace("ann", "1" * 100_000))
    done = fedcoast("report", tmp_path / f"answer.{form}", "-o", tmp_path / "report.html")
    assert done.code == 3
    assert "at most 256 characters long" in done.stderr
    assert len(done.stderr) < 1000


def test_look_alikes_are_told_to_whoever_assesses(tmp_path):
    fed = federation(rounds=6, clients=("berlin", "berlіn", "oslo"))
    with Recorder(tmp_path / "run") as recorder:
        for fl_round in fed:
            recorder.observe(fl_round)
    done = fedcoast("assess", tmp_path / "run")
    assert "Names that look alike: 'berlin', 'berl\\u0456n'" in done.stderr


def test_a_pipe_among_checkpoints_does_not_hang(tmp_path):
    clients = tmp_path / "round-1" / "clients"
    clients.mkdir(parents=True)
    os.mkfifo(clients / "berlin.npz")
    for name in ("start", "end"):
        np.savez(tmp_path / "round-1" / f"{name}.npz", w=np.zeros(4))
    done = []
    thread = threading.Thread(target=lambda: done.append(show(CoAst(), replay(tmp_path))), daemon=True)
    thread.start()
    thread.join(10)
    assert "not a file" in done[0].quarantined[1]["berlin"]
