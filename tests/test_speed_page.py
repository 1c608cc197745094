"""The page on speed says what was measured, and nothing else."""

from benchmarks.speed import UNTIMED, goals
from benchmarks.speed_page import DOCS, PLOTS, label, page, recorded


def test_the_page_is_made_from_the_figures_that_were_kept():
    measured = recorded("speed")
    assert measured is not None, "run: python -m benchmarks.speed"
    assert (DOCS / "speed.md").read_text(encoding="utf-8") == page(measured, recorded("speed-huge"))
    for plot in PLOTS:
        assert (DOCS / "images" / f"{plot}.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_every_goal_that_is_not_met_is_named_on_the_page():
    measured = recorded("speed")
    goals = measured["goals"]
    text = page({**measured, "goals": [{**goal, "verdict": "not met"} for goal in goals]}, None)
    assert f"0 of {len(goals)} met. Not met: {label(goals[0]['what'])}" in text
    assert text.count("**not met**") == len(goals)


def test_a_busy_machine_is_said_and_its_times_are_not_judged():
    measured = recorded("speed")
    idle, busy = (goals({**measured, "load before": load, "load after": load + 1}) for load in (0.1, 9.0))
    assert not any(goal["verdict"] == "not judged" for goal in idle)
    unjudged = [goal["what"] for goal in busy if goal["verdict"] == "not judged"]
    assert sorted(unjudged + list(UNTIMED)) == sorted(goal["what"] for goal in busy)
    assert "The machine was busy" in page({**measured, "goals": busy}, None)
    assert "The machine was busy" not in page({**measured, "goals": idle}, None)
