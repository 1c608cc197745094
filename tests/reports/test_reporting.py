"""`fedcoast report`, `serve` and `watch`, as a user calls them."""

import json

import pytest
import typer
from typer.testing import CliRunner

from fedcoast import Assessment, CoAst, FedcoastError, replay
from fedcoast.cli import reporting

app = typer.Typer()
for command in (reporting.report, reporting.serve, reporting.watch):
    app.command()(command)


def fedcoast(*arguments):
    done = CliRunner().invoke(app, list(map(str, arguments)))
    if isinstance(done.exception, FedcoastError):
        return str(done.exception)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def test_a_run_becomes_a_report_whose_path_is_printed(run, tmp_path):
    done = fedcoast("report", run, "-o", tmp_path / "r.html", "--keep", 0.5)
    assert (done.exit_code, done.stdout) == (0, f"{tmp_path / 'r.html'}\n")
    assert ">c1</bdi>" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("form", ["md", "csv", "json"])
def test_the_form_can_be_chosen(run, tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    assert fedcoast("report", run, "--format", form, "--keep", 0.5).stdout == f"report.{form}\n"
    assert "c1" in (tmp_path / f"report.{form}").read_text()


def test_options_reach_the_assessor(run, tmp_path):
    for preset, made in (("paper", CoAst.paper(horizon=1)), ("votes", CoAst.votes(horizon=1))):
        fedcoast("report", run, "-o", tmp_path / "r.json", "--preset", preset, "--horizon", 1)
        for fl_round in replay(run):
            made.observe(fl_round)
        content = json.loads((tmp_path / "r.json").read_text())["assessment"]
        assert Assessment.from_json(json.dumps(content)) == made.assessment()


def test_an_answer_in_json_becomes_a_report_too(run, tmp_path):
    assessor = CoAst(keep=0.5)
    for fl_round in replay(run):
        assessor.observe(fl_round)
    (tmp_path / "answer.json").write_text(assessor.assessment().to_json())
    fedcoast(
        "report", tmp_path / "answer.json", "-o", tmp_path / "r.json", "--budget", "99.95", "--rule", "rank", "--force"
    )
    content = json.loads((tmp_path / "r.json").read_text())
    assert content["title"] == "answer"
    assert content["rewards"]["budget"] == "99.95"
    assert [entry["client"]["name"] for entry in content["clients"]] == ["c1", "c2", "c3"]


def test_shares_in_a_report_may_pay_for_the_adjusted_mean(tmp_path):
    credits = {1: {"ann": 9, "bob": 8}, 2: {"bob": 2, "cid": 1}, 3: {"bob": 2, "cid": 1}}
    scores, seen = {"ann": 9, "bob": 12, "cid": 2}, {"ann": 1, "bob": 3, "cid": 2}
    (tmp_path / "answer.json").write_text(Assessment("mine", scores, credits, rounds_scored=seen).to_json())
    for by, best, payment in (
        ("total", "bob", "to the scores, to"),
        ("adjusted-mean", "ann", "per round, adjusted for absences, to"),
    ):
        fedcoast("report", tmp_path / "answer.json", "-o", tmp_path / "r.json", "--by", by, "--budget", "12", "--force")
        assert json.loads((tmp_path / "r.json").read_text())["rewards"]["clients"][0]["name"] == best
        fedcoast("report", tmp_path / "answer.json", "-o", tmp_path / "r.md", "--by", by, "--budget", "12", "--force")
        assert payment in (tmp_path / "r.md").read_text()


def test_methods_are_compared(run, tmp_path):
    fedcoast("report", run, "-o", tmp_path / "r.json", "--methods", "coast,cosine,norm")
    content = json.loads((tmp_path / "r.json").read_text())
    assert list(content["comparison"]["methods"]) == ["coast", "cosine", "norm"]


def test_a_method_that_cannot_be_asked_leaves_its_reason_in_the_report(run, tmp_path):
    fedcoast("report", run, "-o", tmp_path / "r.html", "--methods", "shapley,norm", "--keep", 0.5)
    text = (tmp_path / "r.html").read_text()
    assert "No answer from shapley: it needs validation data: give your own" in text
    fedcoast("report", run, "-o", tmp_path / "r.json", "--methods", "shapley", "--keep", 0.5)
    assert list(json.loads((tmp_path / "r.json").read_text())["comparison"]["errors"]) == ["shapley"]


@pytest.mark.slow
def test_of_a_run_of_the_lab_methods_with_validation_data_are_compared_too(tmp_path):
    from fedcoast.simulation.federation import Federation
    from fedcoast.simulation.presets import preset
    from fedcoast.simulation.simulation import simulate

    simulate(Federation(preset("quick", "digits", "mlp", rounds=4, clients=3)), tmp_path / "run")
    fedcoast("report", tmp_path / "run", "-o", tmp_path / "r.json", "--methods", "shapley,dig-fl")
    content = json.loads((tmp_path / "r.json").read_text())["comparison"]
    assert (list(content["methods"]), content["errors"]) == (["coast", "shapley", "dig-fl"], {})


@pytest.mark.parametrize("name", ["answer.json", "answer.csv"])
def test_an_answer_of_assess_becomes_the_report_that_the_run_becomes(run, tmp_path, name):
    assessor = CoAst(keep=0.5)
    for fl_round in replay(run):
        assessor.observe(fl_round)
    answer = assessor.assessment()
    (tmp_path / name).write_text(answer.to_csv() if name.endswith("csv") else answer.to_json())
    fedcoast("report", run, "-o", tmp_path / "run.csv", "--keep", 0.5)
    fedcoast("report", tmp_path / name, "-o", tmp_path / "answer-report.csv")
    of_run, of_answer = ((tmp_path / target).read_text() for target in ("run.csv", "answer-report.csv"))
    assert of_run == of_answer


def test_too_few_rounds_make_a_report_and_a_code(run, tmp_path):
    done = fedcoast("report", run, "-o", tmp_path / "r.md", "--horizon", 9)
    assert done.exit_code == 4
    assert "Too early to say anything" in (tmp_path / "r.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "nowhere"], "nowhere is not a folder"),
        (["report", "RUN", "--keep", "10"], "did you mean 0.10?"),
        (["report", "RUN", "-o", "x.pdf"], "a report is one of html, md, csv, json, png; got 'pdf'"),
        (["report", "nowhere", "-o", "x.pdf"], "a report is one of html, md, csv, json, png; got 'pdf'"),
        (["report", "RUN", "--level", "90"], "did you mean 0.90?"),
        (["report", "RUN", "--methods", "cosin"], "did you mean cosine?"),
        (["report", "RUN", "--budget", "much"], "budget must be an amount"),
        (["report", "RUN/run.json", "--methods", "norm"], "is an answer; --methods needs the run"),
        (["report", "RUN/run.json", "--keep", "0.5"], "leave out --keep"),
        (["report", "RUN/run.json"], "a fedcoast-assessment of version 1 is wanted"),
        (["report", "RUN", "-o", "RUN/run.json/x.md"], "x.md cannot be written ("),
        (["report", "RUN", "-o", "RUN/run.json/deeper/x.md"], "x.md cannot be written ("),
        (["report", "RUN", "-o", "x" * 252 + ".md"], "x.md cannot be written ("),
        (["serve", "RUN", "--host", "0.0.0.0"], "can be reached from other machines"),
        (["serve", "RUN", "--token-file", "RUN/.lock"], "at least 16 printable"),
        (["serve", "RUN", "--port", "99999"], "cannot listen on 127.0.0.1, port 99999"),
    ],
)
def test_what_cannot_be_done_is_said(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in fedcoast(*(argument.replace("RUN", str(run)) for argument in arguments))
    assert not list(tmp_path.glob("*.html")) + list(tmp_path.glob("*.pdf"))


def test_a_terminal_can_be_shown_what_there_is(run):
    done = fedcoast("watch", run, "--once", "--keep", 0.5)
    assert done.exit_code == 0
    assert done.stdout.index("│ c1") < done.stdout.index("│ c2") < done.stdout.index("│ c3")


@pytest.mark.parametrize("form", ["html", "md", "csv", "json"])
def test_a_name_that_is_no_text_is_reported_in_every_form(tmp_path, form):
    names = ["b\udce9rlin", "\ud800", "oslo"]  # a file's name need not be UTF-8
    answer = Assessment(
        "mine", dict.fromkeys(names, 1), {1: dict.fromkeys(names, 1)}, rounds_scored=dict.fromkeys(names, 1)
    )
    (tmp_path / "answer.json").write_text(answer.to_json())
    assert fedcoast("report", tmp_path / "answer.json", "-o", tmp_path / f"r.{form}").exit_code == 0
    assert "udce9rlin" in (tmp_path / f"r.{form}").read_text(encoding="utf-8")
