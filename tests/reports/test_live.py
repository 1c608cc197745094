"""The live page's server, asked over a real socket; how it looks in a browser is in tests/browser."""

import asyncio
import contextlib
import http.client
import itertools
import json
import logging
import random
import socket
import threading
import time

import pytest
import uvicorn

from fedcoast import BadSetting, Recorder
from fedcoast.reports import connections, live
from fedcoast.reports.following import RunFollower
from federations import federation
from waiting import on_a_loop

TOKEN = "0123456789abcdef"


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda handle: None)


@contextlib.contextmanager
def served(folder, token=None):
    """A server on a port of its own, in a thread."""
    addresses, servers = [], []
    run = uvicorn.Server.run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uvicorn.Server, "run", lambda self, sockets: (servers.append(self), run(self, sockets)))
        thread = threading.Thread(
            target=live.serve,
            args=(RunFollower(folder),),
            kwargs={"port": 0, "token": token, "ready": addresses.append},
        )
        thread.start()
        until = time.monotonic() + 20
        while not (servers and servers[0].started) and time.monotonic() < until:
            time.sleep(0.02)
        try:
            yield int(addresses[0].split(":")[2].partition("/")[0])
        finally:
            servers[0].should_exit = True
            thread.join(20)
            assert not thread.is_alive()


def get(port, path="/", method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    body = b"" if path.startswith("/events") and answer.status == 200 else answer.read()
    connection.close()
    return answer, body.decode()


def eventually(condition):
    until = time.monotonic() + 20
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)
    assert condition()


def live_data(port):
    return json.loads(get(port, "/view")[1])


def test_the_page_its_state_and_its_library_are_served_and_sealed(tmp_path):
    with Recorder(tmp_path / "run") as recorder, served(tmp_path / "run") as port:
        for fl_round in federation(rounds=5):
            recorder.observe(fl_round)
        eventually(lambda: live_data(port)["status"]["text"] == "Live: round 5")
        answer, text = get(port)
        assert answer.status == 200
        assert "Live: round 5" in text
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        assert get(port, "/plotly.js")[1].startswith("/**")
        assert get(port, "/nonsense")[0].status == 404


def test_nothing_can_be_posted_and_no_path_leads_out_of_the_page(tmp_path):
    with Recorder(tmp_path / "run"), served(tmp_path / "run") as port:
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            assert get(port, "/", method=method)[0].status == 405
        for path in ("/../run/run.json", "/%2e%2e/run/run.json", "/..%2frun%2frun.json", "/run.json"):
            assert get(port, path)[0].status == 404


def test_news_reach_every_viewer_from_one_assessor(tmp_path):
    rounds = federation(rounds=6)
    with Recorder(tmp_path / "run") as recorder, served(tmp_path / "run") as port:
        for fl_round in rounds[:5]:
            recorder.observe(fl_round)
        eventually(lambda: live_data(port)["status"]["text"] == "Live: round 5")
        connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=10) for _ in range(20)]
        answers = []
        for connection in connections:
            connection.request("GET", "/events")
            answers.append(connection.getresponse())
        first = {_next(answer) for answer in answers}
        assert len(first) == 1
        recorder.observe(rounds[5])
        begun = time.monotonic()
        second = {_next(answer) for answer in answers}
        assert time.monotonic() - begun < 5
        assert len(second) == 1
        assert second != first
        for connection in connections:
            connection.close()


def test_a_viewer_that_does_not_read_holds_up_nobody(tmp_path):
    rounds = federation(rounds=8)
    with Recorder(tmp_path / "run") as recorder, served(tmp_path / "run") as port:
        for fl_round in rounds[:5]:
            recorder.observe(fl_round)
        asleep = [http.client.HTTPConnection("127.0.0.1", port, timeout=10) for _ in range(5)]
        for connection in asleep:
            connection.request("GET", "/events")
        for fl_round in rounds[5:]:
            recorder.observe(fl_round)
            eventually(lambda fl_round=fl_round: live_data(port)["status"]["text"] == f"Live: round {fl_round.number}")
        for connection in asleep:
            connection.close()


def test_a_state_that_cannot_be_shown_is_logged_and_the_next_one_is_shown(tmp_path, monkeypatch, caplog):
    rounds = federation(rounds=6)
    with Recorder(tmp_path / "run") as recorder:
        for fl_round in rounds[:4]:
            recorder.observe(fl_round)
        with served(tmp_path / "run") as port:
            eventually(lambda: live_data(port)["status"]["text"] == "Live: round 4")
            with monkeypatch.context() as broken:
                broken.setattr(live, "view", lambda report: 1 / 0)
                recorder.observe(rounds[4])
                eventually(lambda: "cannot be shown" in caplog.text)
            assert live_data(port)["status"]["text"] == "Live: round 4"
            recorder.observe(rounds[5])
            eventually(lambda: live_data(port)["status"]["text"] == "Live: round 6")


