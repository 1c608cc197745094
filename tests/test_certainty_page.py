"""docs/certainty.md follows from what was measured."""

import json
from pathlib import Path

from benchmarks.coverage import DOCS, page

RECORD = Path(__file__).parents[1] / "results" / "coverage.json"


def test_the_page_of_certainty_is_what_its_record_gives():
    assert DOCS.read_text(encoding="utf-8") == page(json.loads(RECORD.read_text(encoding="utf-8")))
