import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

import fixture_a
from fedcoast import Assessment, CoAst, Recorder, Round, __version__, replay
from fedcoast.cli import main
from federations import federation


def fedcoast(*arguments, **environment):
    """The program as a user runs it, in a pipe."""
    command = [sys.executable, "-m", "fedcoast.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=120)


def within(*arguments):
    """The same program in this process, which is faster."""
    done = SimpleNamespace(returncode=0)
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        try:
            with mock.patch.object(sys, "argv", ["fedcoast", *map(str, arguments)]):
                main()
        except SystemExit as end:
            done.returncode = end.code or 0
    done.stdout, done.stderr = out.getvalue(), err.getvalue()
    return done


FIRST_DEFAULT = {"reference": "movement", "horizon": 2, "past_weight": 0.5, "layers": "first+head"}
MOVEMENT = ("--reference", "movement", "--horizon", "2", "--past-weight", "0.5", "--layers", "first+head")


def test_the_version():
    assert within("--version").stdout == f"fedcoast {__version__}\n"


def test_a_run_is_ranked_on_stdout_and_nothing_else_is_said_in_a_pipe(run):
    done = fedcoast("assess", run, "--keep", "0.5")
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.index("c1") < done.stdout.index("c2") < done.stdout.index("c3")
    assert "\x1b" not in done.stdout


def test_json_is_the_whole_answer(run):
    done = within("assess", run, "--keep", "0.5", "--json")
    assessor = CoAst(keep=0.5)
    for fl_round in replay(run):
        assessor.observe(fl_round)
    assert Assessment.from_json(done.stdout) == assessor.assessment()


def test_json_is_the_whole_answer_of_the_movement(run):
    done = within("assess", run, "--keep", "0.5", *MOVEMENT, "--json")
    assessor = CoAst(keep=0.5, **FIRST_DEFAULT)
    for fl_round in replay(run):
        assessor.observe(fl_round)
    assert Assessment.from_json(done.stdout) == assessor.assessment()
    assert json.loads(done.stdout)["scores"] == [4, 2, -4]


def test_csv_is_the_whole_answer(run):
    answers = [within("assess", run, "--keep", "0.5", form).stdout for form in ("--csv", "--json")]
    assert Assessment.from_csv(answers[0]) == Assessment.from_json(answers[1])
    done = within("assess", run, "--keep", "0.5", *MOVEMENT, "--csv")
    assert Assessment.from_csv(done.stdout).scores == {"c1": 4, "c2": 2, "c3": -4}


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--horizon", "2", "--line-weight", "0"], {"horizon": 2, "line_weight": 0}),
        (["--signal", "update"], {"signal": "update"}),
        ([*MOVEMENT], FIRST_DEFAULT),
        (
            ["--reference", "movement", "--signal", "pruned", "--horizon", "1"],
            {"reference": "movement", "signal": "pruned", "horizon": 1},
        ),
        (["--reference", "votes", "--baseline", "none"], {"reference": "votes", "baseline": "none"}),
        (["--layers", "layer1"], {"layers": ["layer1"]}),
        (["--layers", "layer1, layer*"], {"layers": ["layer1", "layer*"]}),
        (["--layers", "all"], {"layers": "all"}),
        (["--layers", "first+head"], {"layers": "first+head"}),
        (["--score-rounds", "1:"], {"score_rounds": slice(1, None)}),
        (["--score-rounds=-1:"], {"score_rounds": slice(-1, None)}),
        (["--incomplete-rounds", "truncate"], {"incomplete_rounds": "truncate"}),
        (["--step", "avg", "--tiny-layers", "none"], {"step": "avg", "tiny_layers": "none"}),
    ],
)
def test_every_option_reaches_the_assessor(run, options, settings):
    done = within("assess", run, "--keep", "0.5", "--json", *options)
    assessor = CoAst(keep=0.5, **settings)
    for fl_round in replay(run):
        assessor.observe(fl_round)
    assert Assessment.from_json(done.stdout) == assessor.assessment()


def test_presets_are_ours_and_the_papers(run):
    presets = {
        "default": CoAst(),
        "votes": CoAst.votes(),
        "paper": CoAst.paper(),
    }
    for name, preset in presets.items():
        settings = json.loads(within("assess", run, "--preset", name, "--json").stdout)["settings"]
        assert {option: settings[option] for option in preset.settings} == preset.settings


def test_the_past_can_be_left_in(run):
    options = (*MOVEMENT, "--past-weight", "0", "--line-weight", "0", "--layers", "all")
    expected = json.loads(within("assess", run, *options, "--json").stdout)
    assert expected == json.loads(within("assess", run, "--preset", "votes", "--json").stdout)


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["assess", "nowhere"], 3, "nowhere is not a folder"),
        (["assess", "RUN", "--keep", "10"], 3, "did you mean 0.10?"),
        (["assess", "RUN", "--score-rounds", "ten"], 3, "score_rounds must look like 10:"),
        (["assess", "RUN", "--step", "big"], 3, "step must be a number or avg"),
        (["assess", "RUN", "--past-weight", "2"], 3, "past_weight must lie in [0, 1]"),
        (["assess", "RUN", "--layers", "fc.*"], 3, "chooses none of the model's layers"),
        (["assess", "RUN", "--signal", "moon"], 2, "moon"),
        (["assess", "RUN", "--horizon", "9"], 4, ""),
        (["nonsense"], 2, "nonsense"),
        (["simulate", "--dataset", "mnist"], 3, "dataset must be one of"),
        (["simulate", "--dataset", "digits", "--model", "gpt"], 3, "model must be one of"),
        (["lab", "samples", "--dataset", "digits", "--setting", "fog"], 3, "setting must be one of"),
        (["lab", "samples", "--dataset", "digits", "--out", "x.gif"], 3, "written as PNG"),
    ],
)
def test_exit_codes_mean_something(run, tmp_path, arguments, code, expected):
    done = within(*(run if argument == "RUN" else argument for argument in arguments))
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert expected in done.stderr


