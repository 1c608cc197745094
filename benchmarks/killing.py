"""Real processes, really killed, and what must be true of the folder that each of them leaves."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from benchmarks import kill_jobs
from benchmarks.kill_jobs import nth_round
from fedcoast import BadFile, Recorder, Round, replay
from fedcoast.audit import verify
from fedcoast.rounds.arrays import read
from fedcoast.rounds.schema import Model


class Children:
    """Forks children one after the other and kills them."""

    def __init__(self, job: str) -> None:
        command = [sys.executable, "-W", "error", str(kill_jobs.__file__), job]
        alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # it forks: no threads
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=alone)

    def __enter__(self) -> "Children":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.stdout.close()
        assert self._server.wait(timeout=30) == 0

    def run_and_kill(self, folder: Path, seconds: float, after_first: bool = True) -> list[str]:
        """Start a child on a folder, kill it some time after its first report (or its start); all it reported."""
        child = self.start(folder)
        replies = [self.hear()] if after_first else []
        time.sleep(seconds)
        return replies + self.kill(child)

    def start(self, folder: Path) -> int:
        word, child = self._tell(str(folder)).split()
        assert word == "child"
        return int(child)

    def kill(self, child: int) -> list[str]:
        """End it without warning; what it had reported and nobody had heard."""
        os.kill(child, signal.SIGKILL)
        replies = [self._tell("bury")]
        while replies[-1] != "gone":
            replies.append(self.hear())
        assert "failed" not in replies, "the child failed by itself"
        return replies[:-1]

    def hear(self) -> str:
        assert self._server.stdout is not None
        return self._server.stdout.readline().strip()

    def _tell(self, line: str) -> str:
        assert self._server.stdin is not None
        self._server.stdin.write(f"{line}\n")
        self._server.stdin.flush()
        return self.hear()


def half_written(folder: Path) -> list[str]:
    """The rounds that were being written."""
    return [path.name for path in (folder / "rounds").glob(".*")]


def check_whole(folder: Path, reported: list[str]) -> int:
    """The number of the last round. The folder must hold what was reported, at most one round more, each as it was
    shown, and a recorder must be able to go on with it."""
    if not (folder / "run.json").exists():  # killed before the folder was a run
        assert reported == [], f"reported {reported}, and there is no run"
        try:
            replay(folder)
        except BadFile:
            last = 0
        else:
            raise AssertionError("a folder without run.json is read as a run")
    else:
        found = verify(folder)
        assert found.agrees, found.findings
        rounds = list(replay(folder))
        last = len(rounds)
        numbers = [fl_round.number for fl_round in rounds]
        assert numbers == list(range(1, last + 1)), numbers
        for fl_round in rounds:
            assert round_bits(fl_round) == round_bits(nth_round(fl_round.number)), f"round {fl_round.number} differs"
        finished = int(reported[-1]) if reported else 0
        assert last >= finished, f"round {finished} was reported, and {last} are there"
    with Recorder(folder) as recorder:
        assert (recorder.last_round or 0) == last
    assert half_written(folder) == []
    return last


def round_bits(fl_round: Round) -> tuple[object, ...]:
    """A round in a form that is equal when every bit is."""
    models = [_bits(fl_round.start), *(_bits(fl_round.local[client]) for client in fl_round.clients)]
    weights = None if fl_round.weights is None else [float(fl_round.weights[client]) for client in fl_round.clients]
    return fl_round.number, fl_round.clients, models, _bits(fl_round.end), weights


def _bits(model: Model) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    arrays = {name: read(value) for name, value in model.items()}
    return {name: (dtype, array.shape, array.tobytes()) for name, (array, dtype) in arrays.items()}
