"""The live page, in a real browser, beside a federation that records."""

import contextlib
import re
import shutil
import socket
import subprocess
import sys
import time

import pytest

from fedcoast import Recorder
from federations import federation
from report_samples import RIGHT_TO_LEFT, SCRIPT

pytestmark = pytest.mark.slow

SERVE = """
import sys
from fedcoast.reports.following import RunFollower
from fedcoast.reports.live import serve
serve(RunFollower(sys.argv[1]), port=int(sys.argv[2]), token=sys.argv[3] or None, ready=lambda address: print(address))
"""
CLIENTS = ("ann", SCRIPT, RIGHT_TO_LEFT, "dan")


@pytest.fixture
def port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextlib.contextmanager
def served(folder, port, token=""):
    """The server in a process of its own, stopped as an operator stops it."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", SERVE, str(folder), str(port), token], stdout=subprocess.PIPE, text=True
    )
    try:
        address = process.stdout.readline().strip()
        until = time.monotonic() + 30
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as probe:
                probe.sendall(b"GET /nothing HTTP/1.0\r\nHost: localhost\r\n\r\n")
                if probe.recv(1):
                    break
            time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def wait_for_text(page, text, timeout=20_000):
    from playwright.sync_api import expect

    expect(page.locator("#live")).to_contain_text(text, timeout=timeout)


def ranking(page):
    return page.locator("#ranking-table tbody th bdi").all_inner_texts()


def grown(visit, folder, address, rounds):
    """A page that has seen these rounds, with the recorder that goes on."""
    recorder = Recorder(folder)
    for fl_round in rounds:
        recorder.observe(fl_round)
    page = visit(address, offline=False)
    wait_for_text(page, f"round {rounds[-1].number}")
    return drawn(page, "ranking"), recorder


def drawn(page, name):
    page.locator(f"#figure-{name}").scroll_into_view_if_needed()
    page.wait_for_selector(f"#figure-{name}[data-drawn]", timeout=60_000)
    return page


def test_the_page_updates_within_a_second_of_a_new_round(visit, tmp_path, port):
    rounds = federation(rounds=24, clients=CLIENTS)
    with served(tmp_path / "run", port) as address:
        page, recorder = grown(visit, tmp_path / "run", address, rounds[:14])
        page.evaluate(
            "(seen => new MutationObserver(() => { seen[by.textContent] ??= Date.now(); })"
            ".observe(by, {childList: true, characterData: true, subtree: true}))(window.seen = {})".replace(
                "by", "document.getElementById('live')"
            )
        )
        recorded = {}
        for fl_round in rounds[14:]:
            recorder.observe(fl_round)
            recorded[f"Live: round {fl_round.number}"] = time.time()
            wait_for_text(page, f"round {fl_round.number}", timeout=5_000)
        recorder.close()
        seen = page.evaluate("window.seen")
        times = [seen[text] / 1000 - when for text, when in recorded.items()]
        assert sorted(times)[len(times) // 2] < 1, times
        ends = drawn(page, "timeline").locator("#figure-timeline").evaluate("e => e.data.map(t => t.x.at(-1))")
        assert set(ends) == {23}
        assert page.complaints == []


def test_it_begins_before_the_run_does_and_names_are_text(visit, tmp_path, port):
    with served(tmp_path / "run", port) as address:
        page = visit(address, offline=False)
        wait_for_text(page, "Waiting (no round yet)")
        with Recorder(tmp_path / "run") as recorder:
            for fl_round in federation(rounds=12, clients=CLIENTS):
                recorder.observe(fl_round)
        wait_for_text(page, "Live: round 12")
        assert sorted(ranking(page)) == sorted(CLIENTS)
        assert SCRIPT in drawn(page, "ranking").locator("#figure-ranking .ytick text").all_text_contents()
        assert page.complaints == []


def test_it_comes_back_when_the_server_was_restarted(visit, tmp_path, port):
    rounds = federation(rounds=10, clients=CLIENTS)
    with served(tmp_path / "run", port) as address:
        page, recorder = grown(visit, tmp_path / "run", address, rounds[:8])
    wait_for_text(page, "Connection lost")
    for fl_round in rounds[8:]:
        recorder.observe(fl_round)
    recorder.close()
    with served(tmp_path / "run", port):
        wait_for_text(page, "Live: round 10")
        assert page.locator("#live").get_attribute("data-state") == "live"
    assert not [text for text in page.complaints if not re.search("ERR_CONNECTION_REFUSED|ERR_INCOMPLETE", text)]


def test_a_run_that_replaces_another_is_shown_from_its_beginning(visit, tmp_path, port):
    with served(tmp_path / "run", port) as address:
        page, recorder = grown(visit, tmp_path / "run", address, federation(rounds=8, clients=CLIENTS))
        recorder.close()
        shutil.rmtree(tmp_path / "run")
        wait_for_text(page, "Waiting (round 8)")
        assert sorted(ranking(page)) == sorted(CLIENTS)
        with Recorder(tmp_path / "run") as fresh:
            for fl_round in federation(seed=3, rounds=5, clients=("x", "y")):
                fresh.observe(fl_round)
        wait_for_text(page, "Live: round 5")
        assert sorted(ranking(page)) == ["x", "y"]
        assert page.complaints == []


def test_what_a_reader_typed_sorted_and_opened_outlives_an_update(visit, tmp_path, port):
    rounds = federation(rounds=12, clients=("ann", "bob", "cid"))
    with served(tmp_path / "run", port) as address:
        page, recorder = grown(visit, tmp_path / "run", address, rounds[:10])
        page.get_by_role("button", name="client", exact=True).click()
        page.get_by_role("button", name="client", exact=True).click()
        page.get_by_role("button", name="bob", exact=True).click()
        page.locator("#credits-details summary").click()
        page.get_by_label("Find a client").click()
        page.keyboard.type("b")
        recorder.observe(rounds[10])
        wait_for_text(page, "round 11")
        page.keyboard.type("o")
        assert page.get_by_label("Find a client").input_value() == "bo"
        assert page.locator("#ranking-table tbody tr:visible th bdi").all_inner_texts() == ["bob"]
        assert page.locator("#credits-details").get_attribute("open") is not None
        page.get_by_label("Find a client").fill("")
        assert ranking(page) == ["cid", "bob", "ann"]
        assert page.get_by_role("button", name="bob", exact=True).get_attribute("aria-pressed") == "true"
        recorder.close()
        assert page.complaints == []


def test_many_viewers_see_the_same(visit, tmp_path, port):
    rounds = federation(rounds=9, clients=CLIENTS)
    with served(tmp_path / "run", port) as address:
        first, recorder = grown(visit, tmp_path / "run", address, rounds[:8])
        others = [visit(address, offline=False) for _ in range(4)]
        recorder.observe(rounds[8])
        recorder.close()
        for page in (first, *others):
            wait_for_text(page, "Live: round 9")
            assert ranking(page) == ranking(first)


def test_with_a_token_the_printed_address_opens_the_page_and_hides_it(visit, tmp_path, port):
    token = "correct-horse-battery"
    with served(tmp_path / "run", port, token) as address:
        assert address.endswith(f"?token={token}")
        refused = visit(address.partition("?")[0], offline=False)
        assert "needs its token" in refused.locator("body").inner_text()
        page, recorder = grown(visit, tmp_path / "run", address, federation(rounds=5, clients=CLIENTS))
        recorder.close()
        assert token not in page.url
        assert page.complaints == []