def test_viewers_that_leave_at_any_moment_break_no_news(tmp_path, monkeypatch):
    """Seen once: a lock that viewers shared failed when one of them left just as it was woken."""
    versions, chance = itertools.count(), random.Random(0)
    monkeypatch.setattr(live, "_POLL", 0)
    monkeypatch.setattr(live, "view", lambda report: {"version": next(versions)})
    shared = live.Live(RunFollower(tmp_path / "run"))
    monkeypatch.setattr(shared.follower, "catch_up", lambda patience: True)
    monkeypatch.setattr(shared.follower, "trouble", "")
    closing = False

    async def watch():
        return [text async for text in shared.news(lambda: closing)]

    async def leave(viewer, steps):
        for _ in range(steps):
            await asyncio.sleep(0)
        viewer.cancel()

    async def hammer():
        nonlocal closing
        following = asyncio.create_task(shared.run())
        staying = [asyncio.create_task(watch()) for _ in range(20)]
        stuck = set()
        for _ in range(40):
            leaving = [asyncio.create_task(watch()) for _ in range(20)]
            await asyncio.gather(*(leave(viewer, chance.randrange(30)) for viewer in leaving))
            left, still_there = await asyncio.wait(leaving, timeout=0.5)
            stuck |= still_there
            assert all(viewer.cancelled() for viewer in left)
        await asyncio.sleep(0.05)
        closing = True
        await asyncio.wait([*staying, *stuck], timeout=10)
        following.cancel()
        return len(stuck), [viewer.result()[-1] for viewer in staying]

    stuck, last = on_a_loop(hammer)
    assert stuck == 0
    assert all(text.startswith("data:") for text in last)


def test_a_server_ends_in_time_and_without_an_error_while_viewers_come_and_go(tmp_path):
    stop, complaints = threading.Event(), []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: complaints.append(record.getMessage())

    def come_and_go(port, seed):
        chance = random.Random(seed)
        while not stop.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
                connection.request("GET", "/events")
                if chance.random() < 0.7:
                    connection.getresponse().readline()
                time.sleep(chance.random() * 0.02)
                connection.close()

    for turn in range(2):
        rounds = federation(rounds=6)
        with Recorder(tmp_path / f"run{turn}") as recorder, served(tmp_path / f"run{turn}") as port:
            for logger in ("uvicorn.error", "asyncio"):
                logging.getLogger(logger).addHandler(handler)
            viewers = [threading.Thread(target=come_and_go, args=(port, seed)) for seed in range(8)]
            for viewer in viewers:
                viewer.start()
            for fl_round in rounds:
                recorder.observe(fl_round)
                time.sleep(0.1)
            begun = time.monotonic()  # they go on while the server ends
        assert time.monotonic() - begun < 10
        stop.set()
        for viewer in viewers:
            viewer.join(10)
        stop.clear()
    for logger in ("uvicorn.error", "asyncio"):
        logging.getLogger(logger).removeHandler(handler)
    assert complaints == []


def _next(answer):
    """The data of the next event."""
    while not (line := answer.readline().decode()).startswith("data:"):
        assert line, "the stream ended"
    return line


def test_a_run_that_has_not_begun_is_a_page_that_waits(tmp_path):
    with served(tmp_path / "run") as port:
        assert "no round has been scored yet" in get(port)[1]
        eventually(lambda: live_data(port)["status"]["state"] == "waiting")


def test_only_this_machine_by_its_own_name_is_answered(tmp_path):
    with served(tmp_path / "run") as port:
        for host in ("127.0.0.1", f"localhost:{port}", "[::1]:80", "127.0.0.2"):
            assert get(port, Host=host)[0].status == 200
        for host in (
            "evil.example",
            "127.0.0.1.evil.example",
            "",
            "[::2]",
            "[::1].evil.com",
            "[::1]x:80",
            "localhost:80:80",
        ):
            assert get(port, Host=host)[0].status == 403


def test_the_address_that_is_told_opens_the_page_whatever_the_token(tmp_path):
    calls, token = [], "a+b&c=d%41#/?[e] fgh"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uvicorn.Server, "run", lambda self, sockets: None)
        live.serve(RunFollower(tmp_path / "run"), port=0, token=token, ready=calls.append)
    with served(tmp_path / "run", token) as port:
        assert get(port, "/" + calls[0].rpartition("/")[2])[0].status == 303


