"""docs/verdicts.md says what results/verdicts.json holds, and the promises of the verdicts hold in it."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
from benchmarks.verdicts import page, wrong

ROOT = Path(__file__).parents[1]
MEASURED = json.loads((ROOT / "results" / "verdicts.json").read_text("utf-8"))


def test_the_page_says_what_was_measured():
    assert (ROOT / "docs" / "verdicts.md").read_text("utf-8") == page(MEASURED["runs"], MEASURED["settings"])


def test_every_zero_rider_is_idle_and_no_honest_client_ever_is():
    riders = [run["verdicts"]["idle"] for run in MEASURED["runs"] if run["attack"] == "zero"]
    assert len(riders) >= 20
    assert all(found == {"idle": 1} for found in riders)
    assert not any(run["verdicts"].get(kind, {}).get("idle") for run in MEASURED["runs"] for kind in ("honest", "harm"))


def test_wherever_a_client_with_mostly_wrong_labels_is_said_to_help_the_answer_warns_of_labels():
    misled = [
        run for run in MEASURED["runs"] if run["setting"] == "label-noise" and run["verdicts"]["harm"].get("helps")
    ]
    assert misled
    assert all(run["told of labels"] for run in misled)


@pytest.mark.parametrize(
    ("kind", "verdict", "expected"),
    [("idle", "helps", True), ("idle", "idle", False), ("honest", "idle", True), ("harm", "cannot tell", False)],
)
def test_a_verdict_is_wrong_where_it_claims_what_is_not_true(kind, verdict, expected):
    assert wrong(kind, verdict) is expected
