import io
import shutil

import numpy as np
import pytest
from rich.console import Console

from fedcoast import CoAst, Recorder
from fedcoast.reports.following import RunFollower
from fedcoast.reports.terminal import screen, watch
from fedcoast.storage.files import write_json
from federations import at_odds_with_a_rider, federation, show


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda handle: None)


def record(folder, rounds, **about):
    with Recorder(folder, about=about or None) as recorder:
        for fl_round in rounds:
            recorder.observe(fl_round)


def test_a_run_is_followed_as_it_grows(tmp_path):
    rounds = federation(rounds=8)
    record(tmp_path / "run", rounds[:3])
    follower = RunFollower(tmp_path / "run")
    assert follower.catch_up()
    assert not follower.catch_up()
    record(tmp_path / "run", rounds[3:])
    assert follower.catch_up()
    assert follower.report().assessment == show(CoAst(), rounds)
    assert follower.report().title == "run"


def test_a_run_that_has_not_begun_is_waited_for(tmp_path):
    follower = RunFollower(tmp_path / "run")
    assert follower.catch_up()
    assert "is not a folder" in follower.trouble
    assert not follower.catch_up()
    record(tmp_path / "run", federation(rounds=4))
    assert follower.catch_up()
    assert follower.trouble == ""
    assert follower.assessor.last_round == 4


def test_a_run_that_replaces_another_is_followed_from_its_beginning(tmp_path):
    record(tmp_path / "run", federation(rounds=6))
    follower = RunFollower(tmp_path / "run")
    follower.catch_up()
    shutil.rmtree(tmp_path / "run")
    assert follower.catch_up()
    assert follower.trouble
    assert follower.assessor.last_round == 6, "what was known stays known"
    fresh = federation(seed=1, rounds=5, clients=("x", "y"))
    record(tmp_path / "run", fresh)
    assert follower.catch_up()
    assert follower.report().assessment == show(CoAst(), fresh)


def test_a_longer_run_that_replaces_another_between_two_looks_is_not_mixed_up(tmp_path):
    record(tmp_path / "run", federation(rounds=4))
    follower = RunFollower(tmp_path / "run")
    follower.catch_up()
    shutil.rmtree(tmp_path / "run")
    fresh = federation(seed=1, rounds=9, clients=("x", "y"))
    record(tmp_path / "run", fresh)
    follower.catch_up()
    assert follower.report().assessment == show(CoAst(), fresh)


def test_rounds_recorded_anew_in_the_same_folder_are_followed_anew(tmp_path):
    record(tmp_path / "run", federation(rounds=4))
    follower = RunFollower(tmp_path / "run")
    follower.catch_up()
    shutil.rmtree(tmp_path / "run" / "rounds")
    fresh = federation(seed=1, rounds=5)
    record(tmp_path / "run", fresh)
    follower.catch_up()
    assert follower.report().assessment == show(CoAst(), fresh)


def test_old_rounds_may_be_thrown_away(tmp_path):
    rounds = federation(rounds=8)
    record(tmp_path / "run", rounds[:6])
    follower = RunFollower(tmp_path / "run")
    follower.catch_up()
    shutil.rmtree(tmp_path / "run" / "rounds" / "0000000001")
    record(tmp_path / "run", rounds[6:])
    follower.catch_up()
    assert follower.report().assessment == show(CoAst(), rounds)


def test_a_broken_round_is_told_and_tried_again(tmp_path):
    rounds = federation(rounds=6)
    record(tmp_path / "run", rounds)
    broken = tmp_path / "run" / "rounds" / "0000000004" / "round.json"
    whole = broken.read_bytes()
    broken.write_text("{")
    follower = RunFollower(tmp_path / "run")
    follower.catch_up()
    assert follower.assessor.last_round == 3
    assert "torn or altered" in follower.trouble
    broken.write_bytes(whole)
    follower.catch_up()
    assert (follower.assessor.last_round, follower.trouble) == (6, "")


def test_a_long_run_is_read_piece_by_piece(tmp_path):
    record(tmp_path / "run", federation(rounds=5))
    follower = RunFollower(tmp_path / "run")
    for number in range(1, 6):
        assert follower.catch_up(patience=-1)
        assert (follower.assessor.last_round, follower.behind) == (number, True)
    assert follower.catch_up(patience=-1), "whoever looks must learn that nothing is left to catch up with"
    assert not follower.behind
    assert not follower.catch_up(patience=-1)


def test_what_the_run_says_of_itself_is_in_the_report(tmp_path):
    planted = [
        {"client": {"name": name, "type": "str"}, "value": v} for name, v in (("ann", 3), ("bob", 2), ("cid", 1))
    ]
    record(tmp_path / "run", federation(rounds=6), planted=planted, dataset="toy")
    follower = RunFollower(tmp_path / "run")
    follower.catch_up()
    report = follower.report()
    assert report.facts["dataset"] == "toy"
    assert sorted(summary.true_rank for summary in report.summaries) == [1, 2, 3]