def test_every_request_must_bring_the_token(tmp_path):
    with served(tmp_path / "run", TOKEN) as port:
        for path in ("/", "/view", "/events", "/plotly.js", "/nonsense"):
            assert get(port, path)[0].status == 401
            assert get(port, path, Authorization="Bearer wrong")[0].status == 401
            assert get(port, path + "?token=0123456789abcdeX")[0].status == 401
            assert get(port, path, Cookie="fedcoast=wrong")[0].status == 401
            assert get(port, path, Cookie="=;;,fedcoast")[0].status == 401
        assert get(port, "/view", Authorization=f"Bearer {TOKEN}", Host="any.example")[0].status == 200
        answer, _ = get(port, f"/?token={TOKEN}")
        assert answer.status == 303
        assert "HttpOnly; SameSite=Strict" in answer.headers["Set-Cookie"]
        assert TOKEN not in answer.headers["Set-Cookie"] + answer.headers["Location"]
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
        assert get(port, "/", Cookie=cookie)[0].status == 200
        assert get(port, "/events", Cookie=cookie)[0].status == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org"])
def test_other_interfaces_are_refused_without_a_token(host):
    with pytest.raises(BadSetting, match="can be reached from other machines"):
        live.check(host, None)
    live.check(host, TOKEN)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_this_machine_needs_no_token(host):
    live.check(host, None)


@pytest.mark.parametrize("token", ["", "short", "0123456789abcde", "0123456789abcdé!", "0123456789abcde\n"])
def test_a_token_that_could_be_guessed_is_refused(token):
    with pytest.raises(BadSetting, match="at least 16 printable ASCII characters"):
        live.check("127.0.0.1", token)


def test_a_port_that_is_taken_is_told(tmp_path):
    with served(tmp_path / "run") as port, pytest.raises(BadSetting, match=f"port {port}"):
        live.serve(RunFollower(tmp_path / "run"), port=port)


def slow(port, count):
    """Connections that never bring a whole request."""
    opened = []
    for _ in range(count):
        one = socket.create_connection(("127.0.0.1", port), timeout=10)
        one.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        opened.append(one)
    return opened


def test_half_a_request_is_dropped_after_a_while(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    with served(tmp_path / "run") as port:
        (one,) = slow(port, 1)
        with contextlib.closing(one), contextlib.suppress(ConnectionResetError):
            assert one.recv(100) == b""
        assert get(port)[0].status == 200


def test_many_half_requests_lock_no_viewer_out(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 20)
    with served(tmp_path / "run") as port:
        events = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        events.request("GET", "/events")
        stream = events.getresponse()
        opened = slow(port, 60)
        assert get(port)[0].status == 200
        assert _next(stream)
        for one in (*opened, events):
            one.close()


def test_a_viewer_too_many_is_refused_and_nobody_who_watches_is_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)
    with served(tmp_path / "run") as port:
        watching = [http.client.HTTPConnection("127.0.0.1", port, timeout=10) for _ in range(3)]
        streams = []
        for one in watching:
            one.request("GET", "/events")
            streams.append(one.getresponse())
        late = socket.create_connection(("127.0.0.1", port), timeout=10)
        with contextlib.closing(late), contextlib.suppress(ConnectionError):
            late.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert late.recv(100) == b""
        assert all(_next(stream) for stream in streams)
        for one in watching:
            one.close()


def test_a_viewer_that_takes_nothing_holds_little_memory_and_is_dropped(tmp_path, monkeypatch):
    size, open_sockets, dropped = 30_000_000, [], []  # far more than the system keeps for a socket
    protocol = connections.LimitedConnections
    pause, lost = protocol.pause_writing, protocol.connection_lost
    monkeypatch.setattr(live, "plotly_js", lambda: "x" * size)
    monkeypatch.setattr(connections, "STALLED_SECONDS", 0.5)
    monkeypatch.setattr(protocol, "pause_writing", lambda self: open_sockets.append(pause(self) or _buffered(self)))
    monkeypatch.setattr(protocol, "connection_lost", lambda self, exc: dropped.append(lost(self, exc)))
    with served(tmp_path / "run") as port:
        stuck = socket.create_connection(("127.0.0.1", port), timeout=20)
        stuck.sendall(b"GET /plotly.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        eventually(lambda: dropped)
        came = 0
        with contextlib.closing(stuck), contextlib.suppress(ConnectionError):
            while piece := stuck.recv(1_000_000):
                came += len(piece)
        assert came < size
        assert max(open_sockets) < 500_000
        monkeypatch.setattr(connections, "STALLED_SECONDS", 30)
        assert len(get(port, "/plotly.js")[1]) == size


def _buffered(connection):
    return connection.transport.get_write_buffer_size()


def test_a_token_comes_from_a_file_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("FEDCOAST_TOKEN", raising=False)
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert live.read_token(tmp_path / "token") == TOKEN
    assert live.read_token(None) is None
    monkeypatch.setenv("FEDCOAST_TOKEN", TOKEN)
    assert live.read_token(None) == TOKEN
    with pytest.raises(BadSetting, match="cannot be read as a token"):
        live.read_token(tmp_path / "nowhere")
