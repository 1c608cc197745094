"""Answers, reports and ledgers against the recording they speak of, and `fedcoast verify` as a user calls it."""

import json
from dataclasses import replace
from itertools import islice

import pytest
import typer
from typer.testing import CliRunner

from audit.runs import answer, coast, record, without_chain
from fedcoast import METHODS, BadFile, BadSetting, CoAst, FedcoastError, Recorder, replay
from fedcoast.audit import verify
from fedcoast.cli import auditing, reporting
from fedcoast.methods import FedPCA
from fedcoast.methods.remaking import remade
from fedcoast.storage.tensors import read_tensors, write_tensors
from federations import federation, show

app = typer.Typer()
app.command()(auditing.verify)
app.command()(reporting.report)


def fedcoast(*arguments):
    done = CliRunner().invoke(app, list(map(str, arguments)))
    if isinstance(done.exception, FedcoastError):
        raise done.exception
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


@pytest.fixture
def run(tmp_path):
    record(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture(params=["html", "json"])
def report(run, tmp_path, request):
    path = tmp_path / f"report.{request.param}"
    fedcoast("report", run, "-o", path, "--keep", 0.3, "--horizon", 1)
    return path


def test_a_sound_run_is_said_to_be_as_recorded_and_its_head_is_printed(run):
    done = fedcoast("verify", run)
    assert done.exit_code == 0
    assert f"head after round 5: {verify(run).head}\n" in done.stdout
    assert f"{run} is consistent: 5 rounds, 31 files, " in done.stdout


def test_a_difference_is_named_and_ends_in_the_code_of_a_failed_check(run):
    path = run / "rounds" / "0000000003" / "client-000001.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    done = fedcoast("verify", run)
    assert done.exit_code == 1
    assert (
        "DIFFERS: rounds/0000000003/client-000001.safetensors: was changed (the upload of client 'ann')" in done.stdout
    )
    assert f"{run} could not be verified: 1 difference." in done.stdout


def test_everything_can_be_had_as_json(run):
    (run / "run.json").write_text("{}")
    done = fedcoast("verify", run, "--json")
    assert done.exit_code == 1
    content = json.loads(done.stdout)
    assert content["agrees"] is False
    assert [finding["file"] for finding in content["findings"]] == ["run.json"]
    assert content["head"] == verify(run).head


def test_a_run_without_a_chain_does_not_pass_for_verified(run):
    without_chain(run)
    done = fedcoast("verify", run)
    assert (done.exit_code, "This run has no chain" in done.stdout) == (1, True)


def test_a_report_carries_the_head_the_settings_and_the_scores_and_is_confirmed(run, report):
    assert verify(run).head in report.read_text()
    done = fedcoast("verify", run, "--report", report)
    assert done.exit_code == 0
    expected = (
        f"agrees: {report}: its report follows from the rounds up to 5, and it states their head, by coast(keep=0.3, "
    )
    assert expected in done.stdout


@pytest.mark.parametrize("form", ["md", "html"])
def test_people_can_read_the_head_in_a_report_too(run, tmp_path, form):
    fedcoast("report", run, "-o", tmp_path / f"r.{form}")
    text = (tmp_path / f"r.{form}").read_text()
    assert "chain head" in text
    assert verify(run).head in text.partition('id="seal"')[0]


def test_a_report_stays_true_while_the_run_grows(tmp_path):
    record(tmp_path / "run", count=4)
    fedcoast("report", tmp_path / "run", "-o", tmp_path / "r.json")
    record(tmp_path / "run", first=4)
    done = fedcoast("verify", tmp_path / "run", "--report", tmp_path / "r.json")
    assert "follows from the rounds up to 4, and it states their head, by coast(" in done.stdout
    assert done.exit_code == 0


def test_a_report_tells_that_rounds_were_cut_off(run, report):
    for path in (run / "rounds" / "0000000005").iterdir():
        path.unlink()
    (run / "rounds" / "0000000005").rmdir()
    assert verify(run).agrees
    found = verify(run, [report])
    assert {finding.file for finding in found.findings} == {str(report)}
    assert "was made from another history" in found.findings[0].what


def test_a_word_changed_in_what_a_report_shows_is_found(run, report):
    whole = report.read_text()
    for old, new in (("fedcoast", "fedroast"), ("ann", "eve"), ("coast", "boast")):
        report.write_text(whole.replace(old, new, 1))
        found = verify(run, [report])
        assert {finding.file for finding in found.findings} == {str(report)}, old
    report.write_text(whole)
    assert verify(run, [report]).agrees


def test_a_score_forged_in_a_report_is_found_although_its_hash_was_forged_too(run, tmp_path):
    from fedcoast.reports import signature as seal

    fedcoast("report", run, "-o", tmp_path / "r.json", "--keep", 0.3)
    content = json.loads((tmp_path / "r.json").read_text())
    stamp = content.pop("seal")
    for forge, expected in (
        (lambda it: it["clients"][0].update(score=10**6), "with score 1000000"),
        (lambda it: it["clients"][-1].update(rank=1), "with rank 1"),
        (lambda it: it["assessment"]["scores"].__setitem__(0, 10**6), "the score of 3 is 1000000"),
        (lambda it: it["assessment"]["credits"].popitem(), "is not given and follows"),
        (lambda it: it["assessment"]["settings"].update(keep=0.1), "follows from the recording"),
        (lambda it: it["assessment"].update(pending=[]), "says pending []"),
        (lambda it: it["assessment"].update(method="constant"), "cannot be checked: constant does not take"),
        (lambda it: it["assessment"]["clients"].pop(), "names the clients"),
    ):
        forged = json.loads(json.dumps(content))
        forge(forged)
        stamp["digest"] = seal._digest(seal._compact(forged))
        (tmp_path / "r.json").write_text(json.dumps({**forged, "seal": stamp}))
        found = [finding.what for finding in verify(run, [tmp_path / "r.json"]).findings]
        assert found
        assert any(expected in what for what in found), found
        assert not any("does not have the hash" in what for what in found)


def test_an_answer_is_confirmed_and_one_of_another_run_is_not(run, tmp_path):
    (tmp_path / "answer.json").write_text(answer(run).to_json())
    done = fedcoast("verify", run, "--answer", tmp_path / "answer.json")
    assert (done.exit_code, "its answer follows from the rounds up to 5, by coast(" in done.stdout) == (0, True)
    record(tmp_path / "other", count=3)
    done = fedcoast("verify", tmp_path / "other", "--answer", tmp_path / "answer.json")
    assert done.exit_code == 1
    assert "speaks of rounds up to 5; the recording has them up to 3" in done.stdout


def test_papers_that_lie_in_the_folder_are_found_and_others_named_as_outside(run):
    (run / "answer.json").write_text(answer(run).to_json())
    (run / "notes.txt").write_text("lunch at noon")
    (run / "server").mkdir()
    assessor = coast()
    show(assessor, replay(run))
    assessor.save(run / "coast.state")
    found = verify(run)
    assert found.agrees
    assert [line.split(": ")[1].split(" follows ")[0] for line in found.confirmed] == ["its answer", "its ledger"]
    assert list(found.outside) == ["notes.txt", "server"]
    assert "server optimiser" in found.outside["server"]


def test_a_ledger_with_another_credit_is_found(run):
    assessor = coast()
    show(assessor, replay(run))
    assessor._ledger.credits[1]["ann"] += 1
    assessor.save(run / "coast.state")
    (finding,) = verify(run).findings
    assert finding.file.endswith("coast.state")
    assert "says ledger.credits[0]" in finding.what


MOVEMENT = {"reference": "movement", "keep": 0.3, "horizon": 2, "past_weight": 0.5}  # holds models too


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"past_weight": 0},
        {"reference": "votes"},
        {"reference": "votes", "past_weight": 0},
        {"baseline": "idle"},
        {"horizon": 4},
    ],
)
def test_a_ledger_whose_rounds_were_spilled_is_as_true_as_one_without(run, tmp_path, options):
    spilled = set()
    for memory in range(0, 1500, 300):  # all of the rounds, or some of them
        assessor = CoAst(**{**MOVEMENT, **options}, spill_dir=tmp_path / str(memory), memory_limit=memory)
        show(assessor, replay(run))
        assessor.save(run / "coast.state")
        _, state = read_tensors(run / "coast.state")
        spilled.add(tuple(one["sheaf"] is not None for one in state["facts"]["pending"]))
        found = verify(run)
        assert found.agrees, (memory, found.findings)
        assert "coast.state: its ledger follows from the rounds up to 5" in found.confirmed[0]
    assert any(all(of) for of in spilled)
    assert any(len({*of}) == 2 for of in spilled)