def test_a_true_order_that_is_none_is_told(tmp_path):
    record(tmp_path / "run", federation(rounds=3), planted=[{"client": "ann"}])
    follower = RunFollower(tmp_path / "run")
    follower.catch_up()
    assert "not as the lab writes it" in follower.trouble


def test_checkpoints_are_followed_too(tmp_path):
    for fl_round in federation(rounds=4):
        place = tmp_path / f"round-{fl_round.number}"
        (place / "clients").mkdir(parents=True)
        np.savez(place / "start.npz", **fl_round.start)
        np.savez(place / "end.npz", **fl_round.end)
        for client, model in fl_round.local.items():
            np.savez(place / "clients" / f"{client}.npz", **model)
    follower = RunFollower(tmp_path)
    follower.catch_up()
    assert (follower.assessor.last_round, follower.trouble) == (4, "")
    assert not follower.catch_up()


# --- in a terminal


def printed(renderable, width=110):
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(renderable)
    return out.getvalue()


def test_a_terminal_shows_the_ranking_in_order(tmp_path):
    record(tmp_path / "run", federation(rounds=30))
    follower = RunFollower(tmp_path / "run")
    follower.catch_up()
    shown = printed(screen(follower))
    assert shown.index("│ ann ") < shown.index("│ bob ") < shown.index("│ cid ")
    assert "round 30" in shown
    assert "●" in shown


def test_a_terminal_names_idle_clients_and_what_may_mislead_the_verdicts(tmp_path):
    record(tmp_path / "run", at_odds_with_a_rider())
    follower = RunFollower(tmp_path / "run")
    follower.catch_up()
    shown = " ".join(printed(screen(follower, 80), 80).split())
    assert "1 client is idle and returned the model unchanged in most rounds: rider." in shown
    assert "some labels may be wrong" in shown


def test_a_terminal_that_is_too_low_shows_both_ends(tmp_path):
    record(tmp_path / "run", federation(rounds=4, clients=tuple(f"c{n:02}" for n in range(30))))
    follower = RunFollower(tmp_path / "run")
    follower.catch_up()
    lines = printed(screen(follower, 80, 20)).splitlines()
    assert len(lines) <= 21
    assert any("│   30 │" in line for line in lines)


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_a_terminal_of_any_width_shows_a_client_in_one_line_with_its_whole_range(tmp_path, width):
    clients = ("x" * 100, "مستشفى القاهرة", "<script>alert(1)</script>")
    record(tmp_path / "run", federation(rounds=30, clients=clients))
    follower = RunFollower(tmp_path / "run")
    follower.catch_up()
    lines = printed(screen(follower, width), width).splitlines()
    rows = [line for line in lines if "●" in line and line.startswith("│")]
    assert len(rows) == 3
    assert all(len(line) <= width + 2 for line in lines)  # and two marks of no width around the Arabic name
    assert "\u2068مستشفى القاهرة\u2069" in rows[1]
    assert "<script>aler" in rows[2]


def test_a_name_that_would_drive_the_terminal_is_text(tmp_path):
    record(tmp_path / "\x1b[2Jrun", federation(rounds=4, clients=("\x1b[2J[bold]x[/bold]\n", "b")))
    follower = RunFollower(tmp_path / "\x1b[2Jrun")
    follower.catch_up()
    shown = printed(screen(follower))
    assert r"\x1b[2J[bold]x[/bold]\n" in shown
    assert "\x1b" not in shown


def test_watching_in_a_pipe_prints_whenever_something_changed(tmp_path):
    rounds = federation(rounds=5)
    record(tmp_path / "run", rounds[:4])
    out, looks = io.StringIO(), iter([False, False, True])

    def until():
        record(tmp_path / "run", rounds[4:5]) if not (tmp_path / "run" / "rounds" / "0000000005").exists() else None
        return next(looks)

    watch(RunFollower(tmp_path / "run"), Console(file=out, width=110), until)
    assert out.getvalue().count("client") == 2
    assert "round 4" in out.getvalue()
    assert "round 5" in out.getvalue()


def test_watching_in_a_terminal_draws_in_place(tmp_path):
    record(tmp_path / "run", federation(rounds=5))
    out = io.StringIO()
    watch(RunFollower(tmp_path / "run"), Console(file=out, width=110, force_terminal=True), lambda: True)
    assert "ann" in out.getvalue()


def test_a_run_json_of_something_else_is_told(tmp_path):
    (tmp_path / "run").mkdir()
    write_json(tmp_path / "run" / "run.json", {"format": "something else"})
    follower = RunFollower(tmp_path / "run")
    follower.catch_up()
    assert "does not say that this is a fedcoast-run" in follower.trouble
    assert "does not say" in " ".join(printed(screen(follower)).split())
