"""Weights & Biases, offline: what lies in the file that `wandb sync` would send."""

import json
import struct
import time

import pytest

from fedcoast import BadSetting, CoAst, Recorder
from fedcoast.integrations.trackers import TensorBoard, WandB
from fedcoast.integrations.trackers.safe_names import safe_name
from federations import show
from integrations.trackers.federation import check_log, coast, rounds
from integrations.trackers.test_tensorboard import read as read_tensorboard

pytestmark = pytest.mark.slow

BLOCK = 32768


def records(data):
    """The records of a .wandb file: LevelDB's log format behind seven bytes of its own."""
    assert data[:4] == b":W&B"
    at, parts = 7, b""
    while at + 7 <= len(data):
        if BLOCK - at % BLOCK < 7:
            at += BLOCK - at % BLOCK
            continue
        length, kind = struct.unpack("<HB", data[at + 4 : at + 7])
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last of its parts
            yield parts
            parts = b""


def finished(file, kind):
    """All records of a file; the process that writes it may be a moment behind, and says when it is done."""
    for _ in range(200):
        found = [kind.FromString(data) for data in records(file.read_bytes())]
        if any(record.WhichOneof("record_type") == "exit" for record in found):
            return found
        time.sleep(0.1)
    raise AssertionError(f"{file} was never finished")


def read(folder):
    from wandb.proto import wandb_internal_pb2

    logged, ids = {}, set()
    for file in sorted(folder.glob("wandb/offline-run-*/run-*.wandb")):
        for record in finished(file, wandb_internal_pb2.Record):
            if record.WhichOneof("record_type") == "run":
                ids.add(record.run.run_id)
            if record.WhichOneof("record_type") == "history":
                row = {
                    item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item
                }
                for tag, value in row.items():
                    assert row["_step"] not in logged.setdefault(tag, {}), "a step is logged once"
                    logged[tag][row["_step"]] = value
    return logged, ids


def name(client):
    return safe_name(client, WandB.allowed)


def test_what_would_be_synced_is_what_was_said(tmp_path):
    with Recorder(tmp_path / "run") as recorder, WandB(coast(), tmp_path / "logs", recorder=recorder) as tracker:
        for fl_round in rounds():
            recorder.observe(fl_round)
            tracker.observe(fl_round)
        head = recorder.head
    assert tracker.failure == ""
    logged, _ = read(tmp_path / "logs")
    check_log(logged, name)
    assert logged["fedcoast/chain/head"][6] == f"{head} (round 6)"
    assert "a/b" in logged[f"fedcoast/name/{name('a/b')}"].values()


def test_a_second_start_goes_on_under_the_same_id(tmp_path):
    for shown in (rounds()[:4], rounds()):
        with WandB(coast(), tmp_path / "logs") as tracker:
            show(tracker, shown)
        time.sleep(1.1)  # the library names its folders by the second
    logged, ids = read(tmp_path / "logs")
    assert len(ids) == 1
    check_log(logged, name)
    with pytest.raises(BadSetting, match="Use another place"):
        WandB(CoAst(keep=0.4), tmp_path / "logs")


def test_tensorboard_may_log_to_the_same_folder(tmp_path):
    for shown in (rounds()[:4], rounds()):
        with WandB(TensorBoard(coast(), tmp_path / "logs"), tmp_path / "logs") as tracker:
            show(tracker, shown)
        time.sleep(1.1)  # the library names its folders by the second
    check_log(read(tmp_path / "logs")[0], name)
    check_log(read_tensorboard(tmp_path / "logs")[0], lambda client: safe_name(client, TensorBoard.allowed))


def test_a_run_that_cannot_be_begun_stops_only_the_logging(tmp_path, caplog):
    tracker = WandB(coast(), tmp_path / "logs", mode="sideways")
    assert show(tracker, rounds()) == show(coast(), rounds())
    assert tracker.failure
    assert caplog.text.count("stopped logging") == 1
