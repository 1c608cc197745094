"""The page of the hospitals follows from its record."""

import json
from pathlib import Path

from benchmarks.natural import page_parts

ROOT = Path(__file__).parents[1]


def test_the_tables_of_the_hospitals_follow_from_their_record():
    page = (ROOT / "docs" / "natural-federations.md").read_text("utf-8")
    cases = json.loads((ROOT / "results" / "natural.json").read_text("utf-8"))["runs"]
    for name, part in page_parts(cases).items():
        assert f"<!-- begin: {name} -->\n\n{part.strip()}\n\n<!-- end: {name} -->" in page, (
            "run python -m benchmarks.natural"
        )


def test_every_case_has_at_least_ten_seeds():
    cases = json.loads((ROOT / "results" / "natural.json").read_text("utf-8"))["runs"]
    assert len(cases) == 4
    assert all(len(runs) >= 10 for runs in cases.values())
