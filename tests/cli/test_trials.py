"""What strangers met at the command line (the trials of November 2026, 1.2, 1.8, 1.10, 1.15 and 1.17)."""

import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from audit.runs import record
from command_line import fedcoast
from fedcoast import CoAst, replay
from fedcoast.analysis.disagreement import Disagreement
from fedcoast.analysis.uncertainty import uncertainty
from fedcoast.analysis.verdicts import blind_spots, verdicts
from fedcoast.cli import screen
from fedcoast.methods import CoAstConfig
from fedcoast.reports.answer_table import answer_table
from fedcoast.reports.many_runs import list_page
from report_samples import large


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("--dataset", "digit"), ["dataset must be one of", "did you mean digits?"]),
        (("--model", "mpl"), ["model must be one of", "did you mean mlp?"]),
        (("--setting", "nois"), ["setting must be one of", "did you mean noise?"]),
        (("--dataset", "cifar", "--model", "resnet"), ["did you mean cifar10?", "did you mean resnet"]),
        (("--dataset", "digits"), ["tiny-resnet needs images of at least 11 × 11", "use another model: mlp, deep-mlp"]),
    ],
)
def test_wrong_names_of_the_lab_are_refused_at_once_with_the_nearest(tmp_path, names, words):
    """Trial 1.15: digits failed on the default model without naming mlp; names were refused one by one."""
    done = fedcoast("simulate", *names, "--out", tmp_path)
    assert done.code == 3
    assert all(part in done.stderr for part in words), done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("names", [("--dataset", "digit"), ("--dataset", "digits")])
def test_names_are_refused_before_anything_heavy_is_loaded(names):
    """Trial 1.15: a wrong dataset took 4.7 s, since PyTorch and scikit-learn were imported first."""
    code = (
        "import sys; from fedcoast.cli import main\n"
        f"sys.argv = ['fedcoast', 'simulate', *{names!r}]\n"
        "try: main()\nexcept SystemExit as end: code = end.code\n"
        "print(code, sorted({'torch', 'sklearn', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "3 []\n", done.stderr


@pytest.mark.parametrize("command", ["serve", "watch"])
def test_a_mistyped_path_is_not_waited_for(tmp_path, command):
    done = fedcoast(command, tmp_path / "typo" / "run")
    assert done.code == 3
    assert "check the path" in done.stderr


@pytest.mark.parametrize("command", ["assess", "rewards", "report", "serve", "watch"])
def test_every_command_that_answers_takes_coasts_options_and_shows_their_defaults(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = re.sub(r"\s+", " ", fedcoast(command, "--help").stdout)
    for option in ("--keep", "--horizon", "--layers"):
        assert option in text
    assert f"default: ({CoAstConfig().keep})" in text


def test_assess_shows_ranges_and_the_ranks_that_are_open(tmp_path):
    """Trial 1.6: `assess` never showed a range."""
    record(tmp_path / "run", 12)
    printed = fedcoast("assess", tmp_path / "run").stdout
    assert "90% range" in printed
    assert len(re.findall(r"^ ?\d \(\d–\d\) .*−?[\d.]+ to −?[\d.]+ ", printed, re.MULTILINE)) == 3


def test_one_client_of_the_lab_has_no_agreement_with_an_order(tmp_path):
    """Trial 1.12: the lab printed "+nan", and "helps … with 90 % confidence"."""
    options = ("--dataset", "digits", "--model", "mlp", "--clients", "1", "--rounds", "8", "--out", tmp_path)
    done = fedcoast("simulate", *options)
    assert done.code == 0, done.stderr
    assert "nan" not in done.stdout
    assert "There is one client. Scores compare clients, so its score says little." in done.stdout


def test_did_you_mean_is_asked_once():
    done = fedcoast("simulate", "--datset", "digits")
    assert done.code == 2
    assert done.stderr.lower().count("did you mean") <= 1


def test_a_table_of_long_names_fits_eighty_columns():
    """Trial 1.17: "cannot be to…"."""

    assessment = large(clients=40, rounds=60, layers=2).assessment
    names = {client: f"{client} of the university hospital of the capital" for client in assessment.clients}
    renamed = assessment.__class__(
        assessment.method,
        {names[c]: score for c, score in assessment.scores.items()},
        {n: {names[c]: credit for c, credit in of.items()} for n, of in assessment.credits.items()},
        rounds_scored={names[c]: seen for c, seen in assessment.rounds_scored.items()},
        zero_is_idle=True,
        dependence_span=4,
    )
    found = uncertainty(renamed, draws=200)
    console = Console(width=80, file=io.StringIO())
    console.print(answer_table(renamed, found, verdicts(renamed, found)))
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("cannot tell" in line or "helps" in line or "hurts" in line for line in lines) == 40


def test_a_method_whose_zero_means_nothing_gives_no_verdicts(tmp_path):
    record(tmp_path / "run", 12)
    done = fedcoast("assess", tmp_path / "run", "--method", "cosine")
    assert "verdict " not in done.stdout
    assert "cannot tell" not in done.stdout
    assert "A score of zero does not mean doing nothing in cosine, so it has no verdicts." in done.stdout


def test_commands_to_try_next_name_the_program_that_ran(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = tmp_path / ".venv" / "bin" / "fedcoast"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(program), "demo"])
    monkeypatch.setenv("PATH", "/nowhere")
    assert screen.program() == ".venv/bin/fedcoast"
    monkeypatch.setenv("PATH", str(program.parent))
    assert screen.program() == "fedcoast"
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "fedcoast" / "__main__.py"), "demo"])
    assert screen.program().endswith(" -m fedcoast")


