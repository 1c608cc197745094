"""Heads and certificates that were signed, and what nobody without the key can do."""

import json
import shutil
import stat

import pytest

from audit.runs import record
from command_line import fedcoast


@pytest.fixture
def signed(tmp_path):
    record(tmp_path / "run")
    assert fedcoast("sign", "--new-key", tmp_path / "key").code == 0
    done = fedcoast("sign", tmp_path / "run", "--key", tmp_path / "key", "--certificate", tmp_path / "certificate.txt")
    assert (done.code, done.stderr) == (0, "")
    return tmp_path


def verify(folder, *more):
    return fedcoast("verify", folder / "run", "--public-key", folder / "key.pub", *more)


def test_a_signed_run_is_as_it_was_recorded(signed):
    done = verify(signed, "--certificate", signed / "certificate.txt")
    assert done.code == 0
    assert "is as it was recorded: 5 rounds" in done.stdout
    assert stat.S_IMODE((signed / "key").stat().st_mode) == 0o600


def test_without_a_kept_head_the_verdict_says_so(signed):
    done = fedcoast("verify", signed / "run")
    assert done.code == 0
    assert "No head from elsewhere was given" in done.stdout
    assert "is as it was recorded" not in done.stdout


def test_rounds_cut_off_at_the_end_are_found(signed):
    shutil.rmtree(signed / "run" / "rounds" / "0000000005")
    assert "rounds were cut off at the end, or the chain was rewritten" in (done := verify(signed)).stdout
    assert done.code == 1


def test_rounds_cut_off_where_no_head_was_kept_are_not_called_as_recorded(tmp_path):
    """Trial 1.4: "is as it was recorded: 17 rounds", without a word that no head was given."""
    record(tmp_path / "run", 6)
    for number in (4, 5, 6):
        shutil.rmtree(tmp_path / "run" / "rounds" / f"{number:010}")
    verdict = fedcoast("verify", tmp_path / "run").stdout.splitlines()[-1]
    assert "is consistent: 3 rounds" in verdict
    assert "No head from elsewhere was given" in verdict
    assert "removed last rounds or a rewritten chain would go unnoticed" in verdict


def test_a_chain_written_anew_is_found(signed):
    shutil.rmtree(signed / "run")
    record(signed / "run", first=1)
    assert verify(signed).code == 1


def test_rounds_that_came_since_are_fine(signed):
    record(signed / "run", 7, first=5)
    done = verify(signed)
    assert done.code == 0
    assert "2 rounds were added since" in done.stdout


def test_a_signed_head_that_was_changed_is_refused(signed):
    path = signed / "run.signed.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "head": "0" * 64}))
    done = verify(signed)
    assert done.code == 3
    assert "was not signed with" in done.stderr


def test_another_key_is_refused(signed):
    fedcoast("sign", "--new-key", signed / "other")
    done = fedcoast("verify", signed / "run", "--public-key", signed / "other.pub")
    assert done.code == 3
    assert "was not signed with" in done.stderr


@pytest.mark.parametrize("change", [
    lambda text: text.replace("5 rounds", "50 rounds"),
    lambda text: text.replace("Not proven", "Proven"),
    lambda text: text + "And more.\n",
    lambda text: text.replace("Head: ", "Head: 0", 1),
    lambda text: "",
    lambda text: text.replace("Signature: ", "Signature: !"),
])  # fmt: skip
def test_a_certificate_of_which_a_word_was_changed_is_refused(signed, change):
    path = signed / "certificate.txt"
    path.write_text(change(path.read_text()))
    assert verify(signed, "--certificate", path).code == 3


def test_a_certificate_is_one_page_that_says_what_it_does_not_prove(signed):
    text = (signed / "certificate.txt").read_text()
    assert len(text.splitlines()) < 60
    assert "Not proven:" in text
    assert "every byte of every round" in text


def test_a_key_is_never_written_over_nor_kept_in_the_run(signed):
    assert "never written over" in fedcoast("sign", "--new-key", signed / "key").stderr
    shutil.copy(signed / "key", signed / "run" / "key")
    assert "lies in the run folder" in fedcoast("sign", signed / "run", "--key", signed / "run" / "key").stderr


@pytest.mark.parametrize("place", ["run", "run/rounds"])
def test_no_key_is_made_in_a_run(signed, place):
    before = sorted((signed / place).iterdir())
    for run in ((), (signed / "run",)):
        done = fedcoast("sign", *run, "--new-key", signed / place / "mine")
        assert (done.code, done.stdout) == (3, "")
        assert "lies in the run folder" in done.stderr
    assert sorted((signed / place).iterdir()) == before


def test_a_run_that_differs_is_not_signed(signed):
    (signed / "run" / "rounds" / "0000000002" / "end.safetensors").write_bytes(b"x")
    (signed / "run.signed.json").unlink()
    assert fedcoast("sign", signed / "run", "--key", signed / "key").code == 1
    assert not (signed / "run.signed.json").exists()


@pytest.mark.parametrize("content", [b"", b"x" * 100, b"-----BEGIN PRIVATE KEY-----\n"])
def test_what_is_no_key_is_told(signed, content):
    (signed / "bad").write_bytes(content)
    assert "is not an Ed25519 private key" in fedcoast("sign", signed / "run", "--key", signed / "bad").stderr
    done = fedcoast("verify", signed / "run", "--public-key", signed / "bad")
    assert "is not an Ed25519 public key" in done.stderr
