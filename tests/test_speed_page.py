"""The page on speed says what was measured, and nothing else."""

from benchmarks.speed_page import DOCS, PLOTS, kept, page


def test_the_page_is_made_from_the_figures_that_were_kept():
    measured = kept("speed")
    assert measured is not None, "run: python -m benchmarks.speed"
    assert (DOCS / "speed.md").read_text(encoding="utf-8") == page(measured, kept("speed-huge"))
    for plot in PLOTS:
        assert (DOCS / "images" / f"{plot}.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_every_goal_that_is_not_met_is_named_on_the_page():
    measured = kept("speed")
    failed = {**measured, "goals": [{**goal, "met": False} for goal in measured["goals"]]}
    text = page(failed, None)
    assert f"0 of {len(measured['goals'])} met. Not met: {measured['goals'][0]['what']}" in text
    assert text.count("**not met**") == len(measured["goals"])