@pytest.mark.parametrize("options", [("--dataset", "heart"), pytest.param((), marks=pytest.mark.slow)])
def test_the_demo_leaves_its_run_and_every_command_it_prints_works(tmp_path, monkeypatch, options):
    """Trial 1.8: the demo was a dead end."""
    monkeypatch.chdir(tmp_path)
    done = fedcoast("demo", *options)
    assert done.code == 0, done.stderr
    *_, serve, assess, rewards = (shlex.split(line)[1:] for line in done.stdout.splitlines() if line.startswith("  "))
    assert serve == ["serve", "runs"]
    run = Path(assess[1])
    assert f">{run.name}<" in list_page(Path("runs"))
    assert fedcoast(*assess).code == 0
    paid = fedcoast(*rewards)
    assert paid.code == 0, paid.stderr
    assert "amount" in paid.stdout
    checked = fedcoast("verify", run, "--report", "runs/demo.html")
    assert checked.code == 0
    assert "it states their head" in checked.stdout


def test_methods_that_lack_validation_data_are_named_in_one_line(tmp_path):
    """Trial 1.10: fifteen lines said one after the other that validation data are missing."""
    record(tmp_path / "run", 3)
    names = ("shapley", "banzhaf", "leave-one-out")
    done = fedcoast("compare", tmp_path / "run", "--methods", f"norm,{','.join(names)}", "--no-memory")
    (line,) = (line for line in done.stdout.splitlines() if "validation data" in line)
    assert line.startswith(f"no answer from {', '.join(names)}: it needs validation data")
    assert "--utility module:function" in line


@pytest.mark.slow
def test_wrong_labels_are_warned_about_and_the_clean_client_is_not_called_the_least(tmp_path):
    """Trial 1.2: "least by client 0", the only clean one."""
    options = ("--dataset", "digits", "--model", "mlp", "--setting", "label-noise", "--seed", "1")
    assert fedcoast("simulate", *options, "--out", tmp_path).code == 0
    (run,) = tmp_path.iterdir()
    assessor, disagreement = CoAst(), Disagreement()
    for fl_round in replay(run):
        assessor.observe(fl_round)
        disagreement.observe(fl_round)
    answer = assessor.assessment()
    found = uncertainty(answer)
    assert any("labels may be wrong" in text for text in blind_spots(answer, found, disagreement.summary()))
    assert found.rank_intervals[0] != (5, 5)


@pytest.mark.parametrize("command", ["assess", "compare", "rewards", "report", "serve", "watch", "verify", "sign",
                                     "import", "demo", "simulate", "lab samples", "lab attack"])  # fmt: skip
def test_every_main_command_shows_an_example(command):
    text = re.sub(r"\s+", " ", fedcoast(*command.split(), "--help").stdout)
    assert f"Example: fedcoast {command}" in text