def test_too_few_rounds_are_said_in_words(run):
    done = within("assess", run, "--horizon", "9")
    assert "A round is scored by the rounds after it. Waiting: 1, 2, 3, 4." in done.stdout
    assert done.stdout.startswith("Too early to say anything")


def test_differences_in_checkpoints_are_told_and_read_on_request(tmp_path):
    for fl_round in federation(rounds=12):
        for kind in ("models", "differences"):
            place = tmp_path / kind / f"round-{fl_round.number}"
            (place / "clients").mkdir(parents=True)
            np.savez(place / "start.npz", **fl_round.start)
            np.savez(place / "end.npz", **fl_round.end)
            for client, model in fl_round.local.items():
                start = fl_round.start if kind == "differences" else dict.fromkeys(model, 0.0)
                np.savez(place / "clients" / f"{client}.npz", **{name: model[name] - start[name] for name in model})
    assert "import --uploads differences" in within("assess", tmp_path / "differences").stdout
    assert "look like differences" not in within("assess", tmp_path / "models").stdout
    within("import", tmp_path / "differences", tmp_path / "run", "--uploads", "differences")
    read, expected = (within("assess", tmp_path / name).stdout for name in ("run", "models"))
    assert read == expected


def test_checkpoints_are_assessed_and_imported_alike(tmp_path):
    for fl_round in fixture_a.rounds("observer"):
        place = tmp_path / "checkpoints" / f"round-{fl_round.number}"
        (place / "clients").mkdir(parents=True)
        np.savez(place / "start.npz", **fl_round.start)
        np.savez(place / "end.npz", **fl_round.end)
        for client, model in fl_round.local.items():
            np.savez(place / "clients" / f"{client}.npz", **model)
    assert "4 rounds recorded" in within("import", tmp_path / "checkpoints", tmp_path / "run").stdout
    for options in ((), MOVEMENT):
        answers = [
            within("assess", tmp_path / name, "--keep", "0.5", *options, "--json").stdout
            for name in ("checkpoints", "run")
        ]
        assert answers[0] == answers[1]
    assert json.loads(answers[0])["scores"] == [4, 2, -4]
    assert "0 rounds recorded" in within("import", tmp_path / "checkpoints", tmp_path / "run").stdout


def test_a_name_that_would_drive_the_terminal_is_shown_as_text(tmp_path):
    rude = "\x1b[2J[bold]boo[/bold]\n"
    with Recorder(tmp_path) as recorder:
        for fl_round in fixture_a.rounds("observer"):
            local = {rude if client == "c1" else client: model for client, model in fl_round.local.items()}
            recorder.observe(Round(fl_round.number, fl_round.start, local, fl_round.end))
    shown = fedcoast("assess", tmp_path, "--keep", "0.5", FORCE_COLOR="1").stdout
    assert r"\x1b[2J[bold]boo[/bold]\n" in shown
    assert "\x1b[2J" not in shown


def test_no_color_is_respected_even_where_color_could_be(run):
    assert "\x1b[1m" not in fedcoast("assess", run, "--keep", "0.5", NO_COLOR="1", TERM="xterm-256color").stdout


def test_a_bad_upload_is_counted_and_the_others_ranked(tmp_path):
    with Recorder(tmp_path) as recorder:
        for fl_round in fixture_a.rounds("observer"):
            local = dict(fl_round.local)
            if fl_round.number == 2:
                local["c2"] = {name: array * np.nan for name, array in local["c2"].items()}
            recorder.observe(Round(fl_round.number, fl_round.start, local, fl_round.end))
    done = within("assess", tmp_path, "--keep", "0.5", "--json")
    answer = Assessment.from_json(done.stdout)
    assert "must be finite; got nan" in answer.quarantined[2]["c2"]
    assert answer.rounds_scored == {"c1": 3, "c2": 2, "c3": 3}
    shown = within("assess", tmp_path, "--keep", "0.5").stdout
    assert "left out" in shown
    assert "Participation varies; compare the adjusted means." in shown


def test_a_name_that_is_no_text_is_written_to_a_strict_pipe(tmp_path):
    with Recorder(tmp_path) as recorder:
        for fl_round in fixture_a.rounds("observer"):
            local = {"b\udce9rlin" if client == "c1" else client: model for client, model in fl_round.local.items()}
            recorder.observe(Round(fl_round.number, fl_round.start, local, fl_round.end))
    done = fedcoast("assess", tmp_path, "--keep", "0.5", *MOVEMENT, "--csv", PYTHONIOENCODING="utf-8:strict")
    assert (done.returncode, done.stderr) == (0, "")
    assert r"b\udce9rlin,str,1,4" in done.stdout
