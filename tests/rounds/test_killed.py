"""Real processes, really killed: what a recorder or an assessor was told to keep is kept, whole and to the last bit."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

import recording_children
from fedcoast import BadFile, CoAst, Recorder, replay
from fedcoast.audit import verify
from federations import round_bits, show
from recording_children import LAST, nth_round

pytestmark = pytest.mark.slow


class Children:
    """Forks children one after the other and kills them."""

    def __init__(self, job):
        command = [sys.executable, "-W", "error", recording_children.__file__, job]
        alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # it forks: no threads
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=alone)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.stdin.close()
        self._server.stdout.close()
        assert self._server.wait(timeout=30) == 0

    def run_and_kill(self, folder, seconds, after_first=True):
        """Start a child on a folder, kill it some time after its first report (or its start); all it reported."""
        word, child = self._tell(folder).split()
        assert word == "child"
        message = [self._hear()] if after_first else []
        time.sleep(seconds)
        os.kill(int(child), signal.SIGKILL)
        message.append(self._tell("bury"))
        while message[-1] != "gone":
            message.append(self._hear())
        assert "failed" not in message
        return message[:-1]

    def _tell(self, line):
        self._server.stdin.write(f"{line}\n")
        self._server.stdin.flush()
        return self._hear()

    def _hear(self):
        return self._server.stdout.readline().strip()


def half_written(folder):
    return [path.name for path in (folder / "rounds").glob(".*")]


def check_whole(folder, reported):
    """The folder holds what was reported, at most one round more, each as it was shown, and can be gone on with."""
    if not (folder / "run.json").exists():  # killed before the folder was a run
        assert reported == []
        with pytest.raises(BadFile, match=r"neither a recorded run|is not a folder"):
            replay(folder)
        last = 0
    else:
        assert (found := verify(folder)).agrees, found.findings
        rounds = list(replay(folder))
        last = len(rounds)
        assert [fl_round.number for fl_round in rounds] == list(range(1, last + 1))
        for fl_round in rounds:
            assert round_bits(fl_round) == round_bits(nth_round(fl_round.number))
    with Recorder(folder) as recorder:
        assert (recorder.last_round or 0) == last
    assert half_written(folder) == []
    return last


def test_a_recorder_killed_at_any_moment_leaves_every_finished_round_whole(tmp_path):
    chance = random.Random(0)
    kills, in_the_midst = 0, 0
    with Children("record") as children:
        for place in range(10):
            folder, last = tmp_path / f"run{place}", 0
            for _ in range(5):
                reported = children.run_and_kill(folder, chance.uniform(0, 0.08))
                kills += 1
                in_the_midst += bool(half_written(folder))
                found = check_whole(folder, reported)
                finished = int(reported[-1])
                assert [int(number) for number in reported] == list(range(last + 1, finished + 1))
                assert finished <= found <= finished + 1
                last = found
    assert kills == 50
    assert in_the_midst > 10, "too few kills fell on a round that was being written"


def test_a_recorder_killed_while_its_folder_is_made_leaves_one_that_can_be_recorded_to(tmp_path):
    chance = random.Random(1)
    stages = set()
    with Children("record") as children:
        children.run_and_kill(tmp_path / "first", 0)
        before = time.perf_counter()
        children.run_and_kill(tmp_path / "second", 0)
        until_the_first_report = time.perf_counter() - before
        for place in range(30):
            folder = tmp_path / f"run{place}"
            reported = children.run_and_kill(folder, chance.uniform(0, until_the_first_report), after_first=False)
            stages.add((folder.exists(), (folder / "run.json").exists(), bool(reported)))
            last = check_whole(folder, reported)
            with Recorder(folder) as recorder:
                recorder.observe(nth_round(last + 1))
            assert check_whole(folder, reported) == last + 1
    assert len(stages) > 1, "all the kills fell on one moment"


def test_an_assessor_killed_at_any_moment_gives_the_same_answer_to_the_last_byte(tmp_path):
    chance = random.Random(2)
    rounds = [nth_round(number) for number in range(1, LAST + 1)]
    uninterrupted = show(CoAst(keep=0.3, horizon=3), rounds).to_json()
    kills = 0
    with Children("assess") as children:
        for place in range(2):
            folder = tmp_path / f"job{place}"
            folder.mkdir()
            while not (folder / "answer.json").exists():
                children.run_and_kill(folder, chance.uniform(0, 0.05))
                kills += 1
            assert (folder / "answer.json").read_text() == uninterrupted
            replayed = show(CoAst(keep=0.3, horizon=3), replay(folder / "run"))
            assert replayed.to_json() == uninterrupted
    assert kills > 4


def test_an_assessor_that_spills_and_is_killed_at_any_moment_gives_the_same_answer(tmp_path):
    chance = random.Random(3)
    rounds = [nth_round(number) for number in range(1, LAST + 1)]
    uninterrupted = show(CoAst(keep=0.3, horizon=3, reference="votes", signal="pruned"), rounds).to_json()
    kills, left_over = 0, 0
    with Children("spill") as children:
        for place in range(3):
            folder = tmp_path / f"job{place}"
            folder.mkdir()
            while not (folder / "answer.json").exists():
                children.run_and_kill(folder, chance.uniform(0, 0.05))
                kills += 1
                left_over = max(left_over, len(list((folder / "spill").glob("*.held"))))
            assert (folder / "answer.json").read_text() == uninterrupted
            other = CoAst(keep=0.3, horizon=3, reference="votes", signal="pruned", spill_dir=folder / "spill")
            other.restore(folder / "state")
            assert other.assessment().to_json() == uninterrupted
            assert len(list((folder / "spill").glob("*.held"))) == 3
    assert kills > 6
    assert left_over > 3, "no kill left a file behind that no state names"
