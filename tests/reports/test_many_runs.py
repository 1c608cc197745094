"""All runs of a folder on one page, asked over a real socket (trial 1.8: the demo was a dead end)."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import threading
import time

import pytest
import uvicorn

from fedcoast import Recorder
from fedcoast.reports import live
from fedcoast.reports.following import RunFollower
from fedcoast.reports.many_runs import OpenRuns, application, find_runs, list_page
from federations import federation
from report_samples import SCRIPT
from waiting import on_a_loop


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda handle: None)


def record(folder, rounds=12):
    with Recorder(folder) as recorder:
        for fl_round in federation(rounds=rounds):
            recorder.observe(fl_round)


@contextlib.contextmanager
def served(folder):
    """A server on a port of its own, in a thread; answers requests by status, headers and text."""
    addresses, servers = [], []
    run = uvicorn.Server.run
    runs = OpenRuns(folder, RunFollower)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uvicorn.Server, "run", lambda self, sockets: (servers.append(self), run(self, sockets)))
        thread = threading.Thread(
            target=live.serve_application,
            args=(lambda closing: application(runs, None, closing),),
            kwargs={"port": 0, "ready": addresses.append},
        )
        thread.start()
        until = time.monotonic() + 20
        while not (servers and servers[0].started) and time.monotonic() < until:
            time.sleep(0.02)
        port = int(addresses[0].split(":")[2].partition("/")[0])

        def get(path, **headers):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            connection.close()
            return answer.status, answer.headers, text

        try:
            yield get
        finally:
            servers[0].should_exit = True
            thread.join(20)
            assert not thread.is_alive()


def test_every_run_of_a_folder_is_listed_and_opens(tmp_path):
    record(tmp_path / "first")
    record(tmp_path / "second")
    (tmp_path / "notes").mkdir()
    assert list(find_runs(tmp_path)) == ["first", "second"]
    assert find_runs(tmp_path / "first") == {}
    with served(tmp_path) as get:
        status, headers, page = get("/")
        assert status == 200
        assert 'href="run/first/"' in page
        assert 'href="run/second/"' in page
        assert "live" in page
        assert "form-action 'self'" in headers["content-security-policy"]
        until = time.monotonic() + 20
        while "ann" not in get("/run/first/")[2] and time.monotonic() < until:
            time.sleep(0.1)
        assert "ann" in get("/run/first/")[2]
        assert '<a class="back" href="../../">All runs</a>' in get("/run/first/")[2]
        assert json.loads(get("/run/first/view")[2])["title"] == "first"
        assert get("/run/nowhere/")[0] == 404
        assert get("/run/first/else")[0] == 404


def test_the_latest_run_comes_first_by_a_name_that_is_no_hash(tmp_path):
    """Trial 1.8: what a demo or a training just left is the first entry."""
    for age, name in ((5000, "older"), (100, "digits-noise-3f9a2c1b7d"), (90000, "zero")):
        record(tmp_path / name, rounds=2)
        os.utime(tmp_path / name / "rounds", (time.time() - age,) * 2)
    page = list_page(tmp_path)
    assert re.findall(r'href="run/([^/]*)/"><bdi>([^<]*)', page) == [
        ("digits-noise-3f9a2c1b7d", "digits noise"), ("older", "older"), ("zero", "zero")
    ]  # fmt: skip
    assert re.findall(r"\d+ \w+ ago", page) == ["1 minute ago", "1 hour ago", "1 day ago"]
    assert "live" not in page.partition("<tbody>")[2]


def test_requests_that_come_together_follow_a_run_once(tmp_path):
    record(tmp_path / "run", rounds=3)
    runs = OpenRuns(tmp_path, RunFollower)

    async def open_together():
        opened = await asyncio.gather(*(runs.get("run") for _ in range(5)))
        tasks = [task for task in asyncio.all_tasks() if task.get_coro().__name__ == "run"]
        await runs.close()
        return opened, tasks

    opened, tasks = on_a_loop(open_together)
    assert len(set(map(id, opened))) == 1
    assert len(tasks) == 1


def test_runs_are_compared_by_rank_and_verdict(tmp_path):
    record(tmp_path / "first")
    record(tmp_path / "second", rounds=6)
    with served(tmp_path) as get:
        page = get("/compare?run=first&run=second")[2]
        assert "first" in page
        assert "second" in page
        assert "1 (" in page
        assert "Choose runs" in get("/compare")[2]


def test_names_of_runs_are_text_and_other_hosts_are_refused(tmp_path):
    rude = SCRIPT.replace("/", "")
    record(tmp_path / rude, rounds=3)
    with served(tmp_path) as get:
        assert rude not in get("/")[2]
        assert get("/", Host="evil.example")[0] == 403
        assert get("/run/..%2f..%2fetc/")[0] == 404
