"""The command line as a new user types it."""

import json
import os
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

import fixture_a
from fedcoast import Recorder
from fedcoast.cli import app
from fedcoast.cli.method_choice import load_utility
from fedcoast.errors import BadSetting
from fedcoast.methods import CoAstConfig


@pytest.fixture
def run(tmp_path):
    with Recorder(tmp_path / "run") as recorder:
        for fl_round in fixture_a.rounds("observer"):
            recorder.observe(fl_round)
    return tmp_path / "run"


def invoke(*arguments, **environment):
    return CliRunner().invoke(app, list(map(str, arguments)), env=environment)


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "fedcoast", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("fedcoast ")


def test_completion_can_be_installed():
    assert "--install-completion" in invoke("--help", COLUMNS="120").stdout


@pytest.mark.parametrize("command", ["assess", "compare", "rewards"])
def test_json_and_csv_together_are_wrong_usage(run, command):
    done = invoke(command, run, "--json", "--csv")
    assert done.exit_code == 2
    assert "exclude each other" in done.stderr


def test_an_empty_selection_of_rounds_is_refused(run):
    done = invoke("assess", run, "--score-rounds", "50:")
    assert isinstance(done.exception, BadSetting)
    assert "selects none of the 3 scored rounds" in str(done.exception)


def test_another_method_can_be_asked(run):
    assert json.loads(invoke("assess", run, "--method", "cosine", "--json").stdout)["method"] == "cosine"
    wrong = invoke("assess", run, "--method", "cosin")
    assert "did you mean cosine?" in str(wrong.exception)
    mixed = invoke("assess", run, "--method", "cosine", "--keep", "0.5")
    assert "options of CoAst do not apply to cosine" in str(mixed.exception)


def test_every_option_of_another_method_can_be_given(run):
    done = invoke("assess", run, "--method", "cgsv", "--option", "momentum=0.5", "--option", "layers=all", "--json")
    settings = json.loads(done.stdout)["settings"]
    assert (settings["momentum"], settings["layers"]) == (0.5, "all")
    assert invoke("rewards", run, "--method", "cosine", "--option", "reference=movement", "--force").exit_code == 0
    wrong = invoke("assess", run, "--method", "cgsv", "--option", "momentun=0.5")
    assert "there is no option 'momentun'" in str(wrong.exception)
    assert "did you mean momentum?" in str(wrong.exception)
    malformed = invoke("assess", run, "--method", "cgsv", "--option", "momentum")
    assert "--option must look like NAME=VALUE" in str(malformed.exception)


def test_all_commands_that_assess_take_the_same_options():
    group = typer.main.get_command(app)
    wanted = {"method", "option", "utility", "preset", *CoAstConfig.options()}
    for command in ("assess", "report", "serve", "watch", "rewards"):
        parameters = {parameter.name: parameter for parameter in group.commands[command].params}
        assert wanted <= set(parameters), command
        assert all(parameters[name].help == info.help for name, info in CoAstConfig.options().items())


def test_own_validation_data_serve_methods_that_need_some(run, tmp_path, monkeypatch):
    (tmp_path / "validation_of_mine.py").write_text(
        "def worth(model):\n    return float(sum(a.sum() for a in model.values()))\n"
    )
    monkeypatch.chdir(tmp_path)
    without = invoke("assess", run, "--method", "leave-one-out")
    assert "--utility module:function" in str(without.exception)
    done = invoke("assess", run, "--method", "leave-one-out", "--utility", "validation_of_mine:worth", "--json")
    assert json.loads(done.stdout)["method"] == "leave-one-out"
    compared = invoke("compare", run, "--methods", "leave-one-out", "--utility", "validation_of_mine:worth", "--json")
    assert compared.exit_code == 0
    assert str(tmp_path) not in sys.path


@pytest.mark.parametrize(
    ("name", "reason"),
    [("nothing", "must be MODULE:FUNCTION"), ("no_such_module:f", "cannot be imported"), ("os:f", "has no 'f'")],
)
def test_a_utility_that_is_not_there_is_refused(name, reason):
    with pytest.raises(BadSetting, match=reason):
        load_utility(name)


def test_the_answer_fits_eighty_columns(run):
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-m", "fedcoast", "assess", str(run)],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert done.stdout.startswith("Too early to say who helps")
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if "│" in line or "─" in line)


def test_a_token_never_stands_on_the_command_line_where_ps_shows_it(run):
    done = invoke("serve", run, "--token", "0123456789abcdef", COLUMNS="120")
    assert done.exit_code == 2
    assert "no such option" in done.stderr.lower()
    assert "--token-file" in invoke("serve", "--help", COLUMNS="120").stdout
