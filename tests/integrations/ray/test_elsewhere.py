"""What can differ on another machine, and the errors of a failing cluster; with a stand-in for Ray."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fedcoast import BadFile, CoAst, Recorder, __version__, replay
from fedcoast.integrations.ray import ClusterError, assess
from fedcoast.integrations.ray.assess import assess_in_shards
from federations import federation, show


class RayError(Exception):
    pass


class Promise:
    def __init__(self, *arguments):
        self.arguments = arguments


class ByHand:
    """As much of Ray as is used: every task is done when it is asked for, unless it is lost."""

    def __init__(self, lost=False):
        self.lost, self.task_options = lost, {}
        self.exceptions = SimpleNamespace(RayError=RayError)

    def remote(self, function):
        self.function = function
        return self

    def options(self, **options):
        self.task_options |= options
        return SimpleNamespace(remote=Promise)

    def wait(self, waiting):
        return waiting[-1:], waiting[:-1]

    def get(self, promise):
        if self.lost:
            raise RayError("The worker died unexpectedly\nwhile executing this task.")
        return self.function(*promise.arguments)


@pytest.fixture
def run(tmp_path):
    with Recorder(tmp_path / "run") as recorder:
        for fl_round in federation(seed=2, rounds=5):
            recorder.observe(fl_round)
    return tmp_path / "run"


def test_tasks_come_back_in_any_order_and_are_tried_again_where_a_worker_died(run):
    ray, progress = ByHand(), []
    answer = assess_in_shards(
        run, CoAst(), 6, lambda tasks: assess._by_ray(ray, tasks), lambda *done: progress.append(done)
    )
    assert answer == show(CoAst(), replay(run))
    assert progress == [(place, len(progress)) for place in range(1, len(progress) + 1)]
    assert ray.task_options["max_retries"] >= 3


def test_a_cluster_that_gives_up_is_our_own_error(run):
    with pytest.raises(ClusterError, match=r"could not score a shard of the run \(RayError: while executing this task"):
        assess_in_shards(run, CoAst(), 3, lambda tasks: assess._by_ray(ByHand(lost=True), tasks))


def test_another_version_or_a_missing_folder_is_reported_with_the_machine(run, monkeypatch):
    tasks = []
    with pytest.raises(KeyError):  # nobody works
        assess_in_shards(run, CoAst(), 1, lambda given: iter(tasks.extend(given) or ()))
    monkeypatch.setattr(assess.socket, "gethostname", lambda: "far")
    other = assess._score_remotely(tasks[0], "0.0.1")
    assert isinstance(other.error, ClusterError)
    assert str(other.error) == f"far has fedcoast {__version__}, this machine 0.0.1; install the same"
    gone = assess._score_remotely(replace(tasks[0], run=run / "nowhere"), __version__)
    assert isinstance(gone.error, BadFile)
    assert "nowhere is not on far; all machines must see it under this path" in str(gone.error)