@pytest.mark.parametrize(
    ("forge", "expected"),
    [
        (
            lambda state: state["facts"]["pending"][1]["sheaf"]["parts"][0].update(crc=7),
            "facts.pending[1].held[0][2] 7;",
        ),
        (lambda state: state["facts"]["pending"][0]["sheaf"]["parts"][-1].update(crc=7), "facts.pending[0].held["),
        (lambda state: state["facts"]["pending"][1]["clients"].reverse(), "says facts.pending[1].clients[0]"),
        (lambda state: state["facts"]["pending"][1].update(sheaf={}), "says facts.pending[1].sheaf {}"),
        (lambda state: state["facts"]["pending"][1]["sheaf"].update(parts=3), "says facts.pending[1].sheaf {"),
        (lambda state: state["facts"]["pending"][1].update(trace=10**12), "says facts.pending[1].trace 10000"),
        (lambda state: state["facts"].update(before=False), "says facts.before False"),
        (lambda state: state["ledger"]["credits"][0][1][0].__setitem__(1, 10**6), "says ledger.credits[0][1][0][1]"),
        (lambda state: state.update(last_round="5"), "does not say which round was the last"),
    ],
)
def test_a_forged_ledger_is_found_although_its_rounds_were_spilled(run, tmp_path, forge, expected):
    assessor = CoAst(**MOVEMENT, spill_dir=tmp_path / "spilled")
    show(assessor, replay(run))
    assessor.save(run / "coast.state")
    arrays, state = read_tensors(run / "coast.state")
    forge(state)
    write_tensors(run / "coast.state", {name: (array, array.dtype.name) for name, array in arrays.items()}, state)
    found = [finding.what for finding in verify(run).findings]
    assert any(expected in what for what in found), found


