"""The chain that a recorder keeps: what is in it, how it goes on, and that anybody can recompute it."""

import hashlib
import json

import pytest

from audit.runs import ROUNDS, answer, record, rounds, without_chain
from fedcoast import BadFile, Recorder
from fedcoast.audit import verify
from fedcoast.storage.chain import head, read_link


def round_dirs(folder):
    return sorted((folder / "rounds").iterdir())


def test_a_link_can_be_recomputed_with_nothing_but_a_hash_function(tmp_path):
    last = record(tmp_path / "run")
    previous, after = hashlib.sha256((tmp_path / "run" / "run.json").read_bytes()).hexdigest(), None
    for place in round_dirs(tmp_path / "run"):
        link = json.loads((place / "link.json").read_text())
        expected = link.pop("hash")
        assert (link["previous"], link["after"], link["number"]) == (previous, after, int(place.name))
        files = {path.name: path.read_bytes() for path in place.iterdir() if path.name != "link.json"}
        assert link["files"] == {
            name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()
        }
        plain = json.dumps(link, sort_keys=True, separators=(",", ":"))
        previous, after = hashlib.sha256(plain.encode()).hexdigest(), link["number"]
        assert expected == previous
    assert last == previous
    assert head(tmp_path / "run") == (ROUNDS, last)


def test_the_head_follows_from_the_rounds_alone(tmp_path):
    assert record(tmp_path / "one") == record(tmp_path / "two")
    assert record(tmp_path / "three", ballot_keep=0.3) != head(tmp_path / "one")[1]


def test_a_recorder_goes_on_with_the_chain_it_finds(tmp_path):
    whole = record(tmp_path / "whole")
    record(tmp_path / "run", count=2)
    with Recorder(tmp_path / "run") as recorder:
        assert recorder.head == read_link(round_dirs(tmp_path / "whole")[1]).hash
    assert record(tmp_path / "run", first=2) == whole
    assert verify(tmp_path / "run", head=whole).agrees


def test_a_round_that_could_not_be_written_leaves_the_chain_as_it_was(tmp_path, monkeypatch):
    with Recorder(tmp_path / "run") as recorder:
        recorder.observe(rounds()[0])
        before = recorder.head
        with monkeypatch.context() as patched:

            def full(*_):
                raise OSError(28, "No space left on device")

            patched.setattr("fedcoast.storage.recorder.write_json", full)
            with pytest.raises(BadFile, match="No space left"):
                recorder.observe(rounds()[1])
        assert recorder.head == before
        recorder.observe(rounds()[1])
        assert recorder.head != before
    assert verify(tmp_path / "run").agrees


def test_a_run_without_rounds_has_the_head_that_its_first_link_goes_on_from(tmp_path):
    with Recorder(tmp_path / "run") as recorder:
        found = verify(tmp_path / "run")
        assert (found.agrees, found.rounds, found.last_round) == (True, 0, None)
        assert found.head == recorder.head == head(tmp_path / "run")[1]


def test_the_head_of_a_run_without_rounds_holds_at_once_and_while_the_run_grows(tmp_path):
    with Recorder(tmp_path / "run") as recorder:
        noted_head = recorder.head
        found = verify(tmp_path / "run", head=noted_head)
        assert found.agrees, found.findings
        assert found.confirmed == ("the head that was kept is that of run.json, from before the first round",)
        for fl_round in rounds(2):
            recorder.observe(fl_round)
    found = verify(tmp_path / "run", head=noted_head)
    assert found.agrees, found.findings
    assert found.confirmed[0].endswith("from before the first round; 2 rounds were added since")
    Recorder(tmp_path / "other", about={"what": "a test"}).close()
    assert "no link has the head" in verify(tmp_path / "other", head=noted_head).findings[0].what
    record(tmp_path / "other", count=2)
    assert "no link has the head" in verify(tmp_path / "other", head=noted_head).findings[0].what


def test_a_run_older_than_chains_is_read_and_said_to_carry_none(tmp_path):
    record(tmp_path / "run")
    without_chain(tmp_path / "run")
    found = verify(tmp_path / "run")
    assert (found.agrees, found.head, found.findings) == (False, None, ())
    assert found.uncovered == (1, 2, 3, 4, 5)
    record(tmp_path / "new")
    assert answer(tmp_path / "run") == answer(tmp_path / "new")


def test_the_chain_of_an_older_run_begins_with_its_next_round(tmp_path):
    record(tmp_path / "run", count=2)
    without_chain(tmp_path / "run")
    last = record(tmp_path / "run", first=2)
    found = verify(tmp_path / "run", head=last)
    assert (found.uncovered, found.findings, found.agrees) == ((1, 2), (), False)
    assert "is the link of round 5" in found.confirmed[0]


def test_the_links_of_first_rounds_cannot_be_removed_to_make_them_look_older(tmp_path):
    record(tmp_path / "run")
    for place in round_dirs(tmp_path / "run")[:2]:
        (place / "link.json").unlink()
    named = {finding.file for finding in verify(tmp_path / "run").findings}
    assert named == {"rounds/0000000001/link.json", "rounds/0000000002/link.json"}
    for place in round_dirs(tmp_path / "run")[2:]:
        (place / "link.json").unlink()
    assert len(verify(tmp_path / "run").findings) == ROUNDS


def test_a_recorder_refuses_to_go_on_from_a_broken_link(tmp_path):
    record(tmp_path / "run", count=2)
    link = tmp_path / "run" / "rounds" / "0000000002" / "link.json"
    link.write_text(link.read_text().replace('"number": 2', '"number": 3'))
    with pytest.raises(BadFile, match=r"link\.json does not have the hash it says it has"):
        Recorder(tmp_path / "run")


def test_a_recorder_refuses_to_go_on_where_the_last_link_is_gone(tmp_path):
    record(tmp_path / "run", count=2)
    (tmp_path / "run" / "rounds" / "0000000002" / "link.json").unlink()
    with pytest.raises(BadFile, match="the link of round 2 is gone"):
        Recorder(tmp_path / "run")


@pytest.mark.parametrize(
    ("key", "value"), [("number", "2"), ("after", "1"), ("after", 1.5), ("facts", 7), ("files", [])]
)
def test_a_link_of_nonsense_is_named_even_if_its_hash_is_right(tmp_path, key, value):
    record(tmp_path / "run", count=2)
    path = tmp_path / "run" / "rounds" / "0000000002" / "link.json"
    link = json.loads(path.read_text())
    link[key] = value
    del link["hash"]
    plain = json.dumps(link, sort_keys=True, separators=(",", ":"))
    link["hash"] = hashlib.sha256(plain.encode()).hexdigest()
    path.write_text(json.dumps(link, indent=1, sort_keys=True))
    assert [finding.file for finding in verify(tmp_path / "run").findings] == ["rounds/0000000002/link.json"]


def test_what_a_kill_left_half_written_is_named_and_no_difference(tmp_path):
    record(tmp_path / "run")
    (tmp_path / "run" / "rounds" / ".0000000006").mkdir()
    found = verify(tmp_path / "run")
    assert found.agrees
    assert list(found.outside) == ["rounds/.0000000006"]
