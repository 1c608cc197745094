"""A real Ray cluster of two workers, one of which is killed midway, gives the answer of one machine."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fedcoast import Assessment, CoAst, Recorder, replay
from fedcoast.storage.tensors import open_tensors, write_tensors
from federations import federation, show

pytestmark = pytest.mark.slow

LAYERS = {"wide": (700, 1000), "bias": (1000,), "square": (300, 300), "head": (40, 10), "head.bias": (10,)}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Nine rounds, and two uploads that went bad after they were recorded, each in another layer."""
    folder = tmp_path_factory.mktemp("cluster") / "run"
    with Recorder(folder) as recorder:
        for fl_round in federation(seed=1, rounds=9, layers=LAYERS, clients=("ann", "bob", "cid", 7)):
            recorder.observe(fl_round)
    for number, index, layer in ((3, 1, "head"), (5, 2, "wide")):
        file = folder / "rounds" / f"{number:010d}" / f"client-{index:06d}.safetensors"
        arrays = {name: np.array(array) for name, array in open_tensors(file).items()}
        arrays[layer].ravel()[-1] = np.nan
        write_tensors(file, {name: (array, array.dtype.name) for name, array in arrays.items()})
    return folder


def assess(run, *options):
    command = [sys.executable, "-m", "fedcoast.cli", "assess", str(run), "--json", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_worker_killed_midway_changes_nothing(run):
    started = assess(run, "--reference", "votes", "--horizon", "3", "--incomplete-rounds", "truncate", "--ray", "local")
    killed = kill_one_at_work(started)
    out, err = started.communicate(timeout=180)
    assert started.returncode == 1, err  # the uploads went bad after they were recorded, which the chain shows
    assert "is not as it was recorded" in err
    assert killed, "no worker was seen at work, so none was killed"
    alone = show(CoAst(reference="votes", horizon=3, incomplete_rounds="truncate"), replay(run))
    assert Assessment.from_json(out) == alone
    printed = json.loads(out)
    del printed["health"], printed["verdicts"]  # the command adds them to the answer
    assert printed == json.loads(alone.to_json())
    assert len(alone.quarantined) == 2
    assert "quarantined for this round: client 'ann': round 3, layer 'head' must be finite" in err


def test_a_folder_of_checkpoints_and_the_papers_reading_come_out_alike(run, tmp_path):
    for fl_round in list(replay(run))[:6]:
        place = tmp_path / f"round-{fl_round.number}"
        (place / "clients").mkdir(parents=True)
        np.savez(place / "start.npz", **fl_round.start)
        np.savez(place / "end.npz", **fl_round.end)
        for client in fl_round.clients:
            np.savez(place / "clients" / f"{client}.npz", **fl_round.local[client])
    out, err = assess(tmp_path, "--preset", "paper", "--score-rounds", "1:", "--ray", "local").communicate(timeout=180)
    alone = show(CoAst.paper(score_rounds=slice(1, None)), replay(tmp_path))
    assert Assessment.from_json(out) == alone, err


def kill_one_at_work(started):
    """Kill -9 a worker of this command's own cluster while it values a shard, and say which."""
    until = time.monotonic() + 120
    while time.monotonic() < until and started.poll() is None:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                title = (process / "cmdline").read_bytes()
            except OSError:
                continue
            pid = int(process.name)
            if title.startswith(b"ray::fedcoast shard") and started.pid in ancestors(pid):
                os.kill(pid, signal.SIGKILL)
                return pid
    return None


def ancestors(pid):
    """The processes that a process comes from, its parent first."""
    line = []
    while pid > 1:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            break
        pid = int(next(row.split()[1] for row in status.splitlines() if row.startswith("PPid")))
        line.append(pid)
    return line