def test_a_spilled_ledger_with_another_array_is_found(run, tmp_path):
    assessor = CoAst(**MOVEMENT, spill_dir=tmp_path / "spilled")
    show(assessor, replay(run))
    assessor.save(run / "coast.state")
    arrays, state = read_tensors(run / "coast.state")
    arrays["1.followed"][0, 0] += 1
    write_tensors(run / "coast.state", {name: (array, array.dtype.name) for name, array in arrays.items()}, state)
    (finding,) = verify(run).findings
    assert finding.what == "holds other arrays than follow from the recording"


def test_an_answer_may_know_clients_from_rounds_that_gave_nobody_credit(tmp_path):
    """Fed-PCA gives none where one client answered alone."""
    crowd = list(federation(seed=4, rounds=6, clients=("ann", "bob", "cid")))
    with Recorder(tmp_path / "run") as recorder:
        for fl_round in crowd:
            alone = {2: "dora", 4: "emil", 5: "fay"}.get(fl_round.number)
            recorder.observe(fl_round if alone is None else replace(fl_round, local={alone: fl_round.local["ann"]}))
    for last in range(7):
        assessor = FedPCA(bonus=4)
        show(assessor, islice(replay(tmp_path / "run"), last))
        (tmp_path / "answer.json").write_text(assessor.assessment().to_json())
        found = verify(tmp_path / "run", [tmp_path / "answer.json"])
        assert found.agrees, (last, found.findings)
        until = f" up to {last}" if last else ""
        assert f"its answer follows from the rounds{until}, by fed-pca(" in found.confirmed[0]
        forged = json.loads((tmp_path / "answer.json").read_text())
        forged["clients"].append({"name": "zoe", "type": "str"})
        for key in ("scores", "seen", "mean", "ranks"):
            forged[key].append(0)
        for row in forged["credits"].values():
            row.append(None)
        (tmp_path / "answer.json").write_text(json.dumps(forged))
        (finding,) = verify(tmp_path / "run", [tmp_path / "answer.json"]).findings
        assert "'zoe'; in the recording they are" in finding.what


