"""Whatever is changed in a recorded run is found, and the right file named."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audit.runs import ROUNDS, answer, coast, record
from fedcoast import replay
from fedcoast.audit import verify
from fedcoast.storage.chain import Link, content, fact_hashes, read_link


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit") / "run"
    record(folder)
    return folder


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")


@pytest.fixture
def copy(run, tmp_path):
    shutil.copytree(run, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture(scope="module")
def right_answer(run):
    return answer(run).to_json()


@pytest.fixture(scope="module")
def ledger(run, tmp_path_factory):
    """A run with the saved state of an assessor in it, and what is said of that."""
    folder = tmp_path_factory.mktemp("ledger") / "run"
    shutil.copytree(run, folder)
    assessor = coast()
    for fl_round in replay(folder):
        assessor.observe(fl_round)
    assessor.save(folder / "coast.state")
    return folder / "coast.state", verify(folder).confirmed[0]


def place(folder, number):
    return folder / "rounds" / f"{number:010d}"


def named(folder, **wanted):
    found = verify(folder, **wanted)
    assert not found.agrees
    return {finding.file: finding.what for finding in found.findings}


def test_an_untouched_run_agrees(run):
    found = verify(run)
    assert found.agrees, found.findings
    assert (found.rounds, found.files) == (ROUNDS, len(files_of(run)))
    links = sum(path.stat().st_size for path in run.glob("rounds/*/link.json"))
    assert found.bytes == sum(path.stat().st_size for path in files_of(run)) - links


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_single_changed_bit_is_found_in_its_file_and_nowhere_else(run, data):
    path = data.draw(st.sampled_from(files_of(run)))
    whole = path.read_bytes()
    offset = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[offset] ^= 1 << data.draw(st.integers(0, 7))
    try:
        path.write_bytes(changed)
        assert set(named(run)) == {path.relative_to(run).as_posix()}
    finally:
        path.write_bytes(whole)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_file_that_is_cut_grown_removed_or_renamed_is_named(run, data):
    path = data.draw(st.sampled_from([one for one in files_of(run) if one.name != "run.json"]))
    how = data.draw(st.sampled_from(["cut", "grown", "removed", "renamed", "a folder"]))
    whole, other = path.read_bytes(), path.with_name("another")
    try:
        if how in ("cut", "grown"):
            path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))] if how == "cut" else whole + b" ")
        else:
            path.unlink()
            if how == "renamed":
                other.write_bytes(whole)
            elif how == "a folder":
                path.mkdir()
        found = named(run)
        wanted = {path.relative_to(run).as_posix()}
        if how == "renamed" and path.name == "link.json":
            wanted = wanted | ({other.relative_to(run).as_posix()} & set(found))
        assert set(found) == wanted
        if how == "renamed" and path.name != "link.json":
            assert next(iter(found.values())).endswith("it was renamed to another")
    finally:
        if path.is_dir():
            path.rmdir()
        other.unlink(missing_ok=True)
        path.write_bytes(whole)


def test_run_json_cannot_go_missing(copy):
    (copy / "run.json").unlink()
    assert set(named(copy)) == {"run.json"}


@pytest.mark.parametrize("name", ["extra.txt", ".hidden", "client-000009.safetensors", "folder/"])
def test_whatever_is_added_to_a_round_is_named(copy, name):
    path = place(copy, 3) / name
    path.mkdir() if name.endswith("/") else path.write_text("x")
    assert set(named(copy)) == {f"rounds/0000000003/{name.rstrip('/')}"}


@pytest.mark.parametrize("name", ["notes.txt", "00000000003", "0000000003 copy", ".hidden"])
def test_whatever_is_added_beside_the_rounds_is_named(copy, name):
    shutil.copytree(place(copy, 3), copy / "rounds" / name)
    assert set(named(copy)) == {f"rounds/{name}"}


def test_two_uploads_that_change_places_are_both_named_with_their_clients(copy):
    one, two = (place(copy, 4) / f"client-00000{n}.safetensors" for n in (0, 1))
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    found = named(copy)
    assert set(found) == {"rounds/0000000004/client-000000.safetensors", "rounds/0000000004/client-000001.safetensors"}
    assert "the upload of client 'ann'" in found["rounds/0000000004/client-000001.safetensors"]


def test_a_link_to_a_file_elsewhere_is_no_recorded_file(copy, tmp_path):
    path = place(copy, 4) / "end.safetensors"
    path.rename(tmp_path / "end")
    path.symlink_to(tmp_path / "end")
    assert "not a plain file" in named(copy)["rounds/0000000004/end.safetensors"]


@pytest.mark.parametrize("number", [1, 3])
def test_a_round_that_is_gone_is_named(copy, number):
    shutil.rmtree(place(copy, number))
    assert set(named(copy)) == {f"rounds/{number:010d}"}


def test_rounds_that_change_places_are_both_named(copy):
    place(copy, 2).rename(copy / "aside")
    place(copy, 4).rename(place(copy, 2))
    (copy / "aside").rename(place(copy, 4))
    found = named(copy)
    assert set(found) == {"rounds/0000000002", "rounds/0000000004"}
    assert "holds round 4" in found["rounds/0000000002"]


def test_a_round_that_is_renamed_is_named_and_so_is_the_gap_it_leaves(copy):
    place(copy, 4).rename(place(copy, 9))
    found = named(copy)
    assert "holds round 4" in found["rounds/0000000009"]
    assert "is missing" in found["rounds/0000000004"]


def test_links_that_change_places_are_named_as_links(copy):
    one, two = place(copy, 2) / "link.json", place(copy, 3) / "link.json"
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    assert set(named(copy)) == {"rounds/0000000002/link.json", "rounds/0000000003/link.json"}


def test_what_was_changed_in_the_facts_of_a_round_is_said(copy):
    path = place(copy, 2) / "round.json"
    for old, new, expected in (
        ('"weight": 10.0', '"weight": 90.0', "clients, their files or weights"),
        ('"accuracy": 0.5', '"accuracy": 0.9', "metrics"),
        ("must be finite", "must be finer", "quarantined"),
        ('"number": 2,', '"number":  2,', "bytes"),
    ):
        whole = path.read_text()
        path.write_text(whole.replace(old, new))
        assert expected in named(copy)["rounds/0000000002/round.json"]
        path.write_text(whole)
    assert verify(copy).agrees


def relinked(folder, number, **changes):
    """A forger who knows the format: the link of a round is made anew to fit its files."""
    at, link = place(folder, number), read_link(place(folder, number))
    files = {path.name: content(path) for path in at.iterdir() if path.name != "link.json"}
    facts = fact_hashes(json.loads((at / "round.json").read_text()))
    made = Link(**{**vars(link), "number": number, "files": files, "facts": facts, **changes})
    (at / "link.json").write_bytes(made.to_bytes())
    return made


def test_a_round_whose_link_was_forged_too_is_found_by_the_link_after_it(copy):
    path = place(copy, 2) / "round.json"
    path.write_text(path.read_text().replace('"weight": 10.0', '"weight": 90.0'))
    relinked(copy, 2)
    assert set(named(copy)) == {"rounds/0000000002/link.json"}


def test_a_chain_that_was_written_anew_from_there_on_is_found_by_a_head_that_was_kept(copy):
    noted_head = verify(copy).head
    path = place(copy, 2) / "round.json"
    path.write_text(path.read_text().replace('"weight": 10.0', '"weight": 90.0'))
    link = relinked(copy, 2)
    for number in range(3, ROUNDS + 1):
        link = relinked(copy, number, previous=link.hash)
    assert verify(copy).agrees, "this is what a chain cannot tell without a head"
    assert "was rewritten" in named(copy, head=noted_head)["rounds"]


def test_a_tail_that_was_cut_off_is_found_by_a_head_that_was_kept(copy):
    noted_head = verify(copy).head
    shutil.rmtree(place(copy, 5))
    shutil.rmtree(place(copy, 4))
    assert verify(copy).agrees, "this is what a chain cannot tell without a head"
    assert "rounds were cut off at the end" in named(copy, head=noted_head)["rounds"]


def test_a_round_that_was_slipped_in_is_named(copy):
    shutil.rmtree(place(copy, 3))
    number, link = 3, read_link(place(copy, 2))
    shutil.copytree(place(copy, 2), place(copy, number))
    path = place(copy, number) / "round.json"
    path.write_text(path.read_text().replace('"number": 2', '"number": 3'))
    relinked(copy, number, after=2, previous=link.hash)
    assert set(named(copy)) == {"rounds/0000000003/link.json"}


def test_a_round_that_was_slipped_between_two_is_named(tmp_path):
    record(tmp_path / "run", count=2)
    place(tmp_path / "run", 2).rename(place(tmp_path / "run", 7))
    path = place(tmp_path / "run", 7) / "round.json"
    path.write_text(path.read_text().replace('"number": 2', '"number": 7'))
    relinked(tmp_path / "run", 7)
    assert verify(tmp_path / "run").agrees
    shutil.copytree(place(tmp_path / "run", 7), place(tmp_path / "run", 4))
    path = place(tmp_path / "run", 4) / "round.json"
    path.write_text(path.read_text().replace('"number": 7', '"number": 4'))
    relinked(tmp_path / "run", 4)
    assert "was added: round 7 does not follow it" in named(tmp_path / "run")["rounds/0000000004"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_bit_in_a_ledger_is_found_or_makes_it_the_true_ledger_of_settings_that_are_said(ledger, data):
    path, as_it_was = ledger
    run, whole = path.parent, path.read_bytes()
    changed = bytearray(whole)
    changed[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        path.write_bytes(changed)
        found = verify(run)
        assert {Path(finding.file).name for finding in found.findings} == {"coast.state"} or (
            found.confirmed != (as_it_was,) and found.confirmed[0].startswith(as_it_was.partition("(")[0])
        )
    finally:
        path.write_bytes(whole)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_number_in_an_answer_is_found(run, right_answer, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "answer.json"
    expected = json.loads(right_answer)
    where = data.draw(st.sampled_from(["scores", "seen", "mean", "ranks", "credits"]))
    row = (
        expected[where]
        if where != "credits"
        else expected[where][data.draw(st.sampled_from(sorted(expected["credits"])))]
    )
    at = data.draw(st.sampled_from([place for place, value in enumerate(row) if value is not None]))
    row[at] += data.draw(st.sampled_from([1, -1, 100]))
    path.write_text(json.dumps(expected))
    found = named(run, artifacts=[path])
    assert set(found) == {str(path)}
    assert f"of {['3', repr('ann'), repr('bob')][at]} is" in found[str(path)]
