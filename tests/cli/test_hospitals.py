"""The demo on four hospitals."""

from typer.testing import CliRunner

from fedcoast.cli import app


def test_the_demo_on_hospitals_ranks_them_and_tells_what_retraining_says(tmp_path):
    report = tmp_path / "heart.html"
    run = CliRunner().invoke(app, ["demo", "--dataset", "heart", "--out", str(report)])
    assert run.exit_code == 0, run.output
    for site in ("cleveland", "hungarian", "switzerland", "va"):
        assert site in run.stdout
    assert "each patient has the same weight: " in run.stdout
    assert "Heart disease, four hospitals" in report.read_text("utf-8")