def test_a_true_report_is_not_blamed_for_a_recording_that_was_changed(run, report):
    path = run / "rounds" / "0000000003" / "client-000001.safetensors"
    path.unlink()
    found = verify(run, [report])
    assert [finding.file for finding in found.findings] == ["rounds/0000000003/client-000001.safetensors"]
    assert (found.confirmed, found.unchecked) == ((), (f"{report}, since the recording itself was changed",))
    expected = f"not checked: {report}, since the recording itself was changed"
    assert expected in fedcoast("verify", run, "--report", report).stdout


def test_a_head_that_was_kept_earlier_says_what_was_added_since(run, tmp_path):
    early = record(tmp_path / "early", count=3)
    done = fedcoast("verify", run, "--head", early.upper())
    assert "agrees: the head that was kept is the link of round 3; 2 rounds were added since" in done.stdout
    assert done.exit_code == 0


def test_what_cannot_be_verified_at_all_is_said(run, tmp_path):
    for arguments, error, expected in (
        ([tmp_path / "nowhere"], BadFile, "is not a recorded run"),
        ([run, "--head", "abc"], BadSetting, "64 hexadecimal digits"),
        ([run, "--report", tmp_path / "nowhere.html"], BadFile, "is no file"),
    ):
        with pytest.raises(error, match=expected):
            fedcoast("verify", *arguments)
    (tmp_path / "r.html").write_text("<html>")
    assert "cannot be checked" in str(verify(run, [tmp_path / "r.html"]).findings[0])


@pytest.mark.parametrize(
    "expected",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"format": "fedcoast-report"}',
        b'{"format": "fedcoast-report", "seal": 3}',
        b'<script type="application/json" id="seal">[]</script>\n',
        b"[" * 100_000,
    ],
)
@pytest.mark.parametrize("name", ["paper.json", "paper.html", "paper.state"])
def test_a_paper_of_nonsense_is_named_and_no_traceback_shown(run, tmp_path, name, expected):
    (tmp_path / name).write_bytes(expected)
    (finding,) = verify(run, [tmp_path / name]).findings
    assert finding.file == str(tmp_path / name)
    assert "cannot be checked" in finding.what


def test_an_answer_of_nonsense_settings_is_named(run, tmp_path):
    expected = json.loads(answer(run).to_json())
    for changes in ({"method": ["coast"]}, {"method": 3}, {"settings": 3}, {"settings": {"rounds": [1, 2, 3, 4]}}):
        (tmp_path / "a.json").write_text(json.dumps({**expected, **changes}))
        (finding,) = verify(run, [tmp_path / "a.json"]).findings
        assert "cannot be checked" in finding.what


def test_a_ledger_saved_before_the_first_round_is_a_true_one(run):
    coast().save(run / "coast.state")
    assert verify(run).agrees


def test_line_ends_are_bytes_too(run, report):
    report.write_bytes(report.read_bytes().replace(b"\n", b"\r\n") + b"\r\n")
    assert verify(run, [report]).findings


def test_a_name_that_would_drive_the_terminal_is_shown_as_text(run):
    (run / "rounds" / "\x1b[2J").mkdir()
    assert r"rounds/\x1b[2J: was added" in fedcoast("verify", run).stdout


@pytest.mark.parametrize("name", [n for n, m in METHODS.items() if not {"utility", "gradient"} & set(m.needs)])
def test_every_method_that_needs_no_data_can_be_made_again_from_its_settings(name):
    assessor = METHODS[name].make()
    settings = json.loads(json.dumps(dict(assessor.assessment().settings)))
    again = remade(assessor.method, settings)
    assert (type(again), again.settings) == (type(assessor), assessor.settings)


def test_settings_that_no_file_can_hold_are_said():
    chosen = CoAst(layers=lambda name: True).assessment()
    for method, settings, expected in (
        ("coast", chosen.settings, "which no file can hold"),
        ("shapley", {}, "needs validation data"),
        ("astrology", {}, "not a method of this fedcoast"),
        ("coast", {"colour": "red"}, "does not take these settings"),
        ("coast", {"keep": 0.1}, "has other settings"),
    ):
        with pytest.raises(BadSetting, match=expected):
            remade(method, settings)
    sliding = CoAst(score_rounds=slice(-3, None), layers=["a*", "b"]).assessment().settings
    assert remade("coast", sliding).assessment().settings == sliding
