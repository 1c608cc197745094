"""What an installation weighs: the table follows from its record, and no extra is left out."""

import json
from pathlib import Path

from benchmarks.installs import USES, missing, table

ROOT = Path(__file__).parents[1]


def test_every_extra_for_users_was_installed_and_used_by_itself():
    assert missing() == set()
    extras = json.loads((ROOT / "results" / "installs.json").read_text("utf-8"))["extras"]
    assert [*extras] == [*USES]


def test_the_table_of_sizes_follows_from_its_record():
    page = (ROOT / "docs" / "supported-versions.md").read_text("utf-8")
    extras = json.loads((ROOT / "results" / "installs.json").read_text("utf-8"))["extras"]
    part = table(extras).strip()
    assert f"<!-- begin: installs -->\n\n{part}\n\n<!-- end: installs -->" in page, "run python -m benchmarks.installs"
