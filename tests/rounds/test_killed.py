"""Real processes, really killed: what a recorder or an assessor was told to keep is kept, whole and to the last bit."""

import random
import time

import pytest

from benchmarks.kill_jobs import LAST, nth_round
from benchmarks.killing import Children, check_whole, half_written
from fedcoast import CoAst, Recorder, replay
from federations import show

pytestmark = pytest.mark.slow


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
