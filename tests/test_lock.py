"""The lock with hashes names the versions that are tested, and no others."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def pins(text):
    found = re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;\\]+)", text, re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


def test_every_pin_has_hashes_and_the_same_version_in_both_files():
    """After a change of constraints.txt run `make lock`."""
    lock = (ROOT / "requirements.lock").read_text()
    assert pins(lock) == pins((ROOT / "constraints.txt").read_text())
    for entry in re.split(r"\n(?=[A-Za-z0-9])", lock.strip()):
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry.partition(" ")[0]
