"""TensorBoard, by its own reader."""

import json
from pathlib import Path

import pytest

from fedcoast import BadFile, BadSetting, CoAst, Recorder
from fedcoast.integrations.trackers import TensorBoard
from fedcoast.integrations.trackers.safe_names import safe_name
from federations import show
from integrations.trackers.federation import NASTY, check_log, coast, rounds


def read(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    found.Reload()
    scalars = {tag: {event.step: event.value for event in found.Scalars(tag)} for tag in found.Tags()["scalars"]}
    for tag in scalars:
        assert len(scalars[tag]) == len(found.Scalars(tag)), "a step is logged once"
    texts = {tag: found.Tensors(tag)[-1].tensor_proto.string_val[0].decode() for tag in found.Tags()["tensors"]}
    return scalars, texts


def name(client):
    return safe_name(client, TensorBoard.allowed)


def test_tensorboard_reads_what_was_logged(tmp_path):
    with Recorder(tmp_path / "run") as recorder, TensorBoard(coast(), tmp_path / "logs", recorder) as tracker:
        for fl_round in rounds():
            recorder.observe(fl_round)
            tracker.observe(fl_round)
            read(tmp_path / "logs")  # at any time, not only when it was closed
        head = recorder.head
    assert tracker.failure == ""
    scalars, texts = read(tmp_path / "logs")
    check_log(scalars, name)
    assert texts["fedcoast/chain/head"] == f"{head} (round 6)"
    assert texts[f"fedcoast/name/{name('a/b')}"] == "a/b"
    assert {name(client) for client in ("berlin", 7, "é", "مستشفى")} == {"berlin", "7", "é", "مستشفى"}


def test_a_second_start_goes_on_in_the_same_folder(tmp_path):
    show(TensorBoard(coast(), tmp_path / "logs"), rounds()[:4])
    show(TensorBoard(coast(), tmp_path / "logs"), rounds())
    files = sorted((tmp_path / "logs").glob("events.out.tfevents.*"))
    assert len(files) == 2
    assert set(read(files[0])[0]["fedcoast/round/pending"]) == {1, 2, 3, 4}, "readers go by the order of names"
    check_log(read(tmp_path / "logs")[0], name)


def test_other_settings_are_refused_the_same_folder(tmp_path):
    show(TensorBoard(coast(), tmp_path / "logs"), rounds()[:4])
    with pytest.raises(BadSetting, match="Use another place"):
        TensorBoard(CoAst(keep=0.4), tmp_path / "logs")
    (tmp_path / "logs" / "fedcoast-tensorboard.json").write_text(json.dumps({"last": 9}))
    with pytest.raises(BadFile, match="not as a tracker writes it"):
        TensorBoard(coast(), tmp_path / "logs")


def test_a_folder_that_cannot_be_written_to_stops_only_the_logging(tmp_path, caplog):
    (tmp_path / "logs").write_text("a file")
    tracker = TensorBoard(coast(), tmp_path / "logs" / "today")
    assert show(tracker, rounds()) == show(coast(), rounds())
    assert "NotADirectoryError" in tracker.failure
    assert caplog.text.count("stopped logging") == 1


def test_a_disk_that_fills_up_stops_only_the_logging(tmp_path, caplog):
    tracker = TensorBoard(coast(), tmp_path / "logs")
    show(tracker, rounds()[:2])
    tracker._file = Path("/dev/full")
    assert show(tracker, rounds()[2:]) == show(coast(), rounds())
    assert "No space left on device" in tracker.failure
    assert caplog.text.count("stopped logging in round 3") == 1
    assert set(read(tmp_path / "logs")[0]["fedcoast/round/pending"]) == {1, 2}
    show(TensorBoard(coast(), tmp_path / "logs"), rounds())
    check_log(read(tmp_path / "logs")[0], name, clients=NASTY)
