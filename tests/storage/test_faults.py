"""What the user sees when the machine fails: a full disk, a folder that cannot be written, two writers."""

import errno
import os
import resource
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

from audit.runs import coast
from command_line import fedcoast
from fedcoast import BadFile, CoAst, Recorder, replay
from fedcoast.audit import verify
from fedcoast.reports.assess_rounds import assess_rounds
from fedcoast.reports.forms import write
from fedcoast.storage import recorder as recording
from federations import federation, show

ROUNDS = federation(rounds=7)


def full_disk(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def with_a_gap(tmp_path, monkeypatch):
    """Recorded beside a live assessor; the disk was full in round 3 alone."""
    assessor = coast()
    with Recorder(tmp_path / "run", ledger=assessor) as recorder:
        for fl_round in ROUNDS:
            assessor.observe(fl_round)
            if fl_round.number == 3:
                with monkeypatch.context() as patch:
                    patch.setattr(recording, "write_tensors", full_disk)
                    with pytest.raises(BadFile, match="No space left on device"):
                        recorder.observe(fl_round)
            else:
                recorder.observe(fl_round)
    assessor.save(tmp_path / "run" / "coast.state")
    return tmp_path / "run"


def test_a_full_disk_costs_one_round_and_leaves_nothing_behind(with_a_gap):
    assert [fl_round.number for fl_round in replay(with_a_gap)] == [1, 2, 4, 5, 6, 7]
    assert sorted(path.name for path in (with_a_gap / "rounds").iterdir() if path.name.startswith(".")) == []


def test_a_missed_round_is_recorded_as_missed_and_never_looks_like_tampering(with_a_gap):
    found = verify(with_a_gap)
    assert found.findings == ()
    assert list(found.missed) == [3]
    assert "No space left" in found.missed[3]
    assert [what.partition(",")[0].rpartition("/")[2] for what in found.unchecked] == ["credits.json", "coast.state"]
    done = fedcoast("verify", with_a_gap)
    assert done.code == 1
    assert "DIFFERS" not in done.stdout
    assert "missed by the recorder: round 3 (OSError: [Errno 28] No space left on device)" in done.stdout
    assert "nothing was changed" in done.stdout


def test_tampering_in_a_run_with_a_missed_round_is_still_found(with_a_gap):
    place = with_a_gap / "rounds" / "0000000005"
    shutil.copy(place / "client-000000.safetensors", place / "client-000001.safetensors")
    assert "DIFFERS: rounds/0000000005/client-000001.safetensors" in fedcoast("verify", with_a_gap).stdout


def test_a_round_that_is_written_at_the_second_try_was_not_missed(tmp_path, monkeypatch):
    with Recorder(tmp_path / "run") as recorder:
        with monkeypatch.context() as patch:
            patch.setattr(recording, "write_tensors", full_disk)
            with pytest.raises(BadFile):
                recorder.observe(ROUNDS[0])
        recorder.observe(ROUNDS[0])
    assert verify(tmp_path / "run").missed == {}


def test_a_second_writer_is_refused_with_a_remedy(tmp_path):
    with Recorder(tmp_path / "run"), pytest.raises(BadFile, match=r"another process is recording to .*give each"):
        Recorder(tmp_path / "run")


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    if os.geteuid() == 0:
        folder = Path("/proc/fedcoast")
    else:
        folder = tmp_path / "read-only" / "run"
        folder.parent.mkdir(mode=0o500)
    with pytest.raises(BadFile, match="cannot be a folder to record to"):
        Recorder(folder)


def test_a_run_is_read_while_its_folder_is_read_only(tmp_path):
    with Recorder(tmp_path / "run") as recorder:
        for fl_round in ROUNDS:
            recorder.observe(fl_round)
    before = show(CoAst(), replay(tmp_path / "run"))
    for path in (tmp_path / "run", tmp_path / "run" / "rounds"):
        path.chmod(0o500)
    assert show(CoAst(), replay(tmp_path / "run")) == before
    assert fedcoast("verify", tmp_path / "run").code == 0
    for path in (tmp_path / "run", tmp_path / "run" / "rounds"):
        path.chmod(0o700)


@contextmanager
def no_room(most=1500):
    """No file can grow beyond so many bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_was_saved_stays_whole_when_the_disk_is_full(tmp_path):
    assessor = CoAst()
    show(assessor, ROUNDS[:3])
    assessor.save(tmp_path / "state")
    before = assessor.assessment()
    write(assess_rounds(ROUNDS), tmp_path / "report.html")
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    show(assessor, ROUNDS[3:])
    with no_room():
        with pytest.raises(BadFile, match="cannot be written"):
            assessor.save(tmp_path / "state")
        with pytest.raises(BadFile, match="cannot be written"):
            write(assess_rounds(ROUNDS), tmp_path / "report.html")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files
    again = CoAst()
    again.restore(tmp_path / "state")
    assert again.assessment() == before
    assessor.save(tmp_path / "state")
    again.restore(tmp_path / "state")
    assert again.assessment() == assessor.assessment()


def test_rounds_that_cannot_be_held_in_files_are_refused_and_the_assessor_goes_on(tmp_path):
    plain, spilling = CoAst(keep=0.5), CoAst(keep=0.5, spill_dir=tmp_path / "spill")
    for fl_round in ROUNDS:
        if fl_round.number == 3:
            with no_room(50), pytest.raises(BadFile, match=r"cannot be written|File too large"):
                spilling.observe(fl_round)
        spilling.observe(fl_round)
        plain.observe(fl_round)
    assert spilling.assessment() == plain.assessment()


def test_a_real_full_disk_ends_in_one_line(tmp_path):
    with no_room(400):
        with Recorder(tmp_path / "run") as recorder, pytest.raises(BadFile, match="cannot be written"):
            recorder.observe(ROUNDS[0])
        done = fedcoast("assess", tmp_path / "run")
    assert "Traceback" not in done.stderr
    with Recorder(tmp_path / "run") as recorder:
        recorder.observe(ROUNDS[0])
    assert verify(tmp_path / "run").agrees
